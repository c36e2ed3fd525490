"""Plan changes of the CLI's stores: move, copy and restore sessions. Nothing here writes.

A session is a folder below ``chats/<MD5 of the working directory>``, or below ``acp-sessions``.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import md5
from pathlib import Path, PurePosixPath
from uuid import uuid4

import msgspec
from msgspec import Raw

from backscroll.errors import ChangeConflictError, SessionNotFoundError, UnknownStoreVersionError
from backscroll.model import RawRow
from backscroll.model.backup import BackupFolder
from backscroll.model.changes import Content, FileChange
from backscroll.model.path_maps import PathMaps
from backscroll.readers.file_hash import file_sha256
from backscroll.readers.sqlite import Database
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources.cursor_cli.metadata import decode_hex_text, is_hex
from backscroll.sources.cursor_cli.workspace import project_slugs
from backscroll.sources.protocols import Relocation
from backscroll.sources.restore_rows import RowRestorer

__all__ = ["CursorCliRelocation", "copy_files", "move_files", "restore_files", "session_folder"]

_BLOCK_BYTES = 1 << 20
_STORE = "store.db"
_SHARED_MEMORY = "store.db-shm"  # SQLite creates it again
_META = "meta.json"
_KNOWN_TABLES = frozenset({"blobs", "meta"})
_KNOWN_META_VERSIONS = (None, 1)
_JOURNAL_VERSIONS = slice(18, 20)  # bytes of the header of an SQLite file: 1 rollback journal, 2 WAL


def session_folder(root: Path, session_id: str) -> Path:
    """Return the folder of a session. Raises `SessionNotFoundError`."""
    found = [*root.glob(f"chats/*/{session_id}"), *root.glob(f"acp-sessions/{session_id}")]
    folders = [path for path in found if (path / _STORE).is_file() or (path / _META).is_file()]
    if len(folders) > 1:
        raise ChangeConflictError(f"Several folders contain the session {session_id}.", folders[0])
    if not folders:
        raise SessionNotFoundError(f"{root} has no store of the session {session_id}.", session_id)
    return folders[0]


def move_files(root: Path, session_id: str, target: Path) -> list[FileChange]:
    """Plan to move a session to another working directory, byte for byte except ``meta.json``."""
    folder = session_folder(root, session_id)
    _check_store(folder)
    new_folder = _new_folder(root, folder, session_id, target)
    if new_folder == folder:
        return _changed_meta(folder, target)
    _check_free(new_folder)
    created, deleted = [], []
    for path in _files(folder):
        digest = file_sha256(path)
        deleted.append(_delete(path, digest))
        if path.name == _SHARED_MEMORY:
            continue
        content = _meta_content(path, target) if path == folder / _META else _content_of(path)
        created.append(_create(new_folder / path.relative_to(folder), content, path.stat().st_size))
    return [*created, *deleted]


def copy_files(root: Path, session_id: str, target: Path) -> tuple[list[FileChange], str]:
    """Plan to copy a session to another working directory, under a new id. Return the id too."""
    folder = session_folder(root, session_id)
    _check_store(folder)
    new_id = str(uuid4())
    new_folder = _new_folder(root, folder, new_id, target)
    changes = []
    for path in _files(folder):
        if path.name.startswith(f"{_STORE}-"):
            continue  # its pages are in the copy of the store
        content = _content_of(path)
        if path == folder / _META:
            content = _meta_content(path, target)
        elif path == folder / _STORE:
            content = _renamed_store(path, new_id)
        changes.append(_create(new_folder / path.relative_to(folder), content, path.stat().st_size))
    return changes, new_id


def restore_files(root: Path, file: str, rows: Iterable[RawRow]) -> list[FileChange]:
    """Plan to write a deleted session back. ``file`` is the path of its store below the root.

    Raises `ChangeConflictError` if the store exists.
    """
    if (root / file).exists():
        raise ChangeConflictError(f"{root / file} exists. Nothing was changed.", root / file)
    written: dict[str, bytes] = {}
    with TempFolder() as folder:
        scratch = folder / "restored"
        scratch.mkdir()
        with RowRestorer(scratch) as restorer:
            restorer.add(file, rows)
            for path in restorer.finish():
                written[path.relative_to(scratch).as_posix()] = path.read_bytes()
    return [
        _create(root / name, lambda data=data: [data], len(data))  # type: ignore[misc]
        for name, data in written.items()
        if not (root / name).exists()
    ]


def _new_folder(root: Path, folder: Path, session_id: str, target: Path) -> Path:
    if folder.parent.name == "acp-sessions":
        return folder.with_name(session_id)
    return root / "chats" / _folder_hash(str(target)) / session_id


def _check_free(folder: Path) -> None:
    if (folder / _STORE).exists() or (folder / _META).exists():
        raise ChangeConflictError(f"{folder} exists already. Nothing was changed.", folder)


def _check_store(folder: Path) -> None:
    """Raise `UnknownStoreVersionError` if the store or its ``meta.json`` has an unknown layout."""
    path = folder / _STORE
    if path.is_file():
        with closing(Database(path)) as database:
            rows = database.read(
                lambda db: db.execute("select name from sqlite_master where type = 'table'").fetchall()
            )
        names = {bytes(name).decode("utf-8", "replace") for (name,) in rows}
        if not names <= _KNOWN_TABLES:
            unknown = ", ".join(sorted(names - _KNOWN_TABLES))
            raise UnknownStoreVersionError(
                f"{path} has unknown tables: {unknown}. Nothing was changed."
                " Update Backscroll and try again.",
                path,
            )
    meta = _meta_fields(folder / _META)
    version = msgspec.json.decode(bytes(meta["schemaVersion"])) if "schemaVersion" in meta else None
    if version not in _KNOWN_META_VERSIONS:
        raise UnknownStoreVersionError(
            f"{folder / _META} has the unknown version {version}. Nothing was changed."
            " Update Backscroll and try again.",
            folder / _META,
        )


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _changed_meta(folder: Path, target: Path) -> list[FileChange]:
    """Plan a new working directory for a session whose folder does not depend on it."""
    path = folder / _META
    if not path.is_file():
        return []
    content = _meta_content(path, target)
    return [
        FileChange(
            path=path, content=content, before=file_sha256(path), size=path.stat().st_size, label="metadata"
        )
    ]


def _meta_fields(path: Path) -> dict[str, Raw]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Raw])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}


def _meta_content(path: Path, target: Path) -> Content:
    """Return ``meta.json`` with another working directory. A damaged one is copied as it is."""
    fields = _meta_fields(path)
    if not fields:
        return _content_of(path)
    data = msgspec.json.encode({**fields, "cwd": str(target)})
    return lambda: [data]


def _renamed_store(path: Path, session_id: str) -> Content:
    """Return a consistent copy of a store with another session id."""

    def content() -> list[bytes]:
        with closing(Database(path)) as database:
            data = bytearray(database.read(lambda db: db.serialize()))
        data[_JOURNAL_VERSIONS] = b"\x01\x01"
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
            db.deserialize(bytes(data))
            for key, value in db.execute("select key, value from meta").fetchall():
                db.execute(
                    "update meta set value = ? where key = ?", [_renamed_value(key, value, session_id), key]
                )
            return [db.serialize()]

    return content


def _renamed_value(key: object, value: object, session_id: str) -> object:
    """Return a row of ``meta`` with another session id: JSON, JSON in hexadecimal, or a single field."""
    if key == "agentId":
        return session_id  # a store with one row per field cannot name its original
    if not isinstance(value, str):
        return value
    try:
        fields = msgspec.json.decode(decode_hex_text(value.encode()), type=dict[str, Raw])
    except msgspec.DecodeError:
        return value
    if "agentId" not in fields:
        return value
    origin = {"agentId": fields["agentId"], "rootBlobId": fields.get("latestRootBlobId", Raw(b"null"))}
    data = msgspec.json.encode({**fields, "agentId": session_id, "copiedFrom": origin})
    return data.hex() if is_hex(value.encode()) else data.decode()


def _create(path: Path, content: Content, size: int) -> FileChange:
    label = {"store.db": "store", "meta.json": "metadata"}.get(path.name, "file")
    return FileChange(path=path, content=content, before=None, size=size, label=label)


def _delete(path: Path, digest: str) -> FileChange:
    return FileChange(path=path, content=None, before=digest, label="file")


def _content_of(path: Path) -> Content:
    def content() -> Iterator[bytes]:
        with path.open("rb") as file:
            yield from iter(lambda: file.read(_BLOCK_BYTES), b"")

    return content


class CursorCliRelocation(Relocation):
    """New paths and contents of files that are restored from a backup onto another machine."""

    def __init__(self, files: BackupFolder, maps: PathMaps) -> None:
        self._maps = maps
        self._folders: dict[tuple[str, str], str] = {}  # names below ``chats`` and ``projects``
        self.warnings = ()
        workspaces = {*files.workspaces, *_recorded_folders(files)}
        mapped = {one: new for one in sorted(workspaces) if (new := maps.path(one)) is not None}
        names = {PurePosixPath(path).parts[:2] for path in files.paths}
        for folder, new in mapped.items():
            self._folders["chats", _folder_hash(folder)] = _folder_hash(new)
            for old_slug, new_slug in zip(project_slugs(folder), project_slugs(new), strict=True):
                if ("projects", old_slug) in names:
                    self._folders.setdefault(("projects", old_slug), new_slug)

    def path(self, path: str) -> str:
        first, *rest = PurePosixPath(path).parts
        if len(rest) > 1 and (new := self._folders.get((first, rest[0]))) is not None:
            return "/".join((first, new, *rest[1:]))
        return path

    def content(self, path: str, blocks: Iterable[bytes]) -> Iterable[bytes] | None:
        if PurePosixPath(path).name != _META:
            return None
        content = b"".join(blocks)
        new = self._maps.path(_cwd_of(content))
        if new is None:
            return [content]
        fields = msgspec.json.decode(content, type=dict[str, Raw])
        return [msgspec.json.encode({**fields, "cwd": new})]

    def edit_database(self, path: str, connection: sqlite3.Connection) -> None:
        """Do nothing: a store names its folder only in what the model has seen."""


def _recorded_folders(files: BackupFolder) -> Iterator[str]:
    """Yield the working directories in the metadata of sessions."""
    for path in files.paths:
        if PurePosixPath(path).name == _META and (cwd := _cwd_of(b"".join(files.read(path)))):
            yield cwd


def _cwd_of(content: bytes) -> str:
    try:
        fields = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return ""
    cwd = fields.get("cwd") if isinstance(fields, dict) else None
    return cwd if isinstance(cwd, str) else ""


def _folder_hash(folder: str) -> str:
    return md5(folder.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
