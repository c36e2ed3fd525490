"""Transcripts are read as lossy sessions."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.sources.cursor_cli import CursorCli
from tests.oracle.fold import UnitContent, fold

from .store_builder import CWD, Store, main_session, read_all, read_one, roles_and_texts, user

ID = "7a3e0000-0000-4000-8000-000000000001"
STAMP = "<timestamp>Monday, Sep 21, 2026, 4:13 PM (UTC+2)</timestamp>"


def line(role: str, *parts: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"role": role, "message": {"content": content}}


def prompt(text: str, stamp: str = "") -> dict[str, Any]:
    return line("user", f"{stamp}\n<user_query>\n{text}\n</user_query>")


def tool_use(name: str, **params: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": params}


def write(root: Path, *records: Any, file: str = f"{ID}/{ID}.jsonl", slug: str = "home-dev-shop") -> Path:
    path = root / "projects" / slug / "agent-transcripts" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in records) if records else "")
    return path


def write_and_read(root: Path, *records: Any) -> UnitContent:
    write(root, *records)
    return read_one(root)


def test_a_transcript_is_a_lossy_session(tmp_path: Path) -> None:
    content = write_and_read(
        tmp_path,
        prompt("Totals are off", STAMP),
        line("assistant", "Looking.", tool_use("Read", path=f"{CWD}/cart.py")),
        line("assistant", "Fixed."),
        {"type": "turn_ended", "status": "success"},
    )
    session = main_session(content)
    assert roles_and_texts(content) == [
        ("user", "Totals are off"),
        ("assistant", "Looking."),
        ("tool", "Read: None"),
        ("assistant", "Fixed."),
    ]
    assert (session.opening.id, session.opening.store, session.closing.completeness) == (
        ID,
        "transcript",
        "lossy",
    )
    assert content.counts.kinds == {"user": 1, "assistant": 2, "turn_ended": 1}
    assert (content.counts.parsed, content.counts.ignored) == (3, 1)


def test_answers_get_the_time_of_the_prompt_before_them(tmp_path: Path) -> None:
    content = write_and_read(
        tmp_path, prompt("one", STAMP), line("assistant", "1"), prompt("two"), line("assistant", "2")
    )
    at = datetime(2026, 9, 21, 14, 13, tzinfo=UTC)
    found = [(message.timestamp, message.timestamp_source) for message in main_session(content).messages]
    assert found == [(at, "stored"), (at, "turn"), (at, "turn"), (at, "turn")]
    assert (main_session(content).closing.created_at, main_session(content).closing.created_at_source) == (
        at,
        "stored",
    )


def test_a_transcript_without_times_starts_at_the_time_of_its_file(tmp_path: Path) -> None:
    content = write_and_read(tmp_path, prompt("one"))
    assert main_session(content).messages[0].timestamp is None
    assert main_session(content).closing.created_at_source == "file"


def test_the_placeholder_for_thinking_is_removed(tmp_path: Path) -> None:
    content = write_and_read(
        tmp_path, prompt("go"), line("assistant", "[REDACTED]"), line("assistant", "Done.\n\n[REDACTED]")
    )
    assert roles_and_texts(content) == [("user", "go"), ("assistant", "Done.")]
    assert content.counts.ignored == 1


def test_failed_and_aborted_turns_have_a_message(tmp_path: Path) -> None:
    content = write_and_read(
        tmp_path,
        prompt("go"),
        {"type": "error", "error": {"message": "No connection"}},
        {"type": "turn_ended", "status": "error", "error": "No connection"},
        {"type": "turn_ended", "status": "error", "error": "Gave up"},
        {"type": "turn_ended", "status": "aborted"},
    )
    assert [(m.role, m.kind, m.content) for m in main_session(content).messages[1:]] == [
        ("error", None, "No connection"),
        ("error", None, "Gave up"),
        ("system", "interruption", "The turn was aborted."),
    ]


def test_injected_prompts_are_synthetic(tmp_path: Path) -> None:
    content = write_and_read(
        tmp_path,
        prompt("go"),
        prompt("The subagent explore has finished."),
        line("user", "<user_info>x</user_info>"),
    )
    assert [(m.role, m.kind) for m in main_session(content).messages] == [
        ("user", None),
        ("user", "synthetic"),
        ("system", "context"),
    ]


def test_a_transcript_without_messages_is_a_draft(tmp_path: Path) -> None:
    assert (
        main_session(write_and_read(tmp_path, {"type": "turn_ended", "status": "success"})).closing.visibility
        == "draft"
    )


def test_unknown_lines_are_reported(tmp_path: Path) -> None:
    content = write_and_read(tmp_path, prompt("go"), {"type": "hologram"})
    assert content.counts.unknown == {"transcript line hologram": 1}
    assert (content.counts.problems, len(content.problems)) == (1, 1)


def test_a_truncated_line_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path, prompt("go"), line("assistant", "Done."))
    path.write_bytes(path.read_bytes()[:-20])
    content = read_one(tmp_path)
    assert roles_and_texts(content) == [("user", "go")]
    assert [problem.origin.place for problem in content.problems] == ["line 2"]


def test_the_transcript_of_a_subagent_names_its_parent(tmp_path: Path) -> None:
    write(tmp_path, prompt("count"), file=f"{ID}/subagents/child-1.jsonl")
    (session,) = read_one(tmp_path).sessions
    assert (session.opening.id, session.opening.agent_id, session.opening.parent_id) == (
        "child-1",
        "child-1",
        ID,
    )
    assert session.messages[0].agent_id == "child-1"


@pytest.mark.parametrize("file", [f"{ID}.jsonl", f"{ID}/{ID}.jsonl"])
def test_json_lines_in_both_layouts_replace_plain_text(tmp_path: Path, file: str) -> None:
    write(tmp_path, prompt("from lines"), file=file)
    write(tmp_path, file=f"{ID}.txt").write_text("user:\nfrom text\n")
    assert roles_and_texts(read_one(tmp_path)) == [("user", "from lines")]


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


def test_plain_text_transcripts_are_read(tmp_path: Path) -> None:
    write(tmp_path, file=f"{ID}.txt").write_text(TEXT)
    content = read_one(tmp_path)
    assert roles_and_texts(content) == [
        ("user", "Totals are off"),
        ("thinking", "Check rounding.\nTwice, maybe.\nLooking."),
        ("tool", "Read: def total(): ..."),
        ("assistant", "Fixed."),
    ]
    (tool,) = [message.tool for message in main_session(content).messages if message.tool]
    assert (tool.params, tool.status) == ({"path": f"{CWD}/cart.py", "limit": "10"}, "completed")
    assert main_session(content).messages[-1].timestamp == datetime(2026, 9, 21, 14, 13, tzinfo=UTC)


def test_text_after_the_arguments_of_a_call_is_an_answer(tmp_path: Path) -> None:
    write(tmp_path, file=f"{ID}.txt").write_text("assistant:\n[Tool call] LS\n  path: /x\nThat is all.\n")
    assert roles_and_texts(read_one(tmp_path)) == [("tool", "LS: None"), ("assistant", "That is all.")]


def test_text_after_an_empty_result_is_an_answer(tmp_path: Path) -> None:
    written = "assistant:\n[Tool call] LS\n  path: /x\n[Tool result] LS\n\nThat is all.\n"
    write(tmp_path, file=f"{ID}.txt").write_text(written)
    assert roles_and_texts(read_one(tmp_path)) == [("tool", "LS: "), ("assistant", "That is all.")]


def test_the_workspace_can_come_from_another_session(tmp_path: Path) -> None:
    Store(tmp_path, cwd="/home/dev/my-shop").with_messages(user("go")).write(
        sidecar={"schemaVersion": 1, "cwd": "/home/dev/my-shop"}
    )
    write(tmp_path, prompt("go"), slug="home-dev-my-shop")
    content = read_all(tmp_path)[-1]
    workspace = main_session(content).closing.workspace
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
def test_the_workspace_is_a_mentioned_folder_with_the_slug_of_the_project(
    tmp_path: Path, slug: str, path: str, folder: str | None
) -> None:
    write(tmp_path, prompt("go"), line("assistant", tool_use("Read", path=path)), slug=slug)
    workspace = main_session(read_one(tmp_path)).closing.workspace
    assert (workspace.path if workspace else None) == folder


@given(st.binary(max_size=300))
def test_any_bytes_can_be_read_as_a_transcript(tmp_path: Path, data: bytes) -> None:
    valid_line = json.dumps(prompt("kept")).encode() + b"\n"
    for name in ("a.jsonl", "b.txt"):
        path = write(tmp_path, file=name)
        path.write_bytes(data)
        read_all(tmp_path)
    path = write(tmp_path, file="a.jsonl")
    path.write_bytes(valid_line + data)
    (content, _) = read_all(tmp_path)
    assert roles_and_texts(content)[0] == ("user", "kept")


@given(cut=st.integers(0, len(TEXT.encode())))
def test_truncating_a_text_keeps_everything_before(tmp_path: Path, cut: int) -> None:
    write(tmp_path, file="a.txt").write_bytes(TEXT.encode()[:cut])
    content = read_one(tmp_path)
    assert content.problems == ()
    assert ("Totals are off" in repr(main_session(content).messages)) is (cut >= TEXT.index("off") + 3)


def test_a_transcript_has_no_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, prompt("go"))
    source = CursorCli()
    (unit,) = source.units(tmp_path)
    assert fold(source.read(unit)).counts.checkpoint is None


def test_the_text_of_an_unknown_part_is_kept(tmp_path: Path) -> None:
    part = {"type": "mcp_tool_result", "id": "x1", "content": [{"inner": "what the server said"}]}
    content = write_and_read(tmp_path, prompt("go"), line("assistant", "Looking.", part))
    assert roles_and_texts(content) == [
        ("user", "go"),
        ("assistant", "Looking."),
        ("assistant", "what the server said"),
    ]
    assert content.counts.unknown == {"part type mcp_tool_result": 1}


@pytest.mark.parametrize(
    "record",
    [
        {"role": "assistant", "words": [{"type": "text", "text": "hello"}]},
        {"role": "user", "message": {"parts": ["hello"]}},
    ],
)
def test_a_line_without_a_message_is_a_problem(record: dict[str, Any], tmp_path: Path) -> None:
    content = write_and_read(tmp_path, prompt("go"), record, line("assistant", "Done."))
    assert [(problem.origin.place, problem.reason) for problem in content.problems] == [
        ("line 2", "has no recognized content")
    ]
    assert (content.counts.parsed, content.counts.problems) == (2, 1)


def test_results_in_a_transcript_join_the_calls_before_them(tmp_path: Path) -> None:
    results = [{"type": "tool_result", "name": "Read", "content": text} for text in ("one", "two")]
    content = write_and_read(
        tmp_path,
        prompt("go"),
        line("assistant", "Looking.", tool_use("Read", path="a"), tool_use("Read", path="b")),
        line("tool", *results),
        line("assistant", tool_use("Read", path="c")),
        line("assistant", "Done."),
    )
    assert roles_and_texts(content) == [
        ("user", "go"),
        ("assistant", "Looking."),
        ("tool", "Read: one"),
        ("tool", "Read: two"),
        ("tool", "Read: None"),
        ("assistant", "Done."),
    ]
