"""A file that changes while it is read is stored in one consistent state, or read again."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.store import Unit
from backscroll.model.stream import Checkpoint, Item
from backscroll.readers import jsonl
from backscroll.sources.claude_code import ClaudeCode
from backscroll.sources.claude_code.transcript import reader
from backscroll.sources.cursor import Cursor
from backscroll.sources.cursor_cli import CursorCli
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Transcript

ONE = "10000000-0000-4000-8000-000000000000"
TURN_COUNT = 60  # more than one read buffer
BUFFER_BYTES = 128 * 1024
LONG_TEXT = "the ferry leaves at seven " * 200
COPY_ROWS_SCRIPT = """\
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("attach ? as later", [sys.argv[2]])
for table in sys.argv[3:]:
    db.execute(f"insert or replace into main.{table} select * from later.{table}")
db.commit()
"""


@pytest.fixture(autouse=True)
def _small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a small transcript be read in several chunks, as a large one is."""
    monkeypatch.setattr(jsonl, "CHUNK_BYTES", BUFFER_BYTES)
    monkeypatch.setattr(reader, "MAX_BUFFERED_BYTES", 2 * BUFFER_BYTES)


def transcript(turns: int, *, word: str = "Question") -> Transcript:
    session = Transcript(ONE, seed=1, cwd="/home/zoe/ferry")
    for turn in range(turns):
        session.user(f"{word} {turn} {LONG_TEXT}").assistant(f"Answer {turn}")
    return session


def open_history(folder: Path, source: str, root: Path) -> History:
    return History(roots=[NamedRoot(source, root)], home=folder)


def active_contents(history: History) -> list[str]:
    return [message.content for message in history.get_session(ONE).messages if message.is_active]


def contents_of_unchanged_file(data: bytes, folder: Path) -> list[str]:
    """Return the message contents of a file with these bytes that does not change."""
    path = folder / "claude" / "projects" / "-home-zoe-ferry" / f"{ONE}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    with open_history(folder / "home", "claude-code", folder / "claude") as history:
        history.sync()
        return active_contents(history)


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(transcript(TURN_COUNT + 3).lines()[len(transcript(TURN_COUNT).lines()) :])


def append_partial_line(path: Path) -> None:
    with path.open("ab") as file:
        file.write(transcript(TURN_COUNT + 3).lines()[len(transcript(TURN_COUNT).lines()) :][:1000])


def truncate(path: Path) -> None:
    lines = transcript(TURN_COUNT).lines().splitlines(keepends=True)
    os.truncate(path, sum(map(len, lines[:20])))


def replace(path: Path) -> None:
    """Replace the file by another one, as an editor does when it saves."""
    other = path.with_suffix(".tmp")
    other.write_bytes(transcript(TURN_COUNT + 2, word="Other").lines())
    other.rename(path)


def rewrite(path: Path) -> None:
    """Overwrite the file in place with other, longer content."""
    with path.open("r+b") as file:
        file.write(transcript(TURN_COUNT + 2, word="Other").lines())


CHANGES = [append, append_partial_line, truncate, replace, rewrite]
MOMENTS = [0, 30, -1]  # number of items read before the change; -1: all


class ChangeWhileReading:
    """Runs a change once, after a number of items of the first read; -1: after all items."""

    def __init__(self, change: Callable[[], None], after: int) -> None:
        self._change = change
        self._after = after

    def read(self, items: Iterator[Item]) -> Iterator[Item]:
        for index, item in enumerate(items):
            if index == self._after:
                self._run_change()
            yield item
        if self._after < 0:
            self._run_change()

    def _run_change(self) -> None:
        change, self._change = self._change, lambda: None
        change()


def install(monkeypatch: pytest.MonkeyPatch, source: type, change: ChangeWhileReading) -> None:
    """Run the change during the next read of the source."""
    original = source.read  # type: ignore[attr-defined]

    def read(self: object, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        return change.read(original(self, unit, since))

    monkeypatch.setattr(source, "read", read)


@pytest.mark.parametrize("after", MOMENTS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_transcript_that_changes_while_it_is_read_is_stored_consistently(
    change: Callable[[Path], None], after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcript(TURN_COUNT).write(tmp_path / "claude")
    install(monkeypatch, ClaudeCode, ChangeWhileReading(lambda: change(path), after))
    with open_history(tmp_path / "home", "claude-code", tmp_path / "claude") as history:
        history.sync()
        (extracted,) = history.archive_admin.extract(ONE, tmp_path / "extracted").files
        assert active_contents(history) == contents_of_unchanged_file(
            extracted.read_bytes(), tmp_path / "first"
        )
        history.sync()
        (extracted,) = history.archive_admin.extract(ONE, tmp_path / "later").files
        assert extracted.read_bytes() == path.read_bytes()
        assert active_contents(history) == contents_of_unchanged_file(path.read_bytes(), tmp_path / "second")
        assert history.archive_admin.verify() == []
        report = history.sync()
        assert report is not None
        assert report.changed == 0


def test_a_small_transcript_is_read_from_the_disk_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcript(3).write(tmp_path / "claude")
    os.utime(path, (1.7e9, 1.7e9))  # a recently written file is opened again to compare its beginning
    opened: list[Path] = []
    original = Path.open

    def recording_open(self: Path, *args: Any, **kwargs: Any) -> Any:
        opened.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", recording_open)
    with open_history(tmp_path / "home", "claude-code", tmp_path / "claude") as history:
        history.sync()
        assert opened.count(path) == 1
        (extracted,) = history.archive_admin.extract(ONE, tmp_path / "extracted").files
        assert extracted.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("change", CHANGES)
def test_a_transcript_that_changes_while_appended_lines_are_read_is_stored_consistently(
    change: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcript(TURN_COUNT // 2).write(tmp_path / "claude")
    with open_history(tmp_path / "home", "claude-code", tmp_path / "claude") as history:
        history.sync()
        path.write_bytes(transcript(TURN_COUNT).lines())
        install(monkeypatch, ClaudeCode, ChangeWhileReading(lambda: change(path), 5))
        history.sync()
        (extracted,) = history.archive_admin.extract(ONE, tmp_path / "extracted").files
        assert active_contents(history) == contents_of_unchanged_file(
            extracted.read_bytes(), tmp_path / "first"
        )
        history.sync()
        assert active_contents(history) == contents_of_unchanged_file(path.read_bytes(), tmp_path / "second")
        assert history.archive_admin.verify() == []


@pytest.mark.parametrize("after", [0, 30, -1])
def test_deleting_a_transcript_while_it_is_read_does_not_stop_the_sync(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcript(TURN_COUNT).write(tmp_path / "claude")
    other = Transcript("20000000-0000-4000-8000-000000000000", seed=2, cwd="/home/zoe/ferry").user("Hello")
    other.write(tmp_path / "claude")
    install(monkeypatch, ClaudeCode, ChangeWhileReading(path.unlink, after))
    with open_history(tmp_path / "home", "claude-code", tmp_path / "claude") as history:
        history.sync()
        assert other.session_id in {summary.id for summary in history.list_sessions().data}
        report = history.sync()
        assert report is not None
        assert history.archive_admin.verify() == []


def test_a_file_that_changes_during_every_attempt_is_retried_by_the_next_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcript(3).write(tmp_path / "claude")
    original = ClaudeCode.read
    reads: list[int] = []

    def read(self: ClaudeCode, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        yield from original(self, unit, since)
        reads.append(unit.size)
        if len(reads) < 5:
            other = path.with_suffix(".tmp")
            other.write_bytes(transcript(3 + len(reads), word=f"Word{len(reads)}").lines())
            other.rename(path)

    monkeypatch.setattr(ClaudeCode, "read", read)
    with open_history(tmp_path / "home", "claude-code", tmp_path / "claude") as history:
        report = history.sync()
        assert report is not None
        assert (report.problems, len(reads)) == (1, 3)
        history.sync()
        assert active_contents(history) == contents_of_unchanged_file(path.read_bytes(), tmp_path / "other")
        report = history.sync()
        assert report is not None
        assert (report.problems, report.changed) == (0, 0)


def copy_rows(database: Path, later: Path, tables: list[str]) -> None:
    """Copy all rows of a later state into a database, from another process."""
    subprocess.run([sys.executable, "-c", COPY_ROWS_SCRIPT, database, later, *tables], check=True)


def cursor_home(folder: Path, turns: int) -> cursor.Home:
    home = cursor.Home(folder, seed=4)
    messages = [cursor.user("Count the gulls")]
    for turn in range(turns):
        messages += [cursor.assistant(f"Gull {turn} {LONG_TEXT}"), cursor.user(f"And then {turn}")]
    home.composer(messages, name="Gulls")
    home.write()
    return home


@pytest.mark.parametrize("after", [0, 3, -1])
def test_a_cursor_database_that_changes_while_it_is_read_is_read_again(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, later = cursor_home(tmp_path / "cursor", 20), cursor_home(tmp_path / "later", 25)
    tables = ["cursorDiskKV", "composerHeaders"]
    install(
        monkeypatch,
        Cursor,
        ChangeWhileReading(lambda: copy_rows(home.database, later.database, tables), after),
    )
    with (
        open_history(tmp_path / "home", "cursor", tmp_path / "cursor") as history,
        open_history(tmp_path / "other", "cursor", tmp_path / "later") as other,
    ):
        history.sync()
        history.sync()
        other.sync()
        (found,), (expected,) = history.list_sessions().data, other.list_sessions().data
        assert found.message_count == expected.message_count == 51
        assert [message.content for message in history.get_session(found.id).messages] == [
            message.content for message in other.get_session(expected.id).messages
        ]
        report = history.sync()
        assert report is not None
        assert report.changed == 0


@pytest.mark.parametrize("after", [0, 3, -1])
def test_a_cursor_cli_store_that_changes_while_it_is_read_is_read_again(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [cursor.user("Count the gulls")]
    for turn in range(10):
        messages += [cursor.assistant(f"Gull {turn}"), cursor.user(f"And then {turn}")]
    chat = cursor_cli.Home(tmp_path / "cli", seed=4).chat(messages[:11], cwd="/home/zoe/ferry")
    later = cursor_cli.Home(tmp_path / "later", seed=4).chat(messages, cwd="/home/zoe/ferry")
    install(
        monkeypatch,
        CursorCli,
        ChangeWhileReading(lambda: copy_rows(chat.store, later.store, ["blobs", "meta"]), after),
    )
    with (
        open_history(tmp_path / "home", "cursor-cli", tmp_path / "cli") as history,
        open_history(tmp_path / "other", "cursor-cli", tmp_path / "later") as other,
    ):
        history.sync()
        history.sync()
        other.sync()
        (found,), (expected,) = history.list_sessions().data, other.list_sessions().data
        assert found.message_count == expected.message_count == 21
        report = history.sync()
        assert report is not None
        assert report.changed == 0


@pytest.mark.parametrize("after", [0, 2])
def test_a_database_is_complete_only_after_all_its_sessions_are_stored(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = cursor.Home(tmp_path / "cursor", seed=4)
    for index in range(4):
        home.composer([cursor.user(f"Hello {index}"), cursor.assistant("Hi.")], name=f"Session {index}")
    home.write()
    original = Cursor.read
    read_keys: list[str] = []

    def read(self: Cursor, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        read_keys.append(unit.key)
        if len(read_keys) == after + 1:
            raise KeyboardInterrupt
        return original(self, unit, since)

    monkeypatch.setattr(Cursor, "read", read)
    with open_history(tmp_path / "home", "cursor", tmp_path / "cursor") as history:
        with pytest.raises(KeyboardInterrupt):
            history.sync()
        history.sync()
        assert history.list_sessions().pagination.total == 4
    assert read_keys[-1] == ""
