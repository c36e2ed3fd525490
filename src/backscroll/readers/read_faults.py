"""Problems with files and folders that cannot be read or have names that cannot be stored."""

from collections.abc import Iterator
from pathlib import Path

from backscroll.model.message import Origin
from backscroll.model.problem import Fault, Problem
from backscroll.model.store import Unit
from backscroll.model.stream import Item, RecordCounts
from backscroll.readers.files import check_listable, lacks_database


def read_unlisted_folder(unit: Unit) -> Iterator[Item]:
    """Return a problem if the folder of a unit still cannot be listed. It has no records."""
    try:
        check_listable(unit.path)
    except OSError as error:
        yield Problem(Origin(unit.path, "folder"), *read_fault(error))
    yield RecordCounts()


def read_unnamed_file(unit: Unit) -> Iterator[Item]:
    """Return a problem for a file name that cannot be stored."""
    reason = "its name is not UTF-8; rename it so that it can be read"
    yield Problem(Origin(unit.path, "file"), "invalid-file-name", reason)
    counts = RecordCounts()
    counts.count("file with an invalid name", "problems")
    yield counts


def read_or_report(unit: Unit, items: Iterator[Item]) -> Iterator[Item]:
    """Return the content of a file, with a problem if it cannot be read."""
    try:
        yield from items
    except OSError as error:
        yield Problem(Origin(unit.path, "file"), *read_fault(error))
        yield RecordCounts()


def read_log_without_database(unit: Unit) -> Iterator[Item]:
    """Return a problem for a write-ahead log whose database does not exist. It has no records."""
    database = Path(unit.path.removesuffix("-wal"))
    if lacks_database(str(database)):
        yield Problem(
            Origin(unit.path, "file"),
            "missing-database",
            f"the write-ahead log cannot be read without its database {database.name}",
        )
    yield RecordCounts()


def read_fault(error: OSError) -> Fault:
    """Return the fault of a file or folder that could not be read."""
    code = "permission-denied" if isinstance(error, PermissionError) else "unreadable-file"
    return Fault(code, f"cannot be read: {error.strerror or error}")
