"""Deleted sessions are restored with their times, in every generation; several with one change."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from backscroll import History
from backscroll.config import NamedRoot
from backscroll.errors import DataNotFoundError
from backscroll.testing import cursor
from tests import histories
from tests.histories import HISTORIES_WITH_SOAK

MONTH_SECONDS = 30 * 86_400
OLD = time.time() - 3 * MONTH_SECONDS


class Machine:
    """The history of one generation, old files, and its archive."""

    def __init__(self, folder: Path, sample: histories.History) -> None:
        self.source = sample.source_name
        self.root = sample.write(folder / "root")
        for number, path in enumerate(sorted(self.root.rglob("*"))):
            if path.is_file():
                os.utime(path, (OLD + number, OLD + number + 0.123))
        self.history = History(roots=[NamedRoot(self.source, self.root)], home=folder / "home")
        self.history.sync()

    def delete_all(self) -> None:
        """Delete what the tool deletes with its sessions: all files, or the rows of all databases."""
        for path in sorted(self.root.rglob("*"), reverse=True):
            if path.suffix == ".vscdb":
                with closing(sqlite3.connect(path)) as db, db:
                    for (table,) in db.execute(
                        "select name from sqlite_master where type = 'table'"
                    ).fetchall():
                        db.execute(f'delete from "{table}"')  # noqa: S608
            elif path.is_dir():
                if not list(path.iterdir()):
                    path.rmdir()
            elif self.source != "cursor":
                path.unlink()
        self.history.sync()

    def restore_all(self) -> None:
        """Restore every session that was deleted, except that in the database of Claude Code 0.2."""
        refs = [one.ref for one in self.history.all_sessions() if one.is_gone]
        for ref in refs:
            with suppress(DataNotFoundError):
                self.history.restore_session(ref)

    def modified(self) -> dict[str, float]:
        return {str(path): path.stat().st_mtime for path in self.root.rglob("*") if path.is_file()}

    def times(self) -> dict[str, Any]:
        """Return the times of all sessions and their messages."""
        return {
            one.ref: (
                one.created_at,
                one.updated_at,
                [
                    (message.timestamp, message.timestamp_source)
                    for message in self.history.get_session(one.ref).messages
                ],
            )
            for one in self.history.all_sessions()
        }


@pytest.fixture(params=HISTORIES_WITH_SOAK, ids=repr)
def machine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Machine]:
    monkeypatch.setattr("backscroll.readers.processes._running", list)  # 20 % of the time of this test
    machine = Machine(tmp_path, request.param)
    with machine.history:
        yield machine


# Times


def test_restored_sessions_and_their_messages_keep_their_times(machine: Machine) -> None:
    before, modified = machine.times(), machine.modified()
    machine.delete_all()
    machine.restore_all()
    assert machine.times() == before
    for path, restored_at in machine.modified().items():
        if machine.source == "claude-code" and path in modified:
            assert restored_at == pytest.approx(time.time(), abs=60), "the tool deletes old files"
        elif machine.source == "cursor-cli":
            assert restored_at >= OLD
            assert restored_at < OLD + MONTH_SECONDS


def test_cursor_lists_restored_sessions_where_they_were(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "cursor", generation=5)
    workspace = cursor.local_folder(str(tmp_path))
    for number in range(3):
        home.composer([cursor.user(f"Mend it {number}"), cursor.assistant("Done.")], workspace=workspace)
    home.write()

    def headers() -> list[tuple[object, ...]]:
        names = (
            "composerId, workspaceId, createdAt, lastUpdatedAt, isArchived, isSubagent, recency, checkpointAt"
        )
        with closing(sqlite3.connect(home.database)) as db:
            return db.execute(f"select {names} from composerHeaders order by recency").fetchall()  # noqa: S608

    with History(roots=[NamedRoot("cursor", tmp_path / "cursor")], home=tmp_path / "home") as history:
        history.sync()
        before = headers()
        assert len({row[6] for row in before}) == 3
        with closing(sqlite3.connect(home.database)) as db, db:
            for table in ("cursorDiskKV", "composerHeaders"):
                db.execute(f"delete from {table}")  # noqa: S608
        history.sync()
        for one in history.all_sessions():
            history.restore_session(one.ref)
        assert headers() == before
