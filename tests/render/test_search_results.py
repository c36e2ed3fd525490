"""Search matches in a terminal."""

from datetime import UTC, datetime
from typing import Any

import pytest

from backscroll.model.search import SearchMatch, SearchResult
from backscroll.render.search import match_lines
from backscroll.render.terminal_text import cell_width

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def lines(text: str, *highlights: tuple[int, int], is_colored: bool = False, **more: Any) -> list[str]:
    width = more.pop("width", 300)
    fields: dict[str, Any] = {
        "session_ref": "claude-code:0f3c9a12-0000", "session_id": "0f3c9a12-0000", "session_index": 3,
        "source": "claude-code", "title": "A title", "workspace_name": "ferry", "message_id": "m",
        "message_index": 0, "role": "user", "timestamp": NOW, "match": text, "highlights": highlights,
        "context": (text,), "line_number": 1, "score": 1.0, "match_count": 1,
    }  # fmt: skip
    match = SearchMatch(**fields | more)
    result = SearchResult(data=(match,), total=1, limit=20, offset=0, has_more=False, took_ms=1)
    return list(match_lines(result, is_colored=is_colored, width=width, now=NOW))


def test_matches_are_highlighted() -> None:
    assert lines("so flaky today", (3, 8), is_colored=True)[2].endswith("so \x1b[1;33mflaky\x1b[0m today")
    assert "\x1b" not in "".join(lines("so flaky today", (3, 8)))


def test_a_message_without_text_has_a_placeholder() -> None:
    assert lines("")[2:] == ["      │ (no text)"]


def test_the_session_id_is_shown() -> None:
    assert "0f3c9a12" in lines("x")[1]
    assert "inline-12345678" in lines("x", session_id="inline-12345678")[1]


def test_a_subagent_is_labeled_with_its_session() -> None:
    parent = "claude-code:0f3c9a12-0000"
    title, details, *_ = lines("x", parent_ref=parent, session_id="a7bcdf6f5ec88", session_index=None)
    assert title == "      ⤷ A title"
    assert "subagent of 0f3c9a12 · user #0 · a7bcdf6f" in details
    derived = lines("x", parent_ref=parent, session_id="0f3c9a12-0000-explore-1")[1]
    assert "user #0 · 0f3c9a12/explore-1" in derived


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_long_line_is_shortened_around_the_match(width: int) -> None:
    text = "a " * 100 + "needle" + " b" * 30
    shown = lines(text, (200, 206), width=width, is_colored=True)[2]
    assert "\x1b[1;33mneedle\x1b[0m" in shown
    assert "…" in shown
    assert len(shown.replace("\x1b[1;33m", "").replace("\x1b[0m", "")) <= width


def test_role_and_position_of_the_message_are_shown() -> None:
    assert "user #7" in lines("x", message_index=7)[1]
    assert "#" not in lines("x", is_note=True)[1]


@pytest.mark.parametrize("width", [20, 24, 40, 80])
@pytest.mark.parametrize(
    "text", ["a " * 100 + "needle" + " b" * 30, "字体" * 60 + "needle" + "検索" * 40, "\tneedle\t" * 9]
)
def test_no_line_is_wider_than_the_terminal(text: str, width: int) -> None:
    at = text.index("needle")
    shown = lines(
        text,
        (at, at + 6),
        title="表示" * 60,
        workspace_name="仕事" * 30,
        context=(text, "文" * 300, "\t" * 9),
        width=width,
    )
    assert max(map(cell_width, shown[:-1])) <= width
    assert "needle" in "".join(shown)


def test_context_is_truncated_to_the_width() -> None:
    shown = lines("x", (0, 1), context=("y" * 500, "x"), width=80)
    assert [len(line) for line in shown[2:4]] == [80, 9]


@pytest.mark.parametrize(
    "hostile",
    ["\x1b[31m", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\u202e", "\x9b31m", "\x07", "\r", "\u2066"],
)
def test_control_sequences_in_messages_do_not_reach_the_terminal(hostile: str) -> None:
    text = f"a{hostile}needle{hostile}b"
    at = text.index("needle")
    for highlights in ((at, at + 6), (at - 1, at + 2), (0, 2)):
        shown = "".join(lines(text, highlights, title=hostile, workspace_name=hostile, is_colored=True))
        plain = shown.replace("\x1b[1;33m", "").replace("\x1b[0m", "")
        assert not {"\x1b", "\x07", "\r", "\x9b", "\u202e", "\u2066"} & set(plain)
