"""A sync moves the records of hooks into the archive, each exactly once, and doubles nothing."""

import json
import os
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll import History
from backscroll.archive.hooks import HookEvents
from backscroll.archive.storage.codec import decompress
from backscroll.config import NamedRoot
from backscroll.errors import ArchiveError
from backscroll.hooks.shell_command import hook_command
from backscroll.ingest import hooks as spool_module
from backscroll.ingest.hooks import parse_event
from backscroll.model.statistics import Tokens
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript
from tests.builders.hooks import (
    CLAUDE_SESSION,
    CURSOR_SESSION,
    claude_event,
    cursor_event,
    write_line,
    write_record,
)

NOON = int(datetime(2026, 10, 30, 12, tzinfo=UTC).timestamp() * 1000)
KILLS = int(os.environ.get("KILLS", "3"))
STOP = {"status": "completed", "input_tokens": 20152, "output_tokens": 15, "cache_read_tokens": 8704}


class Home:
    """An archive with a spool and the roots of all tools."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "home"
        self.spool = self.folder / "spool"
        self.claude = folder / "claude"
        self.cursor = folder / "cursor"
        self.claude.mkdir()
        self.cursor.mkdir()
        self.spool.mkdir(parents=True)

    def open(self) -> History:
        roots = [NamedRoot("claude-code", self.claude), NamedRoot("cursor", self.cursor)]
        return History(home=self.folder, roots=roots)

    def sync(self) -> int:
        with self.open() as history:
            report = history.sync()
            assert report is not None
            return report.hook_events

    def row(self, id_: str) -> dict[str, Any]:
        with closing(sqlite3.connect(self.folder / "archive.db")) as db:
            db.row_factory = sqlite3.Row
            row = db.execute("select * from conversations where external_id = ?", [id_]).fetchone()
            return dict(row)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "archive.db")) as db:
            return db.execute(sql).fetchall()

    def messages(self, id_: str) -> list[tuple[str, str]]:
        with self.open() as history:
            session = history.get_session(id_)
            return [(m.role, m.tool.name if m.tool else m.content) for m in session.messages]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def write_claude_events(home: Home, at: int = NOON) -> None:
    response = {"filePath": "/a", "structuredPatch": [{"lines": [" a", "+b", "+c", "-d", "+e"]}]}
    tool = {"tool_name": "Edit", "tool_use_id": "toolu_1", "tool_input": {"file_path": "/a"}}
    for number, event in enumerate(
        (
            claude_event("SessionStart", source="startup"),
            claude_event("UserPromptSubmit", prompt="Fix the ferry test"),
            claude_event("PostToolUse", **tool, tool_response=response),
            claude_event("Stop", stop_hook_active=False, last_assistant_message="Done."),
        )
    ):
        write_record(home.spool, event, at=at + number * 1000)


def test_a_session_that_no_file_contains_is_listed_from_its_events(home: Home) -> None:
    write_claude_events(home)
    assert home.sync() == 4
    assert home.messages(CLAUDE_SESSION) == [
        ("user", "Fix the ferry test"),
        ("tool", "Edit"),
        ("assistant", "Done."),
    ]
    row = home.row(CLAUDE_SESSION)
    assert (row["title"], row["workspace_path"]) == ("Fix the ferry test", "/home/zoe/tideline")
    assert (row["completeness"], row["total_changes"], row["interaction_count"]) == ("lossy", 4, 1)
    assert row["started_at"] == "2026-10-30T12:00:00.000Z"
    assert json.loads(row["metadata"])["stores"] == ["claude-code/hooks"]


def test_events_do_not_double_what_a_transcript_contains(home: Home) -> None:
    transcript = Transcript(CLAUDE_SESSION).user("Fix the ferry test").assistant("Done.")
    transcript.write(home.claude)
    home.sync()
    before, statistics = home.row(CLAUDE_SESSION), _statistics(home)
    write_claude_events(home)
    assert home.sync() == 4
    after = home.row(CLAUDE_SESSION)
    assert {**after, "metadata": ""} == {**before, "metadata": ""}
    assert home.messages(CLAUDE_SESSION)[0] == ("user", "Fix the ferry test")
    assert _statistics(home) == statistics


def test_a_transcript_replaces_the_events_that_were_read_first(home: Home) -> None:
    write_claude_events(home)
    home.sync()
    Transcript(CLAUDE_SESSION).user("Fix the ferry test").assistant("Done.").write(home.claude)
    home.sync()
    both = home.row(CLAUDE_SESSION), _statistics(home)
    folder = home.folder.parent / "alone"
    folder.mkdir()
    alone = Home(folder)
    Transcript(CLAUDE_SESSION).user("Fix the ferry test").assistant("Done.").write(alone.claude)
    alone.sync()
    assert {**both[0], "metadata": ""} == {**alone.row(CLAUDE_SESSION), "metadata": ""}
    assert both[1] == _statistics(alone)


def _statistics(home: Home) -> tuple[Any, ...]:
    with home.open() as history:
        total = history.statistics.report().total
        return msgspec.structs.astuple(total)


def test_a_session_without_a_prompt_is_not_listed(home: Home) -> None:
    write_record(home.spool, claude_event("SessionStart", source="startup"))
    home.sync()
    with home.open() as history:
        assert history.list_sessions().data == ()
    assert home.row(CLAUDE_SESSION)["visibility"] == "placeholder"


def test_tokens_of_cursor_count_if_its_files_have_none(home: Home) -> None:
    write_record(home.spool, cursor_event("beforeSubmitPrompt", prompt="Add a clock"), at=NOON)
    write_record(home.spool, cursor_event("stop", **STOP), at=NOON + 5000)
    write_record(home.spool, cursor_event("stop", generation="next", **STOP), at=NOON + 9000)
    home.sync()
    assert home.row(CURSOR_SESSION)["total_tokens"] == 2 * (20152 + 15 + 8704)
    with home.open() as history:
        assert history.statistics.report().total.tokens == Tokens(
            input=2 * 20152, output=30, cache_read=17408
        )


def test_an_event_that_two_hooks_recorded_counts_once(home: Home) -> None:
    for delay in (0, 20):
        write_record(home.spool, cursor_event("beforeSubmitPrompt", prompt="Add a clock"), at=NOON + delay)
        edit = cursor_event(
            "afterFileEdit", file_path="/b.md", edits=[{"old_string": "", "new_string": "a\nb"}]
        )
        write_record(home.spool, edit, at=NOON + delay)
        write_record(home.spool, cursor_event("stop", **STOP), at=NOON + 1000 + delay)
    home.sync()
    row = home.row(CURSOR_SESSION)
    assert (row["interaction_count"], row["total_changes"], row["total_tokens"]) == (1, 2, 28871)


def test_an_event_of_cursor_that_a_hook_of_claude_code_recorded_is_cursors(home: Home) -> None:
    event = cursor_event("SessionStart", session_id=CURSOR_SESSION, cwd="")
    write_record(home.spool, event)
    write_record(
        home.spool, cursor_event("UserPromptSubmit", prompt="Add a clock", session_id=CURSOR_SESSION)
    )
    home.sync()
    assert home.row(CURSOR_SESSION)["platform"] == "cursor"


def test_the_tokens_of_a_cursor_session_in_the_database_come_from_hooks(home: Home) -> None:
    written = cursor.Home(home.cursor)
    written.composer([cursor.user("one"), cursor.assistant("yes")], has_graph=False)
    written.write()
    home.sync()
    (id_, before) = home.query("select external_id, total_tokens from conversations")[0]
    assert before is None
    write_record(home.spool, cursor_event("stop", session=id_, **STOP))
    write_record(home.spool, cursor_event("beforeSubmitPrompt", session=id_, prompt="one"))
    home.sync()
    row = home.row(id_)
    assert (row["total_tokens"], row["interaction_count"], row["message_count"]) == (28871, 1, 2)
    assert home.messages(id_) == [("user", "one"), ("assistant", "yes")]
    with home.open() as history:
        totals = history.statistics.report().total
        assert totals.tokens == Tokens(input=20152, output=15, cache_read=8704)
        assert totals.prompts == 1


# --- windows ---------------------------------------------------------------------------------------

ACTIVE_SESSIONS = (  # the documented query for active Cursor sessions
    "select s.id, count(c.id) as active_conversations from cursor_sessions s"
    " left join conversations c on c.session_id = s.id and c.ended_at is null"
    " where s.ended_at is null group by s.id"
)


def test_a_window_is_active_while_one_of_its_sessions_is_live(home: Home) -> None:
    now = time.time_ns() // 1_000_000
    write_record(home.spool, cursor_event("beforeSubmitPrompt", prompt="old", session="a" * 8), at=NOON)
    write_record(home.spool, cursor_event("beforeSubmitPrompt", prompt="new"), at=now)
    home.sync()
    ((window, active),) = home.query(ACTIVE_SESSIONS)
    assert active == 1
    assert home.query("select id, started_at from cursor_sessions") == [(window, "2026-10-30T12:00:00.000Z")]
    with closing(sqlite3.connect(home.folder / "archive.db")) as db, db:  # ten minutes later
        db.execute("update conversations set updated_at = '2026-10-30T13:00:00.000Z' where ended_at is null")
    home.sync()
    assert home.query(ACTIVE_SESSIONS) == []
    assert home.query("select ended_at from cursor_sessions") == [("2026-10-30T13:00:00.000Z",)]


def test_a_reported_end_closes_a_session_and_its_window_at_once(home: Home) -> None:
    now = time.time_ns() // 1_000_000
    write_record(home.spool, cursor_event("beforeSubmitPrompt", prompt="new"), at=now - 2000)
    write_record(home.spool, cursor_event("sessionEnd", reason="window_close"), at=now - 1000)
    home.sync()
    assert home.row(CURSOR_SESSION)["ended_at"] is not None
    assert home.query(ACTIVE_SESSIONS) == []


def test_a_window_that_hooks_report_has_its_own_id(home: Home) -> None:
    window = "curs_1731283200000_abc123"
    for session in ("a" * 8, "b" * 8):
        event = cursor_event("sessionStart", session=session, session_id=window)
        write_record(home.spool, event, at=NOON)
        event = cursor_event("beforeSubmitPrompt", session=session, session_id=window, prompt="hi")
        write_record(home.spool, event, at=NOON + 60_000)
    home.sync()
    assert home.query("select external_session_id, started_at, ended_at from cursor_sessions") == [
        (window, "2026-10-30T12:00:00.000Z", "2026-10-30T12:01:00.000Z")
    ]
    assert len({id_ for (id_,) in home.query("select session_id from conversations")}) == 1


# --- exactly once ----------------------------------------------------------------------------------


def test_a_record_is_stored_once(home: Home) -> None:
    write_claude_events(home)
    data = (home.spool / "events.jsonl").read_bytes()
    assert home.sync() == 4
    assert list(home.spool.iterdir()) == []
    (home.spool / "sealed-1.jsonl").write_bytes(data)  # as after a crash before the file was deleted
    assert home.sync() == 0
    assert len(home.messages(CLAUDE_SESSION)) == 3


def test_a_crash_between_storing_and_parsing_is_repaired(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write_claude_events(home)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(spool_module, "_write_fragments", crash)
        with pytest.raises(KeyboardInterrupt):
            home.sync()
    assert list(home.spool.iterdir()) == []
    home.sync()
    assert len(home.messages(CLAUDE_SESSION)) == 3


def test_a_failure_to_store_keeps_the_records_in_the_spool(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.sync()
    write_claude_events(home)

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(HookEvents, "add", fail)
        with pytest.raises((sqlite3.OperationalError, ArchiveError)):
            home.sync()
    assert [file.name.startswith("sealed-") for file in home.spool.iterdir()] == [True]
    assert home.sync() == 4


def test_a_line_that_is_being_written_is_left_for_the_next_sync(home: Home) -> None:
    write_claude_events(home)
    file = home.spool / "events.jsonl"
    data = file.read_bytes().rstrip(b"\n")
    file.write_bytes(data[:-20])
    assert home.sync() == 3
    (sealed,) = home.spool.iterdir()
    sealed.write_bytes(data + b"\n")
    assert home.sync() == 1
    assert home.query("select count(*) from hook_event where name = 'unreadable'") == [(0,)]


def test_a_line_that_settles_during_a_sync_is_not_lost(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write_claude_events(home)
    file = home.spool / "events.jsonl"
    data = file.read_bytes().rstrip(b"\n")
    file.write_bytes(data[:-20])
    add = HookEvents.add

    def add_slowly(*arguments: Any) -> int:
        (sealed,) = home.spool.iterdir()
        os.utime(sealed, (1, 1))  # as if the sync had taken longer than a file needs to settle
        return add(*arguments)

    monkeypatch.setattr(HookEvents, "add", add_slowly)
    assert home.sync() == 3
    assert home.sync() == 0  # the line cannot be parsed
    assert home.query("select count(*) from hook_event where name = 'unreadable'") == [(1,)]


def test_a_file_that_a_hook_renames_during_a_sync_is_read_by_the_next_one(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_claude_events(home)
    rename = Path.rename

    def rename_after_the_hook(path: Path, target: Path) -> Path:
        rename(path, path.with_name("sealed-1.jsonl"))
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename_after_the_hook)
        assert home.sync() == 0
    assert home.sync() == 4


def test_a_line_that_was_cut_off_is_kept_as_unreadable(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "SETTLE_SECONDS", -1.0)
    write_claude_events(home)
    file = home.spool / "events.jsonl"
    data = file.read_bytes().rstrip(b"\n")
    file.write_bytes(data[:-20])
    assert home.sync() == 3  # without the line that cannot be parsed
    assert home.query("select name, external_id from hook_event where platform is null") == [
        ("unreadable", None)
    ]
    assert list(home.spool.iterdir()) == []


def test_forgetting_a_session_deletes_its_events(home: Home) -> None:
    write_claude_events(home)
    home.sync()
    with home.open() as history:
        history.archive_admin.forget(CLAUDE_SESSION)
    assert home.query("select count(*) from hook_event") == [(0,)]
    assert b"ferry" not in (home.folder / "archive.db").read_bytes()
    write_claude_events(home)
    assert home.sync() == 0


def test_events_of_an_excluded_workspace_are_not_stored(home: Home) -> None:
    (home.folder / "config.toml").write_text('exclude = ["/home/zoe/tideline"]')
    write_claude_events(home)
    write_record(home.spool, cursor_event("beforeSubmitPrompt", prompt="hi"))
    assert home.sync() == 1
    assert home.query("select platform from hook_event") == [("cursor",)]


def test_a_rebuild_keeps_sessions_from_hooks(home: Home) -> None:
    write_claude_events(home)
    home.sync()
    before = home.messages(CLAUDE_SESSION)
    with home.open() as history:
        history.archive_admin.rebuild()
    home.sync()
    assert home.messages(CLAUDE_SESSION) == before


def test_a_sync_without_a_spool_imports_nothing_for_it(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from backscroll import History\n"
        "from backscroll.config import NamedRoot\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "h = History(home=folder, roots=[NamedRoot('claude-code', folder)])\n"
        "h.sync(); sys.exit('backscroll.ingest.hooks' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_hooks_and_syncs_at_the_same_time_lose_and_double_nothing(home: Home) -> None:
    command = hook_command(home.spool)
    events = [
        json.dumps(claude_event("UserPromptSubmit", prompt=f"prompt {number}")).encode()
        for number in range(60)
    ]

    def send(event: bytes) -> None:
        subprocess.run(["sh", "-c", command], input=event, check=True)

    with ThreadPoolExecutor(6) as pool:
        done = pool.map(send, events)
        found = sum(home.sync() for _ in range(12))
        list(done)
    found += home.sync()
    assert found == 60
    prompts = sorted(int(text.split()[1]) for _, text in home.messages(CLAUDE_SESSION))
    assert prompts == list(range(60))


def test_killed_syncs_lose_and_double_nothing(home: Home) -> None:
    home.sync()
    for number in range(400):
        write_record(
            home.spool, claude_event("UserPromptSubmit", prompt=f"prompt {number}"), at=NOON + number
        )
    arguments = [sys.executable, "-m", "backscroll", "--home", str(home.folder), "--root"]
    for number in range(KILLS):
        delay = 0.1 + 0.3 * number / KILLS
        process = subprocess.Popen(
            [*arguments, f"claude-code={home.claude}", "sync"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(delay)
        process.kill()
        process.wait()
    home.sync()
    assert [text for _, text in home.messages(CLAUDE_SESSION)] == [f"prompt {n}" for n in range(400)]
    assert list(home.spool.iterdir()) == []


# --- payloads --------------------------------------------------------------------------------------


def stored_bodies(home: Home) -> list[Any]:
    rows = home.query("select body from hook_event order by at, id")
    return [json.loads(decompress(body)) for (body,) in rows]


def test_private_parts_of_a_payload_are_not_stored_and_the_spool_is_deleted(home: Home) -> None:
    home.sync()
    event = claude_event(
        "PostToolUse",
        tool_name="Bash",
        tool_input={"command": "make", "content": "secret one"},
        tool_response={"stdout": "secret two", "userModified": True},
        env={"KEY": "secret three"},
        account="secret@example.org",
    )
    command = hook_command(home.spool)
    subprocess.run(["sh", "-c", command], input=json.dumps(event, indent=2).encode(), check=True)
    assert home.sync() == 1
    assert list(home.spool.iterdir()) == []
    (body,) = stored_bodies(home)
    assert body["payload"]["tool_input"] == {"command": "make"}
    assert body["payload"]["tool_response"] == {"userModified": True}
    assert "secret" not in str(body)
    for file in home.folder.iterdir():
        assert file.is_dir() or b"secret" not in file.read_bytes()


def test_a_payload_that_is_not_json_is_stored_by_its_size_and_damages_nothing(home: Home) -> None:
    sha = "0" * 40
    commit = f'"event":"post-commit","folder":"/a","sha":"{sha}","git_folder":"/a/.git"'
    payloads = [
        *(b"", b"[]", b"{", b"null", b"secret", b'{"session_id": "s"} x', b'"a', b"}", b"\x00", b"[" * 5000),
        f'1,"commit":{{{commit}}}'.encode(),
        b'{"session_id": "s"},"id":"f00","edits":1}',
    ]
    for payload in payloads:
        write_line(home.spool, payload)
        write_record(home.spool, claude_event("UserPromptSubmit", prompt="hi"))
    assert home.sync() == len(payloads)
    assert home.query("select name, count(*) from hook_event group by name order by name") == [
        ("UserPromptSubmit", len(payloads)),
        ("unreadable", len(payloads)),
    ]
    assert home.query("select count(*) from hook_commit") == [(0,)]
    unreadable = [body["payload"] for body in stored_bodies(home)][: len(payloads)]
    assert {tuple(payload) for payload in unreadable} == {("bytes",)}


def test_a_line_that_an_earlier_version_reduced_is_stored_as_it_is(home: Home) -> None:
    payload = claude_event("PostToolUse", tool_name="Write", tool_response={"filePath": "/a"})
    parts = {"edits": [{"path": "/a", "kind": "create", "added": 3, "removed": 0}], "omitted": {"stdout": 9}}
    line = json.dumps({"id": "12ab", "at": NOON, "payload": payload, **parts}, separators=(",", ":"))
    home.spool.joinpath("events.jsonl").write_text(f'\n{line}\n\n{{"id":"34","at":{NOON},"unreadable":5}}\n')
    assert home.sync() == 1
    assert {"payload": payload, **parts} in stored_bodies(home)
    assert home.row(CLAUDE_SESSION)["total_changes"] == 3


def test_a_sync_holds_only_some_of_the_payloads_in_memory(home: Home) -> None:
    home.sync()
    content = "value = 1\n" * 100_000
    for number in range(30):
        write_record(home.spool, claude_event("PostToolUse", tool_name=str(number), content=content))
    tracemalloc.start()
    try:
        assert home.sync() == 30
        assert tracemalloc.get_traced_memory()[1] < 15_000_000
    finally:
        tracemalloc.stop()


# --- any input -------------------------------------------------------------------------------------

names = st.sampled_from(
    [
        *("session_id", "conversation_id", "cursor_version", "hook_event_name", "prompt", "tool_name", "cwd"),
        *("tool_input", "tool_response", "workspace_roots", "agent_id", "trigger", "text", "input_tokens"),
        *("model", "status", "error_message", "last_assistant_message", "generation_id", "tool_use_id"),
    ]
)
event_names = st.sampled_from(
    [
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop"),
        *("StopFailure", "PreCompact", "SubagentStop", "SessionEnd", "beforeSubmitPrompt", "afterFileEdit"),
        *("stop", "preCompact", "sessionEnd", "postToolUse", "afterShellExecution", "afterAgentResponse"),
    ]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | event_names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
records = st.fixed_dictionaries(
    {"id": st.uuids().map(str), "at": st.integers(1, 2**47), "payload": st.dictionaries(names, values)},
    optional={
        "edits": st.lists(st.dictionaries(st.sampled_from(["path", "added", "removed", "kind"]), values))
    },
)


@given(
    line=st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode()),
    start=st.sampled_from([b"", b'{"id":"12ab","at":1,"payload":']),
)
def test_any_line_is_a_record(line: bytes, start: bytes) -> None:
    record, _ = parse_event(start + line + b"}\n")
    assert json.loads(record.body)["payload"] is not None


@given(found=st.lists(records, min_size=1, max_size=6), name=event_names)
def test_any_event_of_a_session_is_parsed_or_ignored(found: list[dict[str, Any]], name: str) -> None:
    from backscroll.model.hook import HookEvent
    from backscroll.model.message import Message
    from backscroll.model.stream import RecordCounts
    from backscroll.sources import named

    for source in map(named, ("claude-code", "cursor")):
        hooks = source.hooks()
        assert hooks is not None
        events = [
            HookEvent(
                id=one["id"],
                at=datetime.fromtimestamp(one["at"] / 1000, UTC),
                name=name,
                payload=one["payload"],
                edits=tuple(one.get("edits", ())),
            )
            for one in found
        ]
        items = list(hooks.read_hook_events("s", events))
        (counts,) = [item for item in items if isinstance(item, RecordCounts)]
        messages = [item for item in items if isinstance(item, Message)]
        assert counts.records == counts.parsed + counts.ignored == len(events)
        assert counts.parsed == len(messages)
        list(hooks.hook_usage("s", events))
