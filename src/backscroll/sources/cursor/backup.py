"""Contents of a backup: all files of Cursor, without credentials."""

import re
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

from backscroll.model.backup import SourceFile
from backscroll.readers.files import files_below, is_denied
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database.keys import has_table
from backscroll.sources.cursor.writing.folders import relocate as relocate
from backscroll.sources.secret_fields import blank

_SECRET_KEYS = ("cursorAuth/", "secret://", "mcpOAuth")  # prefixes in ItemTable

# Numbers and blobs can be keys too, so the prefix is compared as text.
_IS_SECRET = " or ".join(["substr(cast(key as text), 1, ?) = ? collate nocase"] * len(_SECRET_KEYS))
_SECRET_ARGUMENTS = [value for prefix in _SECRET_KEYS for value in (len(prefix), prefix)]
_KEY_VALUE_TABLES = ("ItemTable", "cursorDiskKV")
_STORAGE_FILE = re.compile(r"User/workspaceStorage/[^/]+/(state\.vscdb|workspace\.json|images/.+)")
_OUTSIDE = "it is a link out of the folder of Cursor, which is not followed"
_KEY_FIELD = b"ncryptionKey"  # part of the name of every field that `blank` blanks


def backup_files(root: Path) -> Iterator[SourceFile]:
    """Return all databases, and the other files of each workspace."""
    for folder in locations.unreadable_folders(root):
        yield SourceFile(str(folder), missing="it cannot be listed")
    for path in (locations.global_database(root), locations.search_database(root)):
        if locations.is_file(path):
            yield SourceFile(str(path), is_database=True, is_shared=True)
    for link in locations.outside_storages(root):
        yield SourceFile(str(link), missing=_OUTSIDE)
    for storage in locations.workspace_storages(root):
        database, workspace = storage.folder / "state.vscdb", storage.folder / "workspace.json"
        if is_denied(storage.folder):
            yield SourceFile(str(storage.folder), missing="it cannot be listed")
            continue
        if locations.is_file(database):
            missing = None if locations.is_inside(database, root) else _OUTSIDE
            yield SourceFile(str(database), is_database=True, is_shared=True, missing=missing)
        if locations.is_file(workspace):
            yield SourceFile(str(workspace), is_shared=True)
        if (images := storage.folder / "images").is_symlink():
            yield SourceFile(str(images), missing=_OUTSIDE)
        else:
            yield from map(SourceFile, files_below(images, with_links=True))


def is_history_path(path: str) -> bool:
    root = Path()
    if path in (locations.global_database(root).as_posix(), locations.search_database(root).as_posix()):
        return True
    return _STORAGE_FILE.fullmatch(path) is not None


def expected_tables(path: str) -> frozenset[str]:
    is_search = path == locations.search_database(Path()).as_posix()
    return frozenset({"conversations"} if is_search else _KEY_VALUE_TABLES)


def remove_secrets(connection: Connection) -> None:
    """Delete logins and tokens, and blank encryption keys."""
    for table in _KEY_VALUE_TABLES:
        if not has_table(connection, table):
            continue
        connection.execute(f"delete from {table} where {_IS_SECRET}", _SECRET_ARGUMENTS)  # noqa: S608
        for (rowid,) in connection.execute(_select_keyed("rowid", table), [_KEY_FIELD]).fetchall():
            _blank_value(connection, table, rowid)


def _select_keyed(columns: str, table: str) -> str:
    return f"select {columns} from {table} where instr(cast(value as blob), ?)"  # noqa: S608 - constants


def _blank_value(connection: Connection, table: str, rowid: int) -> None:
    query = f"select typeof(value) = 'text', cast(value as blob) from {table} where rowid = ?"  # noqa: S608
    is_text, value = connection.execute(query, [rowid]).fetchone()
    kind = "text" if is_text else "blob"
    update = f"update {table} set value = cast(? as {kind}) where rowid = ?"  # noqa: S608 - constants
    connection.execute(update, [blank(value)[0], rowid])
