"""What tests of kept rows ask: sessions as a reader tells them, and an archive's rows as they lie in it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from backscroll.archive import Archive
from backscroll.archive.storage.codec import decompress
from backscroll.sources import named
from backscroll.testing import cursor
from tests.archive.keeping import Kept
from tests.oracle.fold import ParsedSession, fold

__all__ = ["ONE", "TWO", "change", "home_with", "plain_bytes", "readings", "rows", "told"]

ONE = "5e551011-0000-4000-8000-0000000000aa"
TWO = "5e551011-0000-4000-8000-0000000000bb"


def readings(source: str, root: Path) -> dict[tuple[str, str | None], ParsedSession]:
    reader = named(source)
    found: dict[tuple[str, str | None], ParsedSession] = {}
    for unit in reader.units(root):
        for reading in fold(reader.read(unit)).sessions:
            found.setdefault((reading.opening.id, reading.opening.parent_id), reading)
    reader.close()
    return found


def told(message: Any) -> Any:
    """All of a message but the file it was read from."""
    return [
        getattr(message, name) if name != "origin" else message.origin.place
        for name in message.__struct_fields__
    ]


def plain_bytes(archive: Path) -> bytes:
    """Everything in an archive's file, compressed pieces opened."""
    with closing(sqlite3.connect(archive)) as db:
        tables = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
        cells = [
            cell
            for table in tables
            for row in db.execute(f"select * from {table}")  # noqa: S608 - names are ours
            for cell in row
        ]
    found = [cell.encode("utf-8", "replace") for cell in cells if isinstance(cell, str)]
    found += [cell for cell in cells if isinstance(cell, bytes)]
    found += [decompress(cell) for cell in cells if isinstance(cell, bytes)]
    return b"\n".join(found)


def rows(archive: Archive) -> dict[tuple[str, int], tuple[bool, bytes | None]]:
    """Every kept version: key and number to whether it is gone, and its value."""
    with closing(sqlite3.connect(archive.path)) as db:
        pieces = {number: decompress(body) for number, body in db.execute("select id, body from blob_chunk")}
        return {
            (key + part, version): (bool(gone), pieces[at][offset : offset + size] if at else None)
            for key, part, version, gone, at, offset, size in db.execute(
                "select key, part, version, is_gone, blob_chunk_id, offset, size from raw_row"
            )
        }


def home_with(tmp_path: Path) -> tuple[cursor.Home, Kept, cursor.Composer]:
    """A session of two messages, and the archive that has it."""
    home = cursor.Home(tmp_path / "root")
    said = [cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")]
    composer = home.composer(said, id=ONE, has_graph=False)
    home.write()
    kept = Kept("cursor", tmp_path / "root", tmp_path / "home")
    kept.sync()
    return home, kept, composer


def change(home: cursor.Home, query: str, *values: str | None) -> None:
    with closing(sqlite3.connect(home.database)) as db, db:
        db.execute(query, values)
