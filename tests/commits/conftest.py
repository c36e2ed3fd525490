"""Sessions and repositories that belong together."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.commit import CommitSummary
from tests.builders.coding_session import CodingSession
from tests.builders.git_repository import GitRepository

if shutil.which("git") is None:
    collect_ignore_glob = ["test_*.py"]

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


class Workplace:
    """A repository, the sessions that worked in it, and the archive that reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "claude"
        self.home = folder / "archive"
        self.checkout = GitRepository(folder / "work" / "shop")
        self.sessions: list[CodingSession] = []

    def session(
        self,
        hours: float,
        *,
        checkout: GitRepository | None = None,
        branch: str = "main",
    ) -> CodingSession:
        """Start a session some hours after the beginning."""
        number = len(self.sessions) + 1
        id_ = f"5e551011-0000-4000-8000-{number:012}"
        at = START + timedelta(hours=hours)
        session = CodingSession(checkout or self.checkout, id_, at, branch=branch, seed=number)
        session.prompt(f"Task {number}")
        self.sessions.append(session)
        return session

    def history(self) -> History:
        """Return the synced history."""
        self.root.mkdir(exist_ok=True)
        for session in self.sessions:
            session.save(self.root)
        history = History(roots=[NamedRoot("claude-code", self.root)], home=self.home)
        history.sync()
        return history

    def commits(self, repository: Path | None = None) -> dict[str, CommitSummary]:
        """Return all commits by hash."""
        with self.history() as history:
            page = history.list_commits(repository or self.checkout.folder, limit=None)
        return {commit.sha: commit for commit in page.data}

    def refs(self, sha: str, repository: Path | None = None) -> list[str]:
        """Return the sessions of a commit, best first."""
        return [session.session_ref for session in self.commits(repository)[sha].sessions]


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


@pytest.fixture
def code() -> Callable[[str, int], str]:
    """Return a function that writes a module with distinct lines."""

    def write(name: str, count: int) -> str:
        return "".join(
            f"def {name}_{number}(value, rate={number}):\n"
            f"    return value * rate + len('{name} {number}')\n\n\n"
            for number in range(count)
        )

    return write


@pytest.fixture
def opened(workplace: Workplace) -> Iterator[History]:
    with workplace.history() as history:
        yield history
