"""Transcripts: what they hold comes back, and that they hold less is said."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.sources.cursor_cli import CursorCli
from tests.oracle.fold import UnitContent, fold

from .reading import CWD, Store, only, read_all, read_one, said, user

ID = "7a3e0000-0000-4000-8000-000000000001"
STAMP = "<timestamp>Monday, Sep 21, 2026, 4:13 PM (UTC+2)</timestamp>"


def line(role: str, *parts: Any) -> dict[str, Any]:
    spelled = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"role": role, "message": {"content": spelled}}


def prompt(text: str, stamp: str = "") -> dict[str, Any]:
    return line("user", f"{stamp}\n<user_query>\n{text}\n</user_query>")


def use(name: str, **params: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": params}


def write(root: Path, *records: Any, place: str = f"{ID}/{ID}.jsonl", slug: str = "home-dev-shop") -> Path:
    path = root / "projects" / slug / "agent-transcripts" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in records) if records else "")
    return path


def told_of(root: Path, *records: Any) -> UnitContent:
    write(root, *records)
    return read_one(root)


def test_a_transcript_is_a_lossy_session(tmp_path: Path) -> None:
    told = told_of(
        tmp_path,
        prompt("Totals are off", STAMP),
        line("assistant", "Looking.", use("Read", path=f"{CWD}/cart.py")),
        line("assistant", "Fixed."),
        {"type": "turn_ended", "status": "success"},
    )
    reading = only(told)
    assert said(told) == [
        ("user", "Totals are off"),
        ("assistant", "Looking."),
        ("tool", "Read: None"),
        ("assistant", "Fixed."),
    ]
    assert (reading.opening.id, reading.opening.store, reading.closing.completeness) == (
        ID,
        "transcript",
        "lossy",
    )
    assert told.counts.kinds == {"user": 1, "assistant": 2, "turn_ended": 1}
    assert (told.counts.parsed, told.counts.ignored) == (3, 1)


def test_answers_have_the_time_of_the_prompt_before_them(tmp_path: Path) -> None:
    told = told_of(
        tmp_path, prompt("one", STAMP), line("assistant", "1"), prompt("two"), line("assistant", "2")
    )
    at = datetime(2026, 9, 21, 14, 13, tzinfo=UTC)
    found = [(message.timestamp, message.timestamp_source) for message in only(told).messages]
    assert found == [(at, "stored"), (at, "turn"), (at, "turn"), (at, "turn")]
    assert (only(told).closing.created_at, only(told).closing.created_at_source) == (at, "stored")


def test_a_transcript_without_times_starts_when_its_file_says(tmp_path: Path) -> None:
    told = told_of(tmp_path, prompt("one"))
    assert only(told).messages[0].timestamp is None
    assert only(told).closing.created_at_source == "file"


def test_the_placeholder_for_thinking_is_taken_off(tmp_path: Path) -> None:
    told = told_of(
        tmp_path, prompt("go"), line("assistant", "[REDACTED]"), line("assistant", "Done.\n\n[REDACTED]")
    )
    assert said(told) == [("user", "go"), ("assistant", "Done.")]
    assert told.counts.ignored == 1


def test_turns_that_failed_or_were_stopped_say_so(tmp_path: Path) -> None:
    told = told_of(
        tmp_path,
        prompt("go"),
        {"type": "error", "error": {"message": "No connection"}},
        {"type": "turn_ended", "status": "error", "error": "No connection"},
        {"type": "turn_ended", "status": "error", "error": "Gave up"},
        {"type": "turn_ended", "status": "aborted"},
    )
    assert [(m.role, m.kind, m.content) for m in only(told).messages[1:]] == [
        ("error", None, "No connection"),
        ("error", None, "Gave up"),
        ("system", "interruption", "The turn was aborted."),
    ]


def test_what_the_tool_injects_is_marked(tmp_path: Path) -> None:
    told = told_of(
        tmp_path,
        prompt("go"),
        prompt("The subagent explore has finished."),
        line("user", "<user_info>x</user_info>"),
    )
    assert [(m.role, m.kind) for m in only(told).messages] == [
        ("user", None),
        ("user", "synthetic"),
        ("system", "context"),
    ]


def test_a_stub_is_a_draft(tmp_path: Path) -> None:
    assert only(told_of(tmp_path, {"type": "turn_ended", "status": "success"})).closing.visibility == "draft"


def test_lines_that_nobody_knows_are_said(tmp_path: Path) -> None:
    told = told_of(tmp_path, prompt("go"), {"type": "hologram"})
    assert told.counts.unknown == {"transcript line hologram": 1}
    assert (told.counts.problems, len(told.problems)) == (1, 1)


def test_a_line_cut_off_while_it_is_written_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, prompt("go"), line("assistant", "Done."))
    path.write_bytes(path.read_bytes()[:-20])
    told = read_one(tmp_path)
    assert said(told) == [("user", "go")]
    assert [problem.origin.place for problem in told.problems] == ["line 2"]


def test_a_subagents_transcript_names_its_parent(tmp_path: Path) -> None:
    write(tmp_path, prompt("count"), place=f"{ID}/subagents/child-1.jsonl")
    (reading,) = read_one(tmp_path).sessions
    assert (reading.opening.id, reading.opening.agent_id, reading.opening.parent_id) == (
        "child-1",
        "child-1",
        ID,
    )
    assert reading.messages[0].agent_id == "child-1"


@pytest.mark.parametrize("place", [f"{ID}.jsonl", f"{ID}/{ID}.jsonl"])
def test_both_layouts_are_found_and_text_gives_way_to_lines(tmp_path: Path, place: str) -> None:
    write(tmp_path, prompt("from lines"), place=place)
    write(tmp_path, place=f"{ID}.txt").write_text("user:\nfrom text\n")
    assert said(read_one(tmp_path)) == [("user", "from lines")]


TEXT = f"""user:
{STAMP}
<user_query>
Totals are off
</user_query>

assistant:
[Thinking] Check rounding.
Twice, maybe.
Looking.
[Tool call] Read
  path: {CWD}/cart.py
  limit: 10

[Tool result] Read
def total(): ...
assistant:
Fixed.
"""


def test_the_oldest_transcripts_are_plain_text(tmp_path: Path) -> None:
    write(tmp_path, place=f"{ID}.txt").write_text(TEXT)
    told = read_one(tmp_path)
    assert said(told) == [
        ("user", "Totals are off"),
        ("thinking", "Check rounding.\nTwice, maybe.\nLooking."),
        ("tool", "Read: def total(): ..."),
        ("assistant", "Fixed."),
    ]
    (tool,) = [message.tool for message in only(told).messages if message.tool]
    assert (tool.params, tool.status) == ({"path": f"{CWD}/cart.py", "limit": "10"}, "completed")
    assert only(told).messages[-1].timestamp == datetime(2026, 9, 21, 14, 13, tzinfo=UTC)


def test_text_after_a_calls_arguments_is_the_assistants(tmp_path: Path) -> None:
    write(tmp_path, place=f"{ID}.txt").write_text("assistant:\n[Tool call] LS\n  path: /x\nThat is all.\n")
    assert said(read_one(tmp_path)) == [("tool", "LS: None"), ("assistant", "That is all.")]


def test_text_after_an_empty_result_is_the_assistants(tmp_path: Path) -> None:
    written = "assistant:\n[Tool call] LS\n  path: /x\n[Tool result] LS\n\nThat is all.\n"
    write(tmp_path, place=f"{ID}.txt").write_text(written)
    assert said(read_one(tmp_path)) == [("tool", "LS: "), ("assistant", "That is all.")]


def test_a_folder_is_known_from_another_session(tmp_path: Path) -> None:
    Store(tmp_path, cwd="/home/dev/my-shop").say(user("go")).write(
        sidecar={"schemaVersion": 1, "cwd": "/home/dev/my-shop"}
    )
    write(tmp_path, prompt("go"), slug="home-dev-my-shop")
    told = read_all(tmp_path)[-1]
    workspace = only(told).closing.workspace
    assert workspace is not None
    assert workspace.path == "/home/dev/my-shop"


@pytest.mark.parametrize(
    ("slug", "path", "folder"),
    [
        ("home-dev-my-shop", "/home/dev/my-shop/src/a.py", "/home/dev/my-shop"),
        ("home-dev-my-shop-v2", "/home/dev/my.shop v2/a.py", "/home/dev/my.shop v2"),
        ("d-1-Back", "D:\\1\\Back\\src\\a.py", "D:\\1\\Back"),
        ("home-dev-shop", "/elsewhere/a.py", None),
        ("home-dev-shop", "cart.py", None),
        ("empty-window", f"{CWD}/cart.py", None),
    ],
)
def test_a_folder_is_recognised_by_what_it_would_be_called(
    tmp_path: Path, slug: str, path: str, folder: str | None
) -> None:
    write(tmp_path, prompt("go"), line("assistant", use("Read", path=path)), slug=slug)
    workspace = only(read_one(tmp_path)).closing.workspace
    assert (workspace.path if workspace else None) == folder


@given(st.binary(max_size=300))
def test_any_bytes_are_a_transcript_of_some_kind(tmp_path: Path, data: bytes) -> None:
    whole = json.dumps(prompt("kept")).encode() + b"\n"
    for name in ("a.jsonl", "b.txt"):
        path = write(tmp_path, place=name)
        path.write_bytes(data)
        read_all(tmp_path)
    path = write(tmp_path, place="a.jsonl")
    path.write_bytes(whole + data)
    (told, _) = read_all(tmp_path)
    assert said(told)[0] == ("user", "kept")


@given(cut=st.integers(0, len(TEXT.encode())))
def test_a_text_cut_anywhere_keeps_what_came_before(tmp_path: Path, cut: int) -> None:
    write(tmp_path, place="a.txt").write_bytes(TEXT.encode()[:cut])
    told = read_one(tmp_path)
    assert told.problems == ()
    assert ("Totals are off" in repr(only(told).messages)) is (cut >= TEXT.index("off") + 3)


def test_reading_since_a_mark_gives_everything_again(tmp_path: Path) -> None:
    write(tmp_path, prompt("go"))
    source = CursorCli()
    (unit,) = source.units(tmp_path)
    assert fold(source.read(unit)).counts.checkpoint is None


def test_a_part_of_an_unknown_form_still_says_its_words(tmp_path: Path) -> None:
    part = {"type": "mcp_tool_result", "id": "x1", "content": [{"inner": "what the server said"}]}
    told = told_of(tmp_path, prompt("go"), line("assistant", "Looking.", part))
    assert said(told) == [("user", "go"), ("assistant", "Looking."), ("assistant", "what the server said")]
    assert told.counts.unknown == {"part type mcp_tool_result": 1}


@pytest.mark.parametrize(
    "record",
    [
        {"role": "assistant", "words": [{"type": "text", "text": "hello"}]},
        {"role": "user", "message": {"parts": ["hello"]}},
    ],
)
def test_a_line_without_a_message_is_a_problem(record: dict[str, Any], tmp_path: Path) -> None:
    told = told_of(tmp_path, prompt("go"), record, line("assistant", "Done."))
    assert [(one.origin.place, one.reason) for one in told.problems] == [
        ("line 2", "says nothing that is understood")
    ]
    assert (told.counts.parsed, told.counts.problems) == (2, 1)


def test_results_in_a_transcript_join_the_calls_before_them(tmp_path: Path) -> None:
    answers = [{"type": "tool_result", "name": "Read", "content": text} for text in ("one", "two")]
    told = told_of(
        tmp_path,
        prompt("go"),
        line("assistant", "Looking.", use("Read", path="a"), use("Read", path="b")),
        line("tool", *answers),
        line("assistant", use("Read", path="c")),
        line("assistant", "Done."),
    )
    assert said(told) == [
        ("user", "go"),
        ("assistant", "Looking."),
        ("tool", "Read: one"),
        ("tool", "Read: two"),
        ("tool", "Read: None"),
        ("assistant", "Done."),
    ]
