"""Rendered parts of sessions are reused until the session is read again, its time limit or eviction."""

import pickle
import zlib
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from backscroll.web.app import create_app
from backscroll.web.pages import session as session_module
from backscroll.web.renderers import RenderedParts, SessionParts
from tests.web.conftest import ADDRESS, TOKEN

SESSION_ID = "10000000-0000-4000-8000-000000000009"
URL = f"/sessions/claude-code:{SESSION_ID}"


class Renderer:
    """A function that returns how often it ran."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        return f"{self.count}"


def parts_of(cache: RenderedParts, session: str = "a", version: str = "1") -> SessionParts:
    return SessionParts(cache, session, version)


def test_a_part_is_rendered_once_per_session_version_and_name() -> None:
    cache, render = RenderedParts(), Renderer()
    assert [parts_of(cache).get("x", render) for _ in range(2)] == ["1", "1"]
    assert parts_of(cache).get("y", render) == "2"
    assert parts_of(cache, "b").get("x", render) == "3"
    assert parts_of(cache, version="2").get("x", render) == "4"
    assert parts_of(cache, version="1").get("x", render) == "5"


def test_a_part_is_rendered_again_after_its_time_limit() -> None:
    cache, render = RenderedParts(max_age_seconds=-1), Renderer()
    assert [parts_of(cache).get("x", render) for _ in range(2)] == ["1", "2"]


def test_the_part_that_was_not_used_for_longest_is_evicted() -> None:
    render = Renderer()
    cache = RenderedParts(max_bytes=2 * len(zlib.compress(pickle.dumps("1"), 1)))
    parts = parts_of(cache)
    assert [parts.get(name, render) for name in "aba"] == ["1", "2", "1"]
    assert [parts.get(name, render) for name in "cab"] == ["3", "1", "4"]


@pytest.fixture
def written(tmp_path: Path) -> Transcript:
    session = Transcript(SESSION_ID, seed=1, cwd="/home/zoe/ferry").user("When?").assistant("At nine.")
    session.write(tmp_path / "claude")
    return session


def test_a_page_is_rendered_again_after_its_session_was_read_again(
    tmp_path: Path, written: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = RenderedParts()
    monkeypatch.setattr(session_module, "RENDERED_PARTS", cache)
    windows = []
    original = session_module.read_window
    monkeypatch.setattr(
        session_module,
        "read_window",
        lambda *args, **options: windows.append(args) or original(*args, **options),
    )

    def open_history() -> History:
        return History(home=tmp_path / "home", roots=[NamedRoot("claude-code", tmp_path / "claude")])

    with open_history() as history:
        history.sync()
    with TestClient(create_app(open_history, TOKEN, auto_sync=False), base_url=ADDRESS) as client:
        assert client.get(URL).text.count("At nine.") == client.get(URL).text.count("At nine.") == 1
        assert len(windows) == 1
        written.user("And the last one?").assistant("At ten.").write(tmp_path / "claude")
        Transcript(seed=2, cwd="/home/zoe/quay").user("Other").write(tmp_path / "claude")
        with open_history() as history:
            history.sync()
        assert "At ten." in client.get(URL).text
        assert len(windows) == 2


def test_a_page_stays_cached_while_other_sessions_are_read(
    tmp_path: Path, written: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "RENDERED_PARTS", RenderedParts())
    roots = [NamedRoot("claude-code", tmp_path / "claude")]
    with History(home=tmp_path / "home", roots=roots) as history:
        history.sync()
        before = history.transcript.version(history.find(SESSION_ID))
        Transcript(seed=2, cwd="/home/zoe/quay").user("Other").write(tmp_path / "claude")
        history.sync()
        assert history.transcript.version(history.find(SESSION_ID)) == before
        written.user("And the last one?").write(tmp_path / "claude")
        history.sync()
        assert history.transcript.version(history.find(SESSION_ID)) != before
