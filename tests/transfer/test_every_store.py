"""Sessions of every source and generation are moved and copied, and undo restores every byte and row."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backscroll import History
from backscroll.config import NamedRoot
from backscroll.model.transfer import MigrateResult, Mode
from tests import histories
from tests.histories import HISTORIES_WITH_SOAK

# Sessions that cannot be moved or copied in any generation, by error code.
_REFUSED = {
    "not-found",  # in the database of Claude Code 0.2
    "prompts-only",
    "unlisted",  # Cursor does not show it
    "remote",
    "conflict",  # the same id in two chat panels
}


class Machine:
    """The history of one generation, its archive, and a folder to move sessions to."""

    def __init__(self, folder: Path, sample: histories.History) -> None:
        self.root = sample.write(folder / "root")
        self.new = folder / "new"
        self.new.mkdir()
        self.history = History(roots=[NamedRoot(sample.source_name, self.root)], home=folder / "home")
        self.history.sync()
        self._with_folder = {one.ref for one in self.history.all_sessions() if one.workspace_path}

    def refs(self) -> list[str]:
        return [one.ref for one in self.history.all_sessions() if not one.is_gone]

    def migrate(self, mode: Mode) -> MigrateResult:
        refs = self.refs()
        result = self.history.migrate_session(refs, self.new, mode=mode)
        assert {one.code for one in result.errors} <= _REFUSED, result.errors
        assert result.success_count or not refs
        return result

    def undo(self, result: MigrateResult) -> None:
        if result.sessions:
            assert len(self.history.undo_change()) == result.success_count

    def statistics(self) -> Any:
        """Return the whole statistics, without what counts sessions and copied messages."""
        reports = [self.history.statistics.report(by=by) for by in (None, "day", "model", "tool", "source")]
        documents = msgspec.to_builtins(reports)
        for document in documents:
            del document["repeated_messages"]
            del document["repeated_subagent_messages"]
            for row in (document["total"], *document["rows"]):
                del row["sessions"]
        return documents

    def counts(self) -> tuple[int, ...]:
        """Return the sessions, subagents and messages that the archive and a backup count."""
        status, stats = (
            self.history.archive_admin.status(),
            self.history.backups.plan(self.new / "b.zip").stats,
        )
        return (
            *(status.sessions, status.subagents, status.session_messages, status.subagent_messages),
            *(stats.session_count, stats.message_count),
        )

    def sessions(self) -> dict[str, Any]:
        """Return title, folder and messages of every session. The times of files change.

        The archive remembers the folder of a session that had none before.
        """
        found = {}
        for ref in self.refs():
            session = self.history.get_session(ref)
            summary = session.summary
            messages = [
                (one.id, one.role, one.content, one.tool, one.origin, one.copied_from, one.is_active)
                for one in session.messages
            ]
            folder = summary.workspace_path if ref in self._with_folder else None
            found[ref] = summary.title, folder, summary.total_tokens, messages
        return found

    def content(self, ref: str, folder: str | None) -> dict[str, Any]:
        """Return what must be equal in a copy and after a move: title, times, and all of every message.

        The new folder in tool calls is replaced by the old one: Cursor's links work after a move.
        """
        session = self.history.get_session(ref)
        messages = [one for one in session.messages if one.is_active]
        calls = [repr((one.tool.params, one.tool.result)) for one in messages if one.tool is not None]
        return {
            "title": session.summary.title,
            "times": (session.summary.created_at, session.summary.updated_at),
            "messages": [
                (
                    one.role,
                    one.content,
                    one.timestamp,
                    one.model,
                    one.tool and (one.tool.name, one.tool.status),
                )
                for one in messages
            ],
            "calls": [one.replace(str(self.new), folder or "") for one in calls],
        }

    def files(self) -> dict[str, object]:
        """Return all files, the databases of the editor as rows. Shared memory is left out."""
        found: dict[str, object] = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if path.suffix == ".vscdb":
                found[name] = database_rows(path)
            elif path.is_file() and not path.name.endswith(("-shm", ".vscdb-wal")):
                found[name] = path.read_bytes()
        return found


def database_rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as db:
        db.text_factory = bytes
        tables = [
            name.decode() for (name,) in db.execute("select name from sqlite_master where type = 'table'")
        ]
        return {
            table: sorted(db.execute(f'select * from "{table}"').fetchall(), key=repr)  # noqa: S608
            for table in tables
        }


@pytest.fixture(params=HISTORIES_WITH_SOAK, ids=repr)
def machine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Machine]:
    monkeypatch.setattr("backscroll.readers.processes._running", list)  # 20 % of the time of this test
    machine = Machine(tmp_path, request.param)
    with machine.history:
        yield machine


def test_copies_and_moves_change_no_statistics_and_undo_restores_everything(machine: Machine) -> None:
    files, sessions, statistics = machine.files(), machine.sessions(), machine.statistics()
    counts = machine.counts()
    listed = {one.ref for one in machine.history.all_sessions()}
    folders = {ref: machine.history.find(ref).workspace_path for ref in machine.refs()}
    contents = {ref: machine.content(ref, folder) for ref, folder in folders.items()}
    copied = machine.migrate("copy")
    for one in copied.sessions:
        copy = machine.content(one.new_ref, folders[one.ref])
        copy["title"] = (copy["title"] or "").removesuffix(" (fork)") or None
        assert copy == contents[one.ref], one.ref
    assert machine.statistics() == statistics
    after = machine.sessions()
    assert {ref: after[ref] for ref in sessions} == sessions
    assert {machine.history.find(one.new_ref).workspace_path for one in copied.sessions} <= {str(machine.new)}
    machine.undo(copied)
    assert machine.files() == files
    assert {one.ref for one in machine.history.all_sessions()} == listed
    assert machine.counts() == counts
    moved = machine.migrate("move")
    for one in moved.sessions:
        assert machine.content(one.ref, folders[one.ref]) == contents[one.ref], one.ref
    assert machine.statistics() == statistics
    assert set(machine.refs()) == set(sessions)
    assert {machine.history.find(one.ref).workspace_path for one in moved.sessions} <= {str(machine.new)}
    machine.undo(moved)
    assert machine.files() == files
    assert machine.sessions() == sessions
