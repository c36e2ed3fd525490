"""A row of a tool's database, kept as it lies there beside what it tells."""

from msgspec import Struct

__all__ = ["Row"]


class Row(Struct, frozen=True, kw_only=True, gc=False):
    """One row of the few tables that sessions are made of, or a small file that says what they belong to.

    Where a row holds entries of many sessions, only this session's is told: ``part`` names it as
    ``field[]/id`` in a list, as ``field`` in an object. Keys to encrypted things are never in it.
    """

    table: str  # empty when it is a file
    key: str
    value: bytes | None  # None when the tool emptied the row; the columns as JSON where there are several
    path: str = ""  # below the root, where it does not lie in the unit's own file
    part: str = ""
    is_shared: bool = False  # other sessions may have the same
    is_text: bool = True  # how SQLite has it: as text or as a blob
    blanked: tuple[str, ...] = ()  # fields whose values were left out
    passing: tuple[str, ...] = ()  # fields that change all the time without anything being lost; "" is all
