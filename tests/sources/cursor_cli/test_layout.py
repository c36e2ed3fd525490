"""Transcripts of one session in several places: one is shown, none is lost, and it is said."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from backscroll.model import Message
from backscroll.sources.cursor_cli import CursorCli
from backscroll.sources.cursor_cli.transcript_paths import TranscriptPath, parse_transcript_path
from backscroll.testing import cursor_cli
from backscroll.testing.cursor import assistant, user
from tests.oracle.fold import UnitContent, fold
from tests.oracle.join import join

from .reading import CWD, Store, read_all
from .reading import user as asked

ID = "7a3e0000-0000-4000-8000-000000000001"
OTHER = "7a3e0000-0000-4000-8000-000000000002"


def read(root: Path) -> dict[str, UnitContent]:
    """What each unit tells, by its path below the root."""
    source = CursorCli()
    units = list(source.units(root))
    return {str(Path(unit.path).relative_to(root)): fold(source.read(unit)) for unit in units}


def messages(told: UnitContent) -> list[Message]:
    return [message for reading in told.sessions for message in reading.messages]


def write(root: Path, *words: str, at: int, **how: Any) -> Path:
    said = [one for word in words for one in (user(word), assistant(f"about {word}"))]
    return cursor_cli.write_transcript(root, said, id=ID, mtime=at, **how)


@pytest.mark.parametrize(
    ("below", "found"),
    [
        (f"{ID}.txt", TranscriptPath("p", ID)),
        (f"{ID}.jsonl", TranscriptPath("p", ID)),
        (f"{ID}/{ID}.jsonl", TranscriptPath("p", ID)),
        (f"{ID}/{ID}.txt", TranscriptPath("p", ID)),
        (f"{ID}/notes.txt", None),
        (f"{ID}/{ID}.md", None),
        (f"{ID}/subagents/{OTHER}.jsonl", TranscriptPath("p", OTHER, ID)),
        (f"{ID}/subagents/{OTHER}/{OTHER}.jsonl", TranscriptPath("p", OTHER, ID)),
        (f"{ID}/subagents/{OTHER}/subagents/x.jsonl", TranscriptPath("p", "x", ID, OTHER)),
    ],
)
def test_the_place_says_whose_transcript_it_is(below: str, found: TranscriptPath | None) -> None:
    assert parse_transcript_path(Path("/root/projects/p/agent-transcripts") / below) == found


def test_of_two_projects_the_one_written_last_counts(tmp_path: Path) -> None:
    write(tmp_path, "older", at=1_790_000_000_000, project="empty-window")
    newer = write(tmp_path, "newer", at=1_790_000_100_000)
    (session,) = join(("cursor", told) for told in read(tmp_path).values()).values()
    assert [m.content for m in session.messages if m.is_active] == ["newer", "about newer"]
    assert [m.content for m in session.messages if not m.is_active] == ["older", "about older"]
    assert session.closing.metadata["ambiguous_transcripts"][0] == str(newer)


def test_of_two_projects_the_one_of_the_sessions_folder_counts_though_it_is_older(tmp_path: Path) -> None:
    Store(tmp_path, id=ID).write(sidecar={"schemaVersion": 1, "cwd": CWD})
    write(tmp_path, "mine", at=1_790_000_000_000)
    write(tmp_path, "stray", at=1_790_000_100_000, project="empty-window")
    told = read(tmp_path)
    active = [m.content for one in told.values() for m in messages(one) if m.is_active]
    assert active == ["mine", "about mine"]


def test_a_copy_and_an_earlier_state_of_a_transcript_are_counted_and_not_told_again(tmp_path: Path) -> None:
    write(tmp_path, "one", "two", at=1_790_000_100_000, status=None)
    early = write(tmp_path, "one", at=1_790_000_000_000, layout="flat", status=None)
    write(tmp_path, "one", "two", at=1_790_000_000_000, project="empty-window", status=None)
    told = read(tmp_path)
    assert sum(len(one.sessions) for one in told.values()) == 1
    copied = told[str(early.relative_to(tmp_path))].counts
    assert (copied.records, copied.ignored) == (len(early.read_text().splitlines()), 2)


def test_a_transcript_is_read_again_when_its_rival_changes(tmp_path: Path) -> None:
    write(tmp_path, "one", at=1_790_000_100_000)
    rival = write(tmp_path, "two", at=1_790_000_000_000, project="empty-window")
    before = {unit.path: unit.fingerprint for unit in CursorCli().units(tmp_path)}
    os.utime(rival, (1_790_000_200, 1_790_000_200))
    after = {unit.path: unit.fingerprint for unit in CursorCli().units(tmp_path)}
    assert all(after[path] != before[path] for path in before)


def test_which_transcript_counts_is_looked_at_anew_with_every_listing(tmp_path: Path) -> None:
    source = CursorCli()
    write(tmp_path, "first", at=1_790_000_000_000)
    (unit,) = source.units(tmp_path)
    fold(source.read(unit))
    write(tmp_path, "second", at=1_790_000_100_000, project="empty-window")
    units = list(source.units(tmp_path))
    told = [fold(source.read(unit)) for unit in units]
    assert [m.content for one in told for m in messages(one) if m.is_active] == ["second", "about second"]


def test_messages_of_two_transcripts_never_share_an_id(tmp_path: Path) -> None:
    cursor_cli.write_transcript(tmp_path, [user("hello")], id=ID)
    cursor_cli.write_transcript(tmp_path, [user("good evening")], id=OTHER)
    ids = [message.id for told in read(tmp_path).values() for message in messages(told)]
    assert len(set(ids)) == len(ids) == 2
    sessions = join(("cursor", told) for told in read(tmp_path).values())
    assert all(m.copied_from is None for session in sessions.values() for m in session.messages)


def test_a_subagents_transcript_tells_its_prompt_and_who_started_it(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "home-dev-shop" / "agent-transcripts" / ID / "subagents" / OTHER
    path = folder / "subagents" / "deep.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"role": "user", "message": {"content": "count them"}}))
    (told,) = read(tmp_path).values()
    (reading,) = told.sessions
    (agent,) = reading.closing.agents
    assert (reading.opening.agent_id, reading.opening.parent_id) == ("deep", ID)
    assert (agent.prompt, agent.parent_session_id, agent.parent_agent_id) == ("count them", ID, OTHER)


def test_text_beside_a_transcript_is_no_session(tmp_path: Path) -> None:
    path = write(tmp_path, "hello", at=1_790_000_000_000)
    path.with_name("output.txt").write_text("assistant:\nno\n")
    assert len(read(tmp_path)) == 1


def test_lines_of_other_roles_are_told_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "home-dev-shop" / "agent-transcripts"
    folder.mkdir(parents=True)
    lines: list[dict[str, Any]] = [
        {"role": "system", "message": {"content": "Be kind."}},
        {"role": "assistant", "message": {"content": [{"type": "tool_call", "id": "c", "name": "LS"}]}},
        {
            "role": "tool",
            "message": {"content": [{"type": "tool-result", "toolCallId": "c", "result": "a.py"}]},
        },
        {
            "role": "user",
            "message": {"content": [{"type": "tool_result", "tool_use_id": "d", "content": "b"}]},
        },
        {"role": "narrator", "message": {"content": "Meanwhile."}},
    ]
    (folder / f"{ID}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (told,) = read(tmp_path).values()
    found = [(m.role, m.tool.result if m.tool else m.content) for m in messages(told)]
    assert found == [("system", "Be kind."), ("tool", "a.py"), ("tool", "b"), ("system", "Meanwhile.")]
    assert told.counts.unknown == {"transcript line narrator": 1}


def test_a_role_line_pasted_into_a_prompt_is_part_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "home-dev-shop" / "agent-transcripts"
    folder.mkdir(parents=True)
    text = "user:\n<user_query>\nwhat is\nassistant:\nfor?\n</user_query>\nassistant:\nA role.\n"
    (folder / f"{ID}.txt").write_text(text)
    (told,) = read(tmp_path).values()
    assert [m.content for m in messages(told)] == ["what is\nassistant:\nfor?", "A role."]


def test_calls_made_together_in_old_text_are_answered_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "home-dev-shop" / "agent-transcripts"
    folder.mkdir(parents=True)
    calls = "".join(f"[Tool call] Read\n  path: /{name}\n" for name in "ab")
    results = "".join(f"[Tool result] Read\ntext of {name}\n" for name in "ab")
    (folder / f"{ID}.txt").write_text(f"assistant:\n{calls}{results}")
    (told,) = read(tmp_path).values()
    tools = [m.tool for m in messages(told) if m.tool]
    assert [(tool.params["path"], tool.result) for tool in tools] == [
        ("/a", "text of a"),
        ("/b", "text of b"),
    ]


def test_a_folder_linked_beside_itself_is_listed_once(tmp_path: Path) -> None:
    store = Store(tmp_path).say(asked("go")).write()
    hashed = store.folder.parent
    (hashed.parent / ("0" * 32)).symlink_to(hashed)
    (hashed.parent / "loop").symlink_to("loop")
    assert len(read_all(tmp_path)) == 1


def test_a_store_linked_from_outside_the_root_is_not_read(tmp_path: Path) -> None:
    outside = Store(tmp_path / "elsewhere").say(asked("go")).write()
    folder = tmp_path / "root" / "chats" / "h" / ID
    folder.mkdir(parents=True)
    (folder / "store.db").symlink_to(outside.path)
    assert read_all(tmp_path / "root") == []
