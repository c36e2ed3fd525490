"""A repository with one session behind its commits, and the journal of it."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.journal.journal import Journal
from tests.builders.coding_session import CodingSession
from tests.builders.git_repository import GitRepository

if shutil.which("git") is None:
    collect_ignore_glob = ["test_*.py"]

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
REASON = "I would keep prices in cents, because floats do not add up."
MODULE = "def total_in_cents(prices):\n    return sum(price.cents for price in prices)\n"


class Workplace:
    """A checkout with two commits: one by hand, and one by a session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "archive"
        self.root = folder / "claude"
        self.checkout = GitRepository(folder / "work" / "shop")
        self.checkout.write("README.md", "A shop.\n")
        self.first = self.checkout.commit("Start", datetime(2026, 3, 1, 9, tzinfo=UTC))
        self.session = CodingSession(self.checkout, "5e551011-0000-4000-8000-000000000001", START)
        self.session.prompt("How should we store prices?")
        self.session.transcript.assistant(REASON)
        self.session.prompt("Yes, cents. The token is ghp_Zk3vQ8sT1uWxY5aB7cD9eF2gH4iJ6kL0mN1p")
        self.session.write("prices.py", MODULE)
        self.session.transcript.assistant("Prices are now sums of 2 integers.")
        self.second = self.session.commit("Add prices")
        self.session.transcript.assistant("Committed. Rounding of VAT is not done yet.")
        self.save()

    def save(self) -> None:
        self.root.mkdir(exist_ok=True)
        self.session.save(self.root)

    def history(self) -> History:
        return History(roots=[NamedRoot("claude-code", self.root)], home=self.home)

    @property
    def repository(self) -> Path:
        return self.checkout.folder


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


@pytest.fixture
def history(workplace: Workplace) -> Iterator[History]:
    with workplace.history() as history:
        history.sync()
        yield history


@pytest.fixture
def journal(history: History) -> Journal:
    return Journal(history._stores, zone=UTC)
