"""Move, copy and restore the stores of sessions.

A session is a folder below ``chats/<MD5 of the working directory>``, or below ``acp-sessions``. A subagent
may have a folder of its own.
"""

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from hashlib import md5
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Raw

from backscroll.errors import ChangeConflictError, SessionNotFoundError, UnknownStoreVersionError
from backscroll.model import RawRow
from backscroll.model.safekeeping.changes import Content, FileChange
from backscroll.model.safekeeping.transfer import StoredSession
from backscroll.readers.file_hash import file_sha256
from backscroll.readers.sqlite.connection import Database
from backscroll.readers.temp_folder import TempFolder
from backscroll.readers.timestamps import from_value
from backscroll.sources.cursor_cli.metadata import COPY_KEY, decode_hex_text, is_hex, read_meta
from backscroll.sources.restore_rows import RowRestorer

__all__ = [
    "content_of",
    "copy_files",
    "folder_hash",
    "has_store",
    "move_files",
    "restore_files",
    "subagent_folders",
]

_BLOCK_BYTES = 1 << 20
_STORE = "store.db"
_SHARED_MEMORY = "store.db-shm"  # SQLite creates it again
_META = "meta.json"
_ID_FIELDS = ("agentId",)  # of the metadata, besides those of subagentInfo
_LABELS = {_STORE: "store", _META: "metadata"}
_KNOWN_TABLES = frozenset({"blobs", "meta"})
_KNOWN_META_VERSIONS = (None, 1)
_JOURNAL_VERSIONS = slice(18, 20)  # bytes of the header of an SQLite file: 1 rollback journal, 2 WAL


def has_store(root: Path, session_id: str) -> bool:
    """Return whether a session has a folder of its own."""
    return bool(_session_folders(root, session_id))


def subagent_folders(session: StoredSession) -> list[Path]:
    """Return the folders of the session's subagents that have stores of their own."""
    stores = [Path(path) for path in session.paths if Path(path).name == _STORE]
    return sorted({path.parent for path in stores if path.parent.name != session.id})


def session_folder(root: Path, session_id: str) -> Path:
    """Return the folder of a session. Raises `SessionNotFoundError`."""
    folders = _session_folders(root, session_id)
    if len(folders) > 1:
        paths = "".join(f"\n  {path}" for path in folders)
        raise ChangeConflictError(
            f"Several folders contain the session {session_id}. Keep one of them:{paths}", folders[0]
        )
    if not folders:
        raise SessionNotFoundError(f"{root} has no store of the session {session_id}.", session_id)
    return folders[0]


def _session_folders(root: Path, session_id: str) -> list[Path]:
    found = [*root.glob(f"chats/*/{session_id}"), *root.glob(f"acp-sessions/{session_id}")]
    return sorted(path for path in found if (path / _STORE).is_file() or (path / _META).is_file())


def move_files(root: Path, session_id: str, target: Path, subagents: Iterable[Path] = ()) -> list[FileChange]:
    """Plan to move a session to another working directory, byte for byte except ``meta.json``.

    ``subagents`` are the folders of its subagents. They are moved with it.
    """
    created: list[FileChange] = []
    deleted: list[FileChange] = []
    for folder in (session_folder(root, session_id), *subagents):
        _check_store(folder)
        new_folder = _new_folder(root, folder, folder.name, target)
        if new_folder == folder:
            created += _changed_meta(folder, target)
            continue
        _check_free(new_folder)
        for path in _files(folder):
            digest = file_sha256(path)
            deleted.append(_delete(path, digest, path.stat().st_mtime))
            if path.name == _SHARED_MEMORY:
                continue
            content = _meta_content(path, target) if path == folder / _META else content_of(path)
            stat = path.stat()
            new_path = new_folder / path.relative_to(folder)
            created.append(_create(new_path, content, stat.st_size, stat.st_mtime))
        if folder.name == session_id:
            created += _new_meta(folder, new_folder, target)
    return [*created, *deleted]


def copy_files(
    root: Path, session_id: str, target: Path, subagents: Iterable[Path] = ()
) -> tuple[list[FileChange], str]:
    """Plan to copy a session to another working directory, under a new id. Return the id too.

    ``subagents`` are the folders of its subagents. They are copied with it, under new ids, too.
    """
    folders = [session_folder(root, session_id), *subagents]
    new_ids = {folder.name: str(uuid4()) for folder in folders}
    changes = []
    for folder in folders:
        _check_store(folder)
        new_folder = _new_folder(root, folder, new_ids[folder.name], target)
        for path in _files(folder):
            if path.name.startswith(f"{_STORE}-"):
                continue  # its pages are in the copy of the store
            content = content_of(path)
            if path == folder / _META:
                content = _meta_content(path, target)
            elif path == folder / _STORE:
                content = _renamed_store(path, new_ids, session_id)
            changes.append(_create(new_folder / path.relative_to(folder), content, path.stat().st_size))
        if folder.name == session_id:
            changes += _new_meta(folder, new_folder, target)
    return changes, new_ids[session_id]


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


def folder_hash(folder: str) -> str:
    """Return the name of a working directory below ``chats``."""
    return md5(folder.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _new_folder(root: Path, folder: Path, session_id: str, target: Path) -> Path:
    if folder.parent.name == "acp-sessions":
        return folder.with_name(session_id)
    return root / "chats" / folder_hash(str(target)) / session_id


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
            path=path,
            content=content,
            before=file_sha256(path),
            size=path.stat().st_size,
            label="metadata",
            modified_at=path.stat().st_mtime,
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
        return content_of(path)
    data = msgspec.json.encode({**fields, "cwd": str(target)})
    return lambda: [data]


def _new_meta(folder: Path, new_folder: Path, target: Path) -> list[FileChange]:
    """Plan a ``meta.json`` for a session of a version that wrote none. Its root names the old directory."""
    store = folder / _STORE
    if (folder / _META).exists() or not store.is_file():
        return []
    with closing(Database(store)) as database:
        rows = database.read(lambda db: db.execute("select key, value from meta").fetchall())
    modified_at = store.stat().st_mtime
    created_at = from_value(read_meta(rows).fields.get("createdAt"))
    fields = {
        "schemaVersion": 1,
        "createdAtMs": int((created_at.timestamp() if created_at is not None else modified_at) * 1000),
        "updatedAtMs": int(modified_at * 1000),
        "hasConversation": True,
        "cwd": str(target),
    }
    data = msgspec.json.encode(fields)
    return [_create(new_folder / _META, lambda: [data], len(data), modified_at)]


def _renamed_store(path: Path, new_ids: Mapping[str, str], original_id: str) -> Content:
    """Return a consistent copy of a store with new ids and the mark of a copy."""

    def content() -> list[bytes]:
        with closing(Database(path)) as database:
            data = bytearray(database.read(lambda db: db.serialize()))
        data[_JOURNAL_VERSIONS] = b"\x01\x01"
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
            db.deserialize(bytes(data))
            rows = db.execute("select key, value from meta").fetchall()
            for key, value in rows:
                db.execute(
                    "update meta set value = ? where key is ?", [_renamed_value(key, value, new_ids), key]
                )
            # In a row of its own: the CLI writes its row again whenever the session continues.
            root_id = read_meta(rows).text("latestRootBlobId")
            mark = {"agentId": original_id, "rootBlobId": root_id, "at": int(time.time() * 1000)}
            db.execute("delete from meta where key = ?", [COPY_KEY])
            db.execute("insert into meta (key, value) values (?, ?)", [COPY_KEY, json.dumps(mark)])
            return [db.serialize()]

    return content


def _renamed_value(key: object, value: object, new_ids: Mapping[str, str]) -> object:
    """Return a row of ``meta`` with new ids: JSON, JSON in hexadecimal, or a single field."""
    if not isinstance(value, str):
        return value
    if key == "agentId":
        return new_ids.get(value, value)
    try:
        fields = msgspec.json.decode(decode_hex_text(value.encode()), type=dict[str, Raw])
    except msgspec.DecodeError:
        return value
    renamed = fields | {name: _renamed_id(raw, new_ids) for name, raw in fields.items() if name in _ID_FIELDS}
    if "subagentInfo" in fields:
        renamed["subagentInfo"] = _renamed_info(fields["subagentInfo"], new_ids)
    if renamed == fields:
        return value
    data = msgspec.json.encode(renamed)
    return data.hex() if is_hex(value.encode()) else data.decode()


def _renamed_info(raw: Raw, new_ids: Mapping[str, str]) -> Raw:
    try:
        info = msgspec.json.decode(raw, type=dict[str, Raw])
    except msgspec.DecodeError:
        return raw
    return Raw(msgspec.json.encode({name: _renamed_id(value, new_ids) for name, value in info.items()}))


def _renamed_id(raw: Raw, new_ids: Mapping[str, str]) -> Raw:
    value = msgspec.json.decode(raw)
    new_id = new_ids.get(value) if isinstance(value, str) else None
    return Raw(msgspec.json.encode(new_id)) if new_id is not None else raw


def _create(path: Path, content: Content, size: int, modified_at: float | None = None) -> FileChange:
    return FileChange(
        path=path,
        content=content,
        before=None,
        size=size,
        label=_LABELS.get(path.name, "file"),
        modified_at=modified_at,
    )


def _delete(path: Path, digest: str, modified_at: float) -> FileChange:
    label = _LABELS.get(path.name, "file")
    return FileChange(path=path, content=None, before=digest, label=label, modified_at=modified_at)


def content_of(path: Path) -> Content:
    """Return the content of a file, read in blocks."""

    def content() -> Iterator[bytes]:
        with path.open("rb") as file:
            yield from iter(lambda: file.read(_BLOCK_BYTES), b"")

    return content
