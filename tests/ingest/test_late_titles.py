"""Titles that Cursor stores later than the session, in another database."""

from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing import cursor

MESSAGES = (cursor.user("Totals are off"), cursor.assistant("Rounding."))


class CursorSetup:
    """Cursor home with two sessions. One of them has a title."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = cursor.Home(folder / ".config/Cursor")
        self.id = self.home.composer(MESSAGES, name=None, has_graph=False).id
        self.home.composer(MESSAGES, name="Baskets", has_graph=False)
        self.home.write()
        self.time_ms = 1_790_000_420_000

    def write_search_database(self, title: str) -> Path:
        self.time_ms += 1000
        sessions = [(self.id if title else "another", title or "Another", "body")]
        return cursor.write_search(self.home.root, sessions, at=self.time_ms)

    def write_tracking_database(self, title: str) -> Path:
        self.time_ms += 1000
        return cursor.write_tracking(
            self.folder / ".cursor", conversation=self.id, title=title, at=self.time_ms
        )

    def open_history(self) -> History:
        root = NamedRoot("cursor", self.home.root)
        return History(roots=[root], home=self.folder / "home")


@pytest.fixture
def setup(tmp_path: Path) -> CursorSetup:
    return CursorSetup(tmp_path)


def titles(history: History) -> set[str | None]:
    return {summary.title for summary in history.list_sessions().data}


def changed_units(history: History) -> int:
    report = history.sync()
    assert report is not None
    return report.changed


@pytest.mark.parametrize("store", ["search", "tracking"])
@pytest.mark.parametrize("exists_before", [False, True])
def test_a_title_that_appears_for_a_known_session_is_used(
    setup: CursorSetup, store: str, *, exists_before: bool
) -> None:
    write = getattr(setup, f"write_{store}_database")
    if exists_before:
        write("")
    with setup.open_history() as history:
        history.sync()
        assert titles(history) == {"Totals are off", "Baskets"}
    write("Cents in the basket")
    with setup.open_history() as history:
        assert changed_units(history) == 2  # the session and the database that contains its title
        assert titles(history) == {"Cents in the basket", "Baskets"}
        assert changed_units(history) == 0
        write("Cents lost in the basket")
        assert changed_units(history) == 2
        assert titles(history) == {"Cents lost in the basket", "Baskets"}


def test_a_title_stays_when_its_database_is_deleted(setup: CursorSetup) -> None:
    path = setup.write_search_database("Cents in the basket")
    with setup.open_history() as history:
        history.sync()
        path.unlink()
        history.sync()
        assert titles(history) == {"Cents in the basket", "Baskets"}
        assert changed_units(history) == 0


def test_an_invalid_title_database_is_read_only_once(setup: CursorSetup) -> None:
    path = setup.write_search_database("Cents in the basket")
    path.write_bytes(b"no database at all, and longer than a header of one would be" * 4)
    with setup.open_history() as history:
        history.sync()
        assert titles(history) == {"Totals are off", "Baskets"}
        assert changed_units(history) == 0
