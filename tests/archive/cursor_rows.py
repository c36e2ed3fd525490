"""Helpers for tests of stored database rows: parsed sessions, stored row versions, a Cursor home."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from backscroll.archive.archive import Archive
from backscroll.archive.storage.codec import decompress
from backscroll.sources import named
from backscroll.testing import cursor
from tests.archive.synced_archive import SyncedArchive
from tests.oracle.fold import ParsedSession, fold

ONE = "5e551011-0000-4000-8000-0000000000aa"
TWO = "5e551011-0000-4000-8000-0000000000bb"


def parse_sessions(source_name: str, root: Path) -> dict[tuple[str, str | None], ParsedSession]:
    """Return the sessions that the source reads from a root, by id and parent id."""
    source = named(source_name)
    sessions: dict[tuple[str, str | None], ParsedSession] = {}
    for unit in source.units(root):
        for session in fold(source.read(unit)).sessions:
            sessions.setdefault((session.opening.id, session.opening.parent_id), session)
    source.close()
    return sessions


def message_values(message: Any) -> Any:
    """Return the fields of a message without the path of its file."""
    return [
        getattr(message, name) if name != "origin" else message.origin.place
        for name in message.__struct_fields__
    ]


def decompressed_bytes(archive: Path) -> bytes:
    """Return every value in an archive, also decompressed."""
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


def row_versions(archive: Archive) -> dict[tuple[str, int], tuple[bool, bytes | None]]:
    """Return every stored row version by key and version: whether it is gone, and its value."""
    with closing(sqlite3.connect(archive.path)) as db:
        chunks = {id_: decompress(body) for id_, body in db.execute("select id, body from blob_chunk")}
        return {
            (key + part, version): (
                bool(gone),
                chunks[chunk_id][offset : offset + size] if chunk_id else None,
            )
            for key, part, version, gone, chunk_id, offset, size in db.execute(
                "select key, part, version, is_gone, blob_chunk_id, offset, size from raw_row"
            )
        }


def synced_cursor_home(tmp_path: Path) -> tuple[cursor.Home, SyncedArchive, cursor.Composer]:
    """Return a Cursor home with a session of two messages, and its synced archive."""
    home = cursor.Home(tmp_path / "root")
    messages = [cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")]
    composer = home.composer(messages, id=ONE, has_graph=False)
    home.write()
    synced = SyncedArchive("cursor", tmp_path / "root", tmp_path / "home")
    synced.sync()
    return home, synced, composer


def execute(home: cursor.Home, query: str, *values: str | None) -> None:
    """Execute a statement in the database of a Cursor home."""
    with closing(sqlite3.connect(home.database)) as db, db:
        db.execute(query, values)
