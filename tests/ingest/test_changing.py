"""A file that changes while it is read is read as it was at one moment, or again."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.model import Checkpoint, Item, Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.sources.cursor import Cursor
from backscroll.sources.cursor_cli import CursorCli
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Transcript

ONE = "10000000-0000-4000-8000-000000000000"
_TURNS = 480  # so many that the file does not fit into what is read of it at once
_LONG = "the ferry leaves at seven " * 200
_TAKE_OVER = """\
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("attach ? as later", [sys.argv[2]])
for table in sys.argv[3:]:
    db.execute(f"insert or replace into main.{table} select * from later.{table}")
db.commit()
"""


def conversation(turns: int, *, word: str = "Question") -> Transcript:
    session = Transcript(ONE, seed=1, cwd="/home/zoe/ferry")
    for number in range(turns):
        session.user(f"{word} {number} {_LONG}").assistant(f"Answer {number}")
    return session


def open_history(folder: Path, source: str, root: Path) -> History:
    return History(roots=[NamedRoot(source, root)], home=folder)


def told(history: History) -> list[str]:
    return [message.content for message in history.get_session(ONE).messages if message.is_active]


def told_by(content: bytes, folder: Path) -> list[str]:
    """What a file with this content tells when nobody touches it."""
    path = folder / "claude" / "projects" / "-home-zoe-ferry" / f"{ONE}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with open_history(folder / "home", "claude-code", folder / "claude") as history:
        history.sync()
        return told(history)


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(conversation(_TURNS + 3).lines()[len(conversation(_TURNS).lines()) :])


def tear(path: Path) -> None:
    with path.open("ab") as file:
        file.write(conversation(_TURNS + 3).lines()[len(conversation(_TURNS).lines()) :][:1000])


def truncate(path: Path) -> None:
    lines = conversation(_TURNS).lines().splitlines(keepends=True)
    os.truncate(path, sum(map(len, lines[:20])))


def replace(path: Path) -> None:
    """As an editor saves: another file takes the place of the first."""
    other = path.with_suffix(".tmp")
    other.write_bytes(conversation(_TURNS + 2, word="Other").lines())
    other.rename(path)


def rewrite(path: Path) -> None:
    """In place, with other and more content."""
    with path.open("r+b") as file:
        file.write(conversation(_TURNS + 2, word="Other").lines())


CHANGES = [append, tear, truncate, replace, rewrite]
MOMENTS = [0, 30, -1]  # items told before it; -1: all of them


class Meddling:
    """Changes something once, after so many items of the first reading."""

    def __init__(self, change: Callable[[], None], after: int) -> None:
        self._change = change
        self._after = after

    def read(self, items: Iterator[Item]) -> Iterator[Item]:
        for number, item in enumerate(items):
            if number == self._after:
                self._meddle()
            yield item
        if self._after < 0:
            self._meddle()

    def _meddle(self) -> None:
        change, self._change = self._change, lambda: None
        change()


def meddle(monkeypatch: pytest.MonkeyPatch, source: type, meddling: Meddling) -> None:
    original = source.read  # type: ignore[attr-defined]

    def read(self: object, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        return meddling.read(original(self, unit, since))

    monkeypatch.setattr(source, "read", read)


@pytest.mark.parametrize("after", MOMENTS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_transcript_that_changes_while_it_is_read(
    change: Callable[[Path], None], after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = conversation(_TURNS).write(tmp_path / "claude")
    meddle(monkeypatch, ClaudeCode, Meddling(lambda: change(path), after))
    with open_history(tmp_path / "home", "claude-code", tmp_path / "claude") as history:
        history.sync()
        (kept,) = history.archive_admin.extract(ONE, tmp_path / "kept").files
        assert told(history) == told_by(kept.read_bytes(), tmp_path / "first")
        history.sync()
        (kept,) = history.archive_admin.extract(ONE, tmp_path / "later").files
        assert kept.read_bytes() == path.read_bytes()
        assert told(history) == told_by(path.read_bytes(), tmp_path / "second")
        assert history.archive_admin.verify() == []
        report = history.sync()
        assert report is not None
        assert report.changed == 0


def test_a_small_transcript_is_read_from_the_disk_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = conversation(3).write(tmp_path / "claude")
    os.utime(path, (1.7e9, 1.7e9))  # of one that was just written to, the beginning is compared
    opened: list[Path] = []
    original = Path.open

    def note(self: Path, *args: Any, **kwargs: Any) -> Any:
        opened.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", note)
    with open_history(tmp_path / "home", "claude-code", tmp_path / "claude") as history:
        history.sync()
        assert opened.count(path) == 1
        (kept,) = history.archive_admin.extract(ONE, tmp_path / "kept").files
        assert kept.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("change", CHANGES)
def test_a_transcript_that_changes_while_its_tail_is_read(
    change: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = conversation(_TURNS // 2).write(tmp_path / "claude")
    with open_history(tmp_path / "home", "claude-code", tmp_path / "claude") as history:
        history.sync()
        path.write_bytes(conversation(_TURNS).lines())
        meddle(monkeypatch, ClaudeCode, Meddling(lambda: change(path), 5))
        history.sync()
        (kept,) = history.archive_admin.extract(ONE, tmp_path / "kept").files
        assert told(history) == told_by(kept.read_bytes(), tmp_path / "first")
        history.sync()
        assert told(history) == told_by(path.read_bytes(), tmp_path / "second")
        assert history.archive_admin.verify() == []


@pytest.mark.parametrize("after", [0, 30, -1])
def test_a_transcript_that_is_deleted_while_it_is_read(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = conversation(_TURNS).write(tmp_path / "claude")
    other = Transcript("20000000-0000-4000-8000-000000000000", seed=2, cwd="/home/zoe/ferry").user("Hello")
    other.write(tmp_path / "claude")
    meddle(monkeypatch, ClaudeCode, Meddling(path.unlink, after))
    with open_history(tmp_path / "home", "claude-code", tmp_path / "claude") as history:
        history.sync()
        assert other.session_id in {one.id for one in history.list_sessions().data}
        report = history.sync()
        assert report is not None
        assert history.archive_admin.verify() == []


def test_a_file_that_never_stands_still_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = conversation(3).write(tmp_path / "claude")
    original = ClaudeCode.read
    times: list[int] = []

    def read(self: ClaudeCode, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        yield from original(self, unit, since)
        times.append(unit.size)
        if len(times) < 5:
            other = path.with_suffix(".tmp")
            other.write_bytes(conversation(3 + len(times), word=f"Word{len(times)}").lines())
            other.rename(path)

    monkeypatch.setattr(ClaudeCode, "read", read)
    with open_history(tmp_path / "home", "claude-code", tmp_path / "claude") as history:
        report = history.sync()
        assert report is not None
        assert (report.problems, len(times)) == (1, 3)
        history.sync()
        assert told(history) == told_by(path.read_bytes(), tmp_path / "other")
        report = history.sync()
        assert report is not None
        assert (report.problems, report.changed) == (0, 0)


def take_over(database: Path, later: Path, tables: list[str]) -> None:
    """Write all rows of a later state into a database, as another process would."""
    subprocess.run([sys.executable, "-c", _TAKE_OVER, database, later, *tables], check=True)


def editor(folder: Path, turns: int) -> cursor.Home:
    home = cursor.Home(folder, seed=4)
    said = [cursor.user("Count the gulls")]
    for number in range(turns):
        said += [cursor.assistant(f"Gull {number} {_LONG}"), cursor.user(f"And then {number}")]
    home.composer(said, name="Gulls")
    home.write()
    return home


@pytest.mark.parametrize("after", [0, 3, -1])
def test_a_database_of_the_editor_that_changes_while_it_is_read(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, later = editor(tmp_path / "cursor", 20), editor(tmp_path / "later", 25)
    tables = ["cursorDiskKV", "composerHeaders"]
    meddle(monkeypatch, Cursor, Meddling(lambda: take_over(home.database, later.database, tables), after))
    with (
        open_history(tmp_path / "home", "cursor", tmp_path / "cursor") as history,
        open_history(tmp_path / "other", "cursor", tmp_path / "later") as other,
    ):
        history.sync()
        history.sync()
        other.sync()
        (found,), (wanted,) = history.list_sessions().data, other.list_sessions().data
        assert found.message_count == wanted.message_count == 51
        assert [one.content for one in history.get_session(found.id).messages] == [
            one.content for one in other.get_session(wanted.id).messages
        ]
        report = history.sync()
        assert report is not None
        assert report.changed == 0


@pytest.mark.parametrize("after", [0, 3, -1])
def test_a_store_of_the_command_line_that_changes_while_it_is_read(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [cursor.user("Count the gulls")]
    for number in range(10):
        said += [cursor.assistant(f"Gull {number}"), cursor.user(f"And then {number}")]
    chat = cursor_cli.Home(tmp_path / "cli", seed=4).chat(said[:11], cwd="/home/zoe/ferry")
    later = cursor_cli.Home(tmp_path / "later", seed=4).chat(said, cwd="/home/zoe/ferry")
    meddle(
        monkeypatch, CursorCli, Meddling(lambda: take_over(chat.store, later.store, ["blobs", "meta"]), after)
    )
    with (
        open_history(tmp_path / "home", "cursor-cli", tmp_path / "cli") as history,
        open_history(tmp_path / "other", "cursor-cli", tmp_path / "later") as other,
    ):
        history.sync()
        history.sync()
        other.sync()
        (found,), (wanted,) = history.list_sessions().data, other.list_sessions().data
        assert found.message_count == wanted.message_count == 21
        report = history.sync()
        assert report is not None
        assert report.changed == 0


@pytest.mark.parametrize("after", [0, 2])
def test_a_database_is_known_only_when_all_its_sessions_are(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = cursor.Home(tmp_path / "cursor", seed=4)
    for number in range(4):
        home.composer([cursor.user(f"Hello {number}"), cursor.assistant("Hi.")], name=f"Session {number}")
    home.write()
    original = Cursor.read
    seen: list[str] = []

    def read(self: Cursor, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        seen.append(unit.key)
        if len(seen) == after + 1:
            raise KeyboardInterrupt
        return original(self, unit, since)

    monkeypatch.setattr(Cursor, "read", read)
    with open_history(tmp_path / "home", "cursor", tmp_path / "cursor") as history:
        with pytest.raises(KeyboardInterrupt):
            history.sync()
        history.sync()
        assert history.list_sessions().pagination.total == 4
    assert seen[-1] == ""
