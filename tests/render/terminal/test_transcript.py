"""What is shown of a session, and what is folded."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from msgspec.structs import replace

from backscroll.model import Edit, Hunk, Message, ToolCall
from backscroll.render.terminal.options import TranscriptOptions
from backscroll.render.terminal.prose import MAX_LINE_CHARS
from backscroll.render.terminal.transcript import header_lines, transcript_lines
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem
from tests.render.sessions import SUMMARY, events, message, session, texts


def shown(told: Iterable[TranscriptItem], **view: object) -> list[str]:
    return list(transcript_lines(SUMMARY, told, TranscriptOptions(**view)))  # type: ignore[arg-type]


def call(result: str | None, **fields: object) -> Message:
    return message("tool", tool=ToolCall(id="c", name="Bash", result=result, **fields))  # type: ignore[arg-type]


def test_a_call_is_one_line_that_says_how_much_came_of_it() -> None:
    [_, line] = shown(events(call("a\nb\nc\n", params={"command": "ls"}, status="completed")))
    assert line.startswith("  ▸ Bash  ls · 3 lines · ")
    assert line.endswith(" · #0")


def test_a_failed_call_says_how_it_ended_and_what_it_said_last() -> None:
    result = "Exit code 101\n" + "\n".join(f"line {number}" for number in range(30))
    lines = shown(events(call(result, status="failed")))
    assert "failed, exit 101, 31 lines" in lines[1]
    assert lines[2] == "    │ … 25 earlier lines"
    assert lines[-1] == "    │ line 29"
    assert len(lines) == 9


def test_with_full_a_call_is_shown_with_its_arguments_and_all_that_came_of_it() -> None:
    result = "\n".join(f"line {number}" for number in range(500))
    lines = shown(events(call(result, params={"command": "ls"}, status="completed")), is_full=True)
    assert lines[2] == "    command: ls"
    assert lines[3] == "    │ line 0"
    assert len(lines) == 503


def test_only_the_message_that_was_asked_for_is_unfolded() -> None:
    two = events(call("first\n", status="completed"), call("second\n", status="completed"))
    assert [line for line in shown(two, unfolded=1) if "│" in line] == ["    │ second"]


def test_an_edit_is_a_diff_and_a_long_one_says_how_much_more_there_is() -> None:
    edit = Edit("/home/zoe/ferry/a.py", (Hunk((), tuple(str(number) for number in range(90))),))
    lines = shown(events(call("done", edits=(edit,), status="completed")), is_coloured=True)
    assert lines[3] == "    \x1b[32m+0\x1b[0m"
    assert "… 71 more lines" in lines[-1]
    whole = shown(events(call("done", edits=(edit,), status="completed")), is_full=True)
    assert "    +89" in whole


def test_a_path_in_the_workspace_is_told_from_there_on() -> None:
    tool = call("x", params={"file_path": "/home/zoe/ferry/src/a.py"}, status="completed")
    assert "▸ Bash  src/a.py ·" in shown(events(tool))[1]


def test_a_time_that_was_inferred_is_marked() -> None:
    said = replace(message("assistant", "x"), timestamp_source="neighbour")
    assert " · ~2026-10-03 " in shown(events(said))[1]


def test_a_line_of_a_megabyte_is_cut_and_says_so() -> None:
    said = events(message("user", "x" * 1_000_000))
    assert max(map(len, shown(said))) < MAX_LINE_CHARS + 60
    assert "998,000 more characters (--full shows all)" in shown(said)[2]
    assert "x" * 1_000_000 in shown(said, is_full=True)
    assert max(map(len, shown(said, width=80))) <= 80


def test_only_the_roles_that_were_asked_for_are_shown() -> None:
    said = events(
        message("user", "asked"), message("thinking", "thought"), call("ran"), message("assistant", "said")
    )
    text = "\n".join(shown(said, only=frozenset({"user", "assistant"})))
    assert "asked" in text
    assert "said" in text
    assert "thought" not in text
    assert "Bash" not in text


def nested() -> list[TranscriptItem]:
    agent = replace(SUMMARY, title="Find it", first_message_preview="Where is it?", parent_ref=SUMMARY.ref)
    inner = MessageItem(0, 1, message("assistant", "In the shed."))
    return [
        MessageItem(0, 1, call("ok")),
        SubagentStart(agent, True),
        inner,
        SubagentEnd(agent),
        MessageItem(1, 1, message("user", "Hm.")),
    ]


def test_a_subagent_stands_where_it_was_started_with_what_it_was_asked() -> None:
    told = [
        event for event in nested() if not isinstance(event, MessageItem) or event.message.role != "assistant"
    ]
    lines = shown(told)
    assert lines[2] == "  ⤷ subagent  Find it"
    assert "3 messages" in lines[3]
    assert lines[4] == "    Where is it?"


def test_what_a_subagent_said_is_beside_a_bar_and_what_follows_is_not() -> None:
    lines = shown(nested(), with_agents=True)
    assert "  │ In the shed." in lines
    assert "Hm." in lines


def test_an_abandoned_message_says_so() -> None:
    assert "You (abandoned)" in shown(events(replace(message("user", "x"), is_active=False)))[1]


def test_markdown_is_coloured_and_no_character_of_it_changed() -> None:
    text = "# Title\n\nUse `x` **now**:\n\n```py\nif x:\n    **y**\n```\nend"
    plain = shown(events(message("assistant", text)))
    assert "\n".join(plain[2:]) == text
    coloured = shown(events(message("assistant", text)), is_coloured=True)
    assert "\x1b[1m# Title\x1b[0m" in coloured
    assert "\x1b[36m    **y**\x1b[0m" in coloured
    assert "Use \x1b[36m`x`\x1b[0m \x1b[1m**now**\x1b[0m:" in coloured


@pytest.mark.parametrize("width", [None, 40])
@given(text=texts)
def test_whatever_a_history_holds_nothing_but_our_colours_reaches_the_terminal(
    text: str, width: int | None
) -> None:
    summary, told = session(text)
    for is_full in (False, True):
        view = TranscriptOptions(width=width, is_full=is_full, with_agents=True)
        lines = [*header_lines(summary, view), *transcript_lines(summary, told, view)]
        shown = "\n".join(lines)
        assert not set(shown) & set(map(chr, [*range(9), *range(11, 32), *range(127, 160)]))
        assert not set(shown) & set("\u200b\u202e\u2028")
        assert "The end of it." in shown
