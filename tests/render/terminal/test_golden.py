"""Sessions in a terminal of 80 columns and as plain lines: a plain one, a hostile one, and two of the demo.

``pytest tests/render/terminal/test_golden.py --update-golden`` rewrites the expected files. In them, ␛ is the
escape character. Review the diff.
"""

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import PaginatedResult, SessionSummary
from backscroll.render.session_table import tab_separated_lines, table_lines
from backscroll.render.terminal_text import Style
from backscroll.render.transcript import TranscriptOptions, header_lines, transcript_lines
from backscroll.testing import demo
from tests.export.sample_sessions import write_hostile, write_plain

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 11, 12, 12, 0, tzinfo=UTC)
SESSIONS = {
    "plain": "5e551011-0000-4000-8000-0000000000aa",
    "hostile": "5e551011-0000-4000-8000-0000000000bb",
    "demo-clocks": "a4a9482e",
    "demo-ruby": "0ac395fe",
}
OPTIONS = {
    "terminal": TranscriptOptions(width=80, is_colored=True),
    "full": TranscriptOptions(width=80, is_full=True, with_agents=True),
    "lines": TranscriptOptions(),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("terminal")


@pytest.fixture(scope="module")
def history(folder: Path) -> Iterator[History]:
    write_plain(folder / "claude")
    write_hostile(folder / "claude")
    roots = demo.write(folder / "demo").roots
    named = [NamedRoot("claude-code", folder / "claude")]
    named += [NamedRoot(name, Path(root)) for name, root in roots.items()]
    with History(roots=named, home=folder / "home") as history:
        history.sync()
        yield history


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def render(history: History, name: str, options: TranscriptOptions) -> str:
    summary = history.find(SESSIONS[name])
    items = history.transcript.read(summary, everything=options.is_full, with_agents=options.with_agents)
    # Paths and token counts depend on where the tests run.
    header = header_lines(replace(summary, workspace_path="/home/zoe/ferry", total_tokens=123_456), options)
    return "\n".join([*header, *transcript_lines(summary, items, options)]) + "\n"


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_is_shown_as_expected(
    history: History, folder: Path, name: str, kind: str, update_golden: bool
) -> None:
    compare(
        render(history, name, OPTIONS[kind]).replace(str(folder), "~"), f"{name}.{kind}.txt", update_golden
    )


@pytest.mark.parametrize("width", [80, 120])
def test_a_list_fits_the_terminal(history: History, width: int, update_golden: bool) -> None:
    lines = list(table_lines(_stable_page(history), width=width, style=Style(is_colored=False), now=NOW))
    assert max(map(len, lines)) <= width
    compare("\n".join(lines) + "\n", f"list.{width}.txt", update_golden)


def test_a_piped_list_is_tab_separated(history: History, update_golden: bool) -> None:
    lines = tab_separated_lines(_stable_page(history), style=Style(is_colored=False))
    compare("\n".join(lines) + "\n", "list.tsv", update_golden)


@pytest.mark.parametrize("kind", OPTIONS)
def test_only_text_of_a_hostile_session_reaches_the_terminal(history: History, kind: str) -> None:
    shown = re.sub(r"\x1b\[[0-9;]*m", "", render(history, "hostile", OPTIONS[kind]))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", shown)
    assert "alert(1)" in shown
    assert "owned" not in shown


def _stable_page(history: History) -> PaginatedResult[SessionSummary]:
    page = history.list_sessions()
    data = tuple(replace(session, total_tokens=session.total_tokens and 123_456) for session in page.data)
    return replace(page, data=data)


def compare(shown: str, name: str, update_golden: bool) -> None:
    expected = GOLDEN / name
    shown = shown.replace("\x1b", "␛")
    if update_golden:
        expected.write_text(shown, encoding="utf-8", newline="\n")
    assert shown == expected.read_text(encoding="utf-8")
