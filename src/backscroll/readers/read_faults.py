"""Problems with files and folders that cannot be read."""

from collections.abc import Iterator

from backscroll.model import Fault, Item, Origin, Problem, RecordCounts, Unit
from backscroll.readers.file_access import check_listable

__all__ = ["read_fault", "read_unlisted_folder"]


def read_unlisted_folder(unit: Unit) -> Iterator[Item]:
    """Return a problem if the folder of a unit still cannot be listed. It has no records."""
    try:
        check_listable(unit.path)
    except OSError as error:
        yield Problem(Origin(unit.path, "folder"), *read_fault(error))
    yield RecordCounts()


def read_fault(error: OSError) -> Fault:
    """Return the fault of a file or folder that could not be read."""
    code = "permission-denied" if isinstance(error, PermissionError) else "unreadable-file"
    return Fault(code, f"cannot be read: {error.strerror or error}")
