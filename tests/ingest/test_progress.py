"""Progress of a sync, an audit and a rebuild over files and databases."""

from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.ingest import parallel, read_units
from backscroll.model.store import ROW_BYTES
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript

MESSAGES = 50

Steps = list[tuple[int, int]]


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Return a history with one short transcript, and one session in a database."""
    Transcript().user("a").write(tmp_path / "claude")
    home = cursor.Home(tmp_path / "cursor")
    home.composer([cursor.user(f"prompt {number}") for number in range(MESSAGES)])
    home.write()
    roots = [NamedRoot("claude-code", tmp_path / "claude"), NamedRoot("cursor", tmp_path / "cursor")]
    return History(roots=roots, home=tmp_path / "archive")


def assert_rows_count_as_bytes(steps: Steps) -> None:
    """Check that the progress ends at the total, and that the database has its share of it."""
    done, total = steps[-1]
    assert done == total
    assert total > MESSAGES * ROW_BYTES


def test_an_audit_counts_rows_as_bytes(history: History) -> None:
    steps: Steps = []
    history.source_files.audit(lambda done, total: steps.append((done, total)))
    assert_rows_count_as_bytes(steps)


@pytest.mark.parametrize("is_parallel", [False, True])
def test_a_sync_counts_rows_as_bytes(
    history: History, is_parallel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_parallel:
        monkeypatch.setattr(read_units, "FIRST_PAGE_SESSIONS", 0)
        monkeypatch.setattr(parallel, "MIN_PARALLEL_BYTES", 1)
    steps: Steps = []
    with history:
        history.sync(lambda done, total: steps.append((done, total)))
    assert_rows_count_as_bytes(steps)


def test_a_rebuild_counts_rows_as_bytes(history: History) -> None:
    steps: Steps = []
    with history:
        history.sync()
        history.archive_admin.rebuild(lambda done, total: steps.append((done, total)))
    assert_rows_count_as_bytes(steps)
