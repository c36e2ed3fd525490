"""Transcripts of sessions: shown and collapsed parts."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from msgspec.structs import replace

from backscroll.model.message import Edit, Hunk, Message, ToolCall
from backscroll.render.transcript import MAX_LINE_CHARS, TranscriptOptions, header_lines, transcript_lines
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem
from tests.render.sessions import SUMMARY, items, message, session, texts


def shown(content: Iterable[TranscriptItem], **options: object) -> list[str]:
    return list(transcript_lines(SUMMARY, content, TranscriptOptions(**options)))  # type: ignore[arg-type]


def call(result: str | None, **fields: object) -> Message:
    return message("tool", tool=ToolCall(id="c", name="Bash", result=result, **fields))  # type: ignore[arg-type]


def test_a_call_is_one_line_with_the_size_of_its_result() -> None:
    [_, line] = shown(items(call("a\nb\nc\n", params={"command": "ls"}, status="completed")))
    assert line.startswith("  ▸ Bash  ls · 3 lines · ")
    assert line.endswith(" · #0")


def test_a_failed_call_shows_its_exit_code_and_last_lines() -> None:
    result = "Exit code 101\n" + "\n".join(f"line {number}" for number in range(30))
    lines = shown(items(call(result, status="failed")))
    assert "failed, exit 101, 31 lines" in lines[1]
    assert lines[2] == "    │ … 25 earlier lines"
    assert lines[-1] == "    │ line 29"
    assert len(lines) == 9


def test_full_shows_arguments_and_result_of_a_call() -> None:
    result = "\n".join(f"line {number}" for number in range(500))
    lines = shown(items(call(result, params={"command": "ls"}, status="completed")), is_full=True)
    assert lines[2] == "    command: ls"
    assert lines[3] == "    │ line 0"
    assert len(lines) == 503


def test_only_the_selected_message_is_expanded() -> None:
    two = items(call("first\n", status="completed"), call("second\n", status="completed"))
    assert [line for line in shown(two, unfolded=1) if "│" in line] == ["    │ second"]


def test_an_edit_is_a_diff_and_a_long_one_is_truncated() -> None:
    edit = Edit("/home/zoe/ferry/a.py", (Hunk((), tuple(str(number) for number in range(90))),))
    lines = shown(items(call("done", edits=(edit,), status="completed")), is_colored=True)
    assert lines[3] == "    \x1b[32m+0\x1b[0m"
    assert "… 71 more lines" in lines[-1]
    whole = shown(items(call("done", edits=(edit,), status="completed")), is_full=True)
    assert "    +89" in whole


def test_a_path_in_the_workspace_is_relative() -> None:
    tool = call("x", params={"file_path": "/home/zoe/ferry/src/a.py"}, status="completed")
    assert "▸ Bash  src/a.py ·" in shown(items(tool))[1]


def test_an_inferred_time_is_marked() -> None:
    messages = replace(message("assistant", "x"), timestamp_source="neighbour")
    assert " · ~2026-10-03 " in shown(items(messages))[1]


def test_a_line_of_a_megabyte_is_truncated_with_a_note() -> None:
    messages = items(message("user", "x" * 1_000_000))
    assert max(map(len, shown(messages))) < MAX_LINE_CHARS + 60
    assert "998,000 more characters (--full shows all)" in shown(messages)[2]
    assert "x" * 1_000_000 in shown(messages, is_full=True)
    assert max(map(len, shown(messages, width=80))) <= 80


def test_only_selected_roles_are_shown() -> None:
    messages = items(
        message("user", "asked"), message("thinking", "thought"), call("ran"), message("assistant", "replied")
    )
    text = "\n".join(shown(messages, only=frozenset({"user", "assistant"})))
    assert "asked" in text
    assert "replied" in text
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


def test_a_subagent_follows_its_call_and_shows_its_prompt() -> None:
    content = [
        item for item in nested() if not isinstance(item, MessageItem) or item.message.role != "assistant"
    ]
    lines = shown(content)
    assert lines[2] == "  ⤷ subagent  Find it"
    assert "3 messages" in lines[3]
    assert lines[4] == "    Where is it?"


def test_messages_of_a_subagent_are_behind_a_bar() -> None:
    lines = shown(nested(), with_agents=True)
    assert "  │ In the shed." in lines
    assert "Hm." in lines


def test_an_abandoned_message_is_marked() -> None:
    assert "You (abandoned)" in shown(items(replace(message("user", "x"), is_active=False)))[1]


def test_markdown_is_styled_without_changing_a_character() -> None:
    text = "# Title\n\nUse `x` **now**:\n\n```py\nif x:\n    **y**\n```\nend"
    plain = shown(items(message("assistant", text)))
    assert "\n".join(plain[2:]) == text
    colored = shown(items(message("assistant", text)), is_colored=True)
    assert "\x1b[1m# Title\x1b[0m" in colored
    assert "\x1b[36m    **y**\x1b[0m" in colored
    assert "Use \x1b[36m`x`\x1b[0m \x1b[1m**now**\x1b[0m:" in colored


@pytest.mark.parametrize("width", [None, 40])
@given(text=texts)
def test_no_control_characters_of_a_history_reach_the_terminal(text: str, width: int | None) -> None:
    summary, content = session(text)
    for is_full in (False, True):
        options = TranscriptOptions(width=width, is_full=is_full, with_agents=True)
        lines = [*header_lines(summary, options), *transcript_lines(summary, content, options)]
        shown = "\n".join(lines)
        assert not set(shown) & set(map(chr, [*range(9), *range(11, 32), *range(127, 160)]))
        assert not set(shown) & set("\u200b\u202e\u2028")
        assert "The end of it." in shown
