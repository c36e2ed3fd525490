"""Result of the repair of a damaged archive."""

from msgspec import Struct


class LostMessages(Struct, frozen=True):
    """A session that lost all or some messages."""

    ref: str
    title: str | None
    lost_messages: int
    is_lost: bool  # nothing of it is left


class Repaired(Struct, frozen=True):
    """Result of a repair."""

    damaged_file: str  # where the damaged archive is kept
    rows: int  # copied to the new archive
    damaged_tables: tuple[str, ...]
    read_again: int  # units, from the tools
    parsed_again: int  # units, from their archived originals
    lost: tuple[LostMessages, ...]
    lost_originals: int  # units whose archived files or rows are gone, although their messages are not
