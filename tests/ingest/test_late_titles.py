"""Titles that come later than everything else of a session, and from elsewhere."""

from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.testing import cursor

TALK = (cursor.user("Totals are off"), cursor.assistant("Rounding."))


class Desk:
    """A home of the editor with two sessions, of which one has a title."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = cursor.Home(folder / ".config/Cursor")
        self.id = self.home.composer(TALK, name=None, has_graph=False).id
        self.home.composer(TALK, name="Baskets", has_graph=False)
        self.home.write()
        self.at = 1_790_000_420_000

    def search(self, title: str) -> Path:
        self.at += 1000
        sessions = [(self.id if title else "another", title or "Another", "body")]
        return cursor.write_search(self.home.root, sessions, at=self.at)

    def summary(self, title: str) -> Path:
        self.at += 1000
        return cursor.write_tracking(self.folder / ".cursor", conversation=self.id, title=title, at=self.at)

    def open(self) -> History:
        root = NamedRoot("cursor", self.home.root)
        return History(roots=[root], home=self.folder / "home")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def titles(history: History) -> set[str | None]:
    return {summary.title for summary in history.list_sessions().data}


def changed(history: History) -> int:
    report = history.sync()
    assert report is not None
    return report.changed


@pytest.mark.parametrize("store", ["search", "summary"])
@pytest.mark.parametrize("was_there", [False, True])
def test_a_title_that_appears_beside_a_known_session_is_taken_over(
    desk: Desk, store: str, *, was_there: bool
) -> None:
    write = getattr(desk, store)
    if was_there:
        write("")
    with desk.open() as history:
        history.sync()
        assert titles(history) == {"Totals are off", "Baskets"}
    write("Cents in the basket")
    with desk.open() as history:
        assert changed(history) == 2  # the session, and the database that knows what it is called
        assert titles(history) == {"Cents in the basket", "Baskets"}
        assert changed(history) == 0
        write("Cents lost in the basket")
        assert changed(history) == 2
        assert titles(history) == {"Cents lost in the basket", "Baskets"}


def test_a_title_stays_when_the_database_that_had_it_goes(desk: Desk) -> None:
    path = desk.search("Cents in the basket")
    with desk.open() as history:
        history.sync()
        path.unlink()
        history.sync()
        assert titles(history) == {"Cents in the basket", "Baskets"}
        assert changed(history) == 0


def test_a_database_of_titles_that_is_none_is_told_once(desk: Desk) -> None:
    path = desk.search("Cents in the basket")
    path.write_bytes(b"no database at all, and longer than a header of one would be" * 4)
    with desk.open() as history:
        history.sync()
        assert titles(history) == {"Totals are off", "Baskets"}
        assert changed(history) == 0
