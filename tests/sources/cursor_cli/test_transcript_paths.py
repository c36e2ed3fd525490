"""Paths of transcripts, and several transcripts of one session: one is active, all are kept."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from backscroll.model.message import Message
from backscroll.sources.cursor_cli import CursorCli
from backscroll.sources.cursor_cli.locations import TranscriptPath, parse_transcript_path
from backscroll.testing import cursor_cli
from backscroll.testing.cursor import assistant, user
from tests.oracle.fold import UnitContent, fold
from tests.oracle.join import join

from .store_builder import CWD, Store, read_all
from .store_builder import user as store_user

ID = "7a3e0000-0000-4000-8000-000000000001"
OTHER = "7a3e0000-0000-4000-8000-000000000002"
THIRD = "7a3e0000-0000-4000-8000-000000000003"


def read(root: Path) -> dict[str, UnitContent]:
    """Read all units. Return their content by the path below the root."""
    source = CursorCli()
    units = list(source.units(root))
    return {str(Path(unit.path).relative_to(root)): fold(source.read(unit)) for unit in units}


def messages(content: UnitContent) -> list[Message]:
    return [message for session in content.sessions for message in session.messages]


def write(root: Path, *words: str, at: int, **options: Any) -> Path:
    written = [message for word in words for message in (user(word), assistant(f"about {word}"))]
    return cursor_cli.write_transcript(root, written, id=ID, mtime=at, **options)


@pytest.mark.parametrize(
    ("path", "parsed"),
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
def test_the_path_of_a_transcript_names_its_session(path: str, parsed: TranscriptPath | None) -> None:
    assert parse_transcript_path(Path("/root/projects/p/agent-transcripts") / path) == parsed


def test_the_newest_of_two_transcripts_is_active(tmp_path: Path) -> None:
    write(tmp_path, "older", at=1_790_000_000_000, project="empty-window")
    newer = write(tmp_path, "newer", at=1_790_000_100_000)
    (session,) = join(("cursor", content) for content in read(tmp_path).values()).values()
    assert [m.content for m in session.messages if m.is_active] == ["newer", "about newer"]
    assert [m.content for m in session.messages if not m.is_active] == ["older", "about older"]
    assert session.closing.metadata["ambiguous_transcripts"][0] == str(newer)


def test_the_transcript_in_the_project_of_the_session_is_active_even_if_older(tmp_path: Path) -> None:
    Store(tmp_path, id=ID).write(sidecar={"schemaVersion": 1, "cwd": CWD})
    write(tmp_path, "mine", at=1_790_000_000_000)
    write(tmp_path, "stray", at=1_790_000_100_000, project="empty-window")
    contents = read(tmp_path)
    active = [m.content for content in contents.values() for m in messages(content) if m.is_active]
    assert active == ["mine", "about mine"]


@pytest.mark.parametrize("has_metadata", [True, False])
def test_a_transcript_in_a_known_project_is_active_even_if_older(has_metadata: bool, tmp_path: Path) -> None:
    Store(tmp_path, id=OTHER).write(sidecar={"schemaVersion": 1, "cwd": CWD})
    if not has_metadata:  # the name of the session's folder is the hash of its working directory
        Store(tmp_path, id=THIRD).write(sidecar={"schemaVersion": 1, "cwd": "/home/dev/other"})
        (tmp_path / "chats" / cursor_cli.folder_hash(CWD) / ID).mkdir()
        write(tmp_path, "elsewhere", at=1_790_000_200_000, project="home-dev-other")
    write(tmp_path, "mine", at=1_790_000_000_000)
    write(tmp_path, "stray", at=1_790_000_100_000, project="empty-window")
    sessions = [session for content in read(tmp_path).values() for session in content.sessions]
    (active,) = (one for one in sessions if any(message.is_active for message in one.messages))
    assert [message.content for message in active.messages] == ["mine", "about mine"]
    assert active.closing.workspace is not None
    assert active.closing.workspace.path == CWD
    assert active.closing.reasons[1:] == ("another project has a different transcript with the same id",)
    others = [one.closing.workspace for one in sessions if one is not active and one.opening.id == ID]
    assert set(others) == {None}


def test_a_copy_or_an_earlier_state_of_a_transcript_is_only_counted(tmp_path: Path) -> None:
    write(tmp_path, "one", "two", at=1_790_000_100_000, status=None)
    early = write(tmp_path, "one", at=1_790_000_000_000, layout="flat", status=None)
    write(tmp_path, "one", "two", at=1_790_000_000_000, project="empty-window", status=None)
    contents = read(tmp_path)
    assert sum(len(content.sessions) for content in contents.values()) == 1
    copied = contents[str(early.relative_to(tmp_path))].counts
    assert (copied.records, copied.ignored) == (len(early.read_text().splitlines()), 2)


def test_a_transcript_is_read_again_when_another_of_its_session_changes(tmp_path: Path) -> None:
    write(tmp_path, "one", at=1_790_000_100_000)
    other = write(tmp_path, "two", at=1_790_000_000_000, project="empty-window")
    before = {unit.path: unit.fingerprint for unit in CursorCli().units(tmp_path)}
    os.utime(other, (1_790_000_200, 1_790_000_200))
    after = {unit.path: unit.fingerprint for unit in CursorCli().units(tmp_path)}
    assert all(after[path] != before[path] for path in before)


def test_every_listing_decides_again_which_transcript_is_active(tmp_path: Path) -> None:
    source = CursorCli()
    write(tmp_path, "first", at=1_790_000_000_000)
    (unit,) = source.units(tmp_path)
    fold(source.read(unit))
    write(tmp_path, "second", at=1_790_000_100_000, project="empty-window")
    units = list(source.units(tmp_path))
    contents = [fold(source.read(unit)) for unit in units]
    active = [m.content for content in contents for m in messages(content) if m.is_active]
    assert active == ["second", "about second"]


def test_messages_of_two_transcripts_never_share_an_id(tmp_path: Path) -> None:
    cursor_cli.write_transcript(tmp_path, [user("hello")], id=ID)
    cursor_cli.write_transcript(tmp_path, [user("good evening")], id=OTHER)
    ids = [message.id for content in read(tmp_path).values() for message in messages(content)]
    assert len(set(ids)) == len(ids) == 2
    sessions = join(("cursor", content) for content in read(tmp_path).values())
    assert all(m.copied_from is None for session in sessions.values() for m in session.messages)


def test_a_subagent_transcript_has_its_prompt_and_parent(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "home-dev-shop" / "agent-transcripts" / ID / "subagents" / OTHER
    path = folder / "subagents" / "deep.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"role": "user", "message": {"content": "count them"}}))
    (content,) = read(tmp_path).values()
    (session,) = content.sessions
    (agent,) = session.closing.agents
    assert (session.opening.agent_id, session.opening.parent_id) == ("deep", ID)
    assert (agent.prompt, agent.parent_session_id, agent.parent_agent_id) == ("count them", ID, OTHER)


def test_a_text_file_beside_a_transcript_is_not_a_session(tmp_path: Path) -> None:
    path = write(tmp_path, "hello", at=1_790_000_000_000)
    path.with_name("output.txt").write_text("assistant:\nno\n")
    assert len(read(tmp_path)) == 1


def test_lines_of_all_roles_are_parsed_and_unknown_ones_are_counted(tmp_path: Path) -> None:
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
    (content,) = read(tmp_path).values()
    found = [(m.role, m.tool.result if m.tool else m.content) for m in messages(content)]
    assert found == [("system", "Be kind."), ("tool", "a.py"), ("tool", "b"), ("system", "Meanwhile.")]
    assert content.counts.unknown == {"transcript line narrator": 1}


def test_a_role_line_pasted_into_a_prompt_is_part_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "home-dev-shop" / "agent-transcripts"
    folder.mkdir(parents=True)
    text = "user:\n<user_query>\nwhat is\nassistant:\nfor?\n</user_query>\nassistant:\nA role.\n"
    (folder / f"{ID}.txt").write_text(text)
    (content,) = read(tmp_path).values()
    assert [m.content for m in messages(content)] == ["what is\nassistant:\nfor?", "A role."]


def test_results_of_consecutive_calls_in_plain_text_are_joined_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "home-dev-shop" / "agent-transcripts"
    folder.mkdir(parents=True)
    calls = "".join(f"[Tool call] Read\n  path: /{name}\n" for name in "ab")
    results = "".join(f"[Tool result] Read\ntext of {name}\n" for name in "ab")
    (folder / f"{ID}.txt").write_text(f"assistant:\n{calls}{results}")
    (content,) = read(tmp_path).values()
    tools = [m.tool for m in messages(content) if m.tool]
    assert [(tool.params["path"], tool.result) for tool in tools] == [
        ("/a", "text of a"),
        ("/b", "text of b"),
    ]


def test_a_folder_with_a_link_beside_it_is_listed_once(tmp_path: Path) -> None:
    store = Store(tmp_path).with_messages(store_user("go")).write()
    hash_folder = store.folder.parent
    (hash_folder.parent / ("0" * 32)).symlink_to(hash_folder)
    (hash_folder.parent / "loop").symlink_to("loop")
    assert len(read_all(tmp_path)) == 1


def test_a_store_linked_from_outside_the_root_is_not_read(tmp_path: Path) -> None:
    outside = Store(tmp_path / "elsewhere").with_messages(store_user("go")).write()
    folder = tmp_path / "root" / "chats" / "h" / ID
    folder.mkdir(parents=True)
    (folder / "store.db").symlink_to(outside.path)
    assert read_all(tmp_path / "root") == []
