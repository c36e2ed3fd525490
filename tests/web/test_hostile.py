"""Hostile text in every field is shown as text."""

import re
from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from backscroll.config import NamedRoot
from backscroll.errors import SessionNotFoundError
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from backscroll.web.app import create_app
from backscroll.web.templating import highlighted
from backscroll.web.urls import decode_ref, session_url
from tests.export.sample_sessions import HOSTILE, write_hostile
from tests.web.conftest import ADDRESS, TOKEN


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of a history with hostile text in every field, also in annotations."""
    folder: Path = tmp_path_factory.mktemp("hostile")
    id_ = write_hostile(folder / "claude")
    other = Transcript("5e551011-0000-4000-8000-0000000000cc", seed=6, cwd=f"/home/{HOSTILE[:40]}")
    other.user(HOSTILE).assistant(HOSTILE).write(folder / "claude")
    roots = [NamedRoot("claude-code", folder / "claude")]

    def open_history() -> History:
        return History(roots=roots, home=folder / "home")

    with open_history() as history:
        history.sync()
        history.annotations.add_note(id_, HOSTILE)
        history.annotations.tag(id_, ["<script>", '"onload=alert(1)'])
        history.annotations.rename(id_, HOSTILE)
    app = create_app(open_history, TOKEN, auto_sync=False)
    with TestClient(app, base_url=ADDRESS, headers={"Origin": ADDRESS}) as client:
        client.get(f"/launch?token={TOKEN}")
        yield client


class _Checker(HTMLParser):
    """Fails on scripts of the history, event handlers, styles, and links that are not plain."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given_attributes = dict(attrs)
        assert tag not in ("iframe", "object", "embed", "base", "style"), tag
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert name != "style"
            if name in ("href", "src", "action", "data-src", "data-load", "data-url"):
                assert re.match(r"(/(?!/)|#|https?://|mailto:|$)", value or ""), value
        if tag == "script":
            assert (given_attributes.get("src") or "").startswith("/static/")
        if tag == "img":
            assert (given_attributes.get("src") or "").startswith("/")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/sessions",
        "/sessions?tag=%3Cscript%3E",
        f"/sessions?workspace={HOSTILE[20:60].encode().hex()}%22%3E%3Cscript%3E",
        "/sessions/5e551011-0000-4000-8000-0000000000bb",
        "/sessions/5e551011-0000-4000-8000-0000000000cc?all=1",
        "/sessions/5e551011-0000-4000-8000-0000000000bb/window",
        "/sessions/5e551011-0000-4000-8000-0000000000bb/prompts",
        "/sessions/5e551011-0000-4000-8000-0000000000bb/messages/0",
        "/sessions/5e551011-0000-4000-8000-0000000000bb?find=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        "/health",
        "/search?q=evil",
        "/search?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        "/search?q=alert&mode=exact",
        "/sessions/%22%3E%3Cscript%3E",
    ],
)
def test_hostile_text_stays_text(hostile: TestClient, path: str) -> None:
    html = hostile.get(path).text
    _Checker().feed(html)
    assert "<script>" not in html
    for character in ("\x1b", "\u202e", "\u200b"):
        assert character not in html


def test_a_record_escapes_invisible_characters_and_loses_none(hostile: TestClient) -> None:
    html = hostile.get("/sessions/5e551011-0000-4000-8000-0000000000bb/messages/0").text
    assert r"\u202eevil\u200b" in html


def test_the_hostile_text_is_visible(hostile: TestClient) -> None:
    html = hostile.get("/sessions/5e551011-0000-4000-8000-0000000000bb").text
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 5


@given(ref=st.text(min_size=1, max_size=60))
def test_every_ref_survives_its_address(ref: str) -> None:
    url = session_url(ref)
    assert re.fullmatch(r"/sessions/[A-Za-z0-9_.:+~=-]+", url)
    assert decode_ref(url.removeprefix("/sessions/")) == ref


@given(text=st.text(alphabet=st.sampled_from("~abc=-_+/ é\ud800"), max_size=20))
def test_no_address_of_a_session_causes_another_error(text: str) -> None:
    with suppress(SessionNotFoundError):
        decode_ref(text)


@given(
    text=st.text(max_size=80), spans=st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80)), max_size=4)
)
def test_highlights_never_create_elements(text: str, spans: list[tuple[int, int]]) -> None:
    html = str(highlighted(text, tuple(spans), 30))
    assert set(re.findall(r"<[^>]*>", html)) <= {"<mark>", "</mark>"}
