"""Plan changes of the CLI's sessions: move, copy, restore and relocate them. Nothing here writes.

A session is a folder below ``chats/<MD5 of the working directory>``, or below ``acp-sessions``. A subagent
may have a folder of its own. Transcripts are named after the project, and their lines contain no folder.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path, PurePosixPath
from uuid import uuid4

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from backscroll.errors import (
    BackscrollError,
    ChangeConflictError,
    DataNotFoundError,
    SessionNotFoundError,
    TransferError,
    UnknownStoreVersionError,
)
from backscroll.model.backup import BackupFolder
from backscroll.model.change import ChangePlan, Content, FileChange
from backscroll.model.stream import RawRow
from backscroll.model.transfer import ArchivedSession, BlockingProcess, SessionPlan, StoredSession
from backscroll.model.workspace import PathMaps
from backscroll.readers.files import file_sha256
from backscroll.readers.processes import files_open_for_writing, find_processes, may_use_folder
from backscroll.readers.sqlite import Database
from backscroll.readers.temp_folder import TempFolder
from backscroll.readers.timestamps import from_value
from backscroll.sources.capabilities import Relocation
from backscroll.sources.cursor_cli import CursorCli
from backscroll.sources.cursor_cli.metadata import COPY_KEY, decode_hex_text, is_hex, read_meta
from backscroll.sources.cursor_cli.workspace import folder_hash, moved_slug, project_slugs
from backscroll.sources.restore_rows import RowRestorer
from backscroll.sources.session_file_changes import FileRestorePlanner

_BLOCK_BYTES = 1 << 20
_STORE = "store.db"
_SHARED_MEMORY = "store.db-shm"  # SQLite creates it again
_META = "meta.json"
_ID_FIELDS = ("agentId",)  # of the metadata, besides those of subagentInfo
_LABELS = {_STORE: "store", _META: "metadata"}
_KNOWN_TABLES = frozenset({"blobs", "meta"})
_KNOWN_META_VERSIONS = (None, 1)
_JOURNAL_VERSIONS = slice(18, 20)  # bytes of the header of an SQLite file: 1 rollback journal, 2 WAL
_TRANSCRIPT_FOLDER = "agent-transcripts"
_PROGRAMS = ("cursor-agent",)


def plan_restore(session: ArchivedSession, *, is_replacing: bool = False) -> SessionPlan:
    """Plan to restore the store and the transcripts of a session. Files that exist stay as they are.

    ``is_replacing`` replaces transcripts that differ, but no store. Raises `DataNotFoundError` if neither is
    archived.
    """
    if not session.rows and not session.files:
        raise DataNotFoundError(f"The archive has no store of {session.ref}.", session.root)
    planned: dict[Path, FileChange] = {}
    for rows in session.rows:
        name = Path(rows.path).relative_to(session.root).as_posix()
        for file in restore_files(session.root, name, rows.rows(), rows.modified_at):
            planned.setdefault(file.path, file)
    for archived in session.files:
        path = Path(archived.path)
        if not path.exists():
            planned.setdefault(path, _create(path, archived.content, archived.size, archived.modified_at))
        elif is_replacing and path not in planned:
            change = _create(path, archived.content, archived.size, archived.modified_at)
            planned[path] = replace(change, before=file_sha256(path))
    return SessionPlan(_plan(f"Restore {session.ref}", session.ref, [*planned.values()]), session.id)


def restore_planner(root: Path, check: Callable[[SessionPlan], None]) -> FileRestorePlanner:
    """Return a planner that restores several sessions."""
    return FileRestorePlanner(plan_restore, check)


def plan_move(session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
    """Plan to move a session to another working directory, which is recorded only once."""
    _check_resumable(session)
    return SessionPlan(plan_companion_move(session, target), session.id)


def plan_companion_move(session: StoredSession, target: Path) -> ChangePlan:
    """Plan to move the store and the transcripts of a session, as far as they exist."""
    files: list[FileChange] = []
    if _has_store(session.root, session.id):
        files += move_files(session.root, session.id, target, _subagent_folders(session))
    files += _move_transcripts(session.root, session.id, session.folder, target)
    return _plan(f"Move {session.ref} to {target}", session.ref, files)


def plan_copy(session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
    """Plan to copy a session to another working directory, under a new id. It has no transcript yet."""
    _check_resumable(session)
    files, new_id = copy_files(session.root, session.id, target, _subagent_folders(session))
    return SessionPlan(_plan(f"Copy {session.ref} to {target}", session.ref, files), new_id)


def blocking_processes(root: Path, session_ids: Collection[str]) -> list[BlockingProcess]:
    """Return the running agents, and the processes that have a store of a session open for writing.

    An agent does not always have the store open, and another program can start it under its own name.
    """
    pids = [pid for pid in find_processes(_PROGRAMS) if may_use_folder(pid, root)]
    ids = set(session_ids)
    pids += [pid for pid, path in files_open_for_writing(root) if not ids.isdisjoint(path.parts)]
    return [
        BlockingProcess(pid, f"cursor-agent is running (process {pid}). Close it and try again.")
        for pid in dict.fromkeys(pids)
    ]


def _check_resumable(session: StoredSession) -> None:
    """Raise `TransferError` if a session has only a transcript, which ``cursor-agent`` cannot resume."""
    if _has_store(session.root, session.id) or not _find_transcript_files(session.root, session.id):
        return
    raise TransferError(
        f"{session.ref} has only a transcript, which cursor-agent cannot resume in any folder."
        " It was left where it is.",
        session.id,
        "transcript-only",
        hint=f"Run 'backscroll handoff {session.id}' to continue its work in a new session.",
    )


def _plan(what: str, ref: str, files: list[FileChange]) -> ChangePlan:
    return ChangePlan(what=what, sessions=(ref,), files=tuple(files))


# Stores


def move_files(root: Path, session_id: str, target: Path, subagents: Iterable[Path] = ()) -> list[FileChange]:
    """Plan to move a session to another working directory, byte for byte except ``meta.json``.

    ``subagents`` are the folders of its subagents. They are moved with it.
    """
    created: list[FileChange] = []
    deleted: list[FileChange] = []
    for folder in (_session_folder(root, session_id), *subagents):
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
            content = _meta_content(path, target) if path == folder / _META else _content_of(path)
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
    folders = [_session_folder(root, session_id), *subagents]
    new_ids = {folder.name: str(uuid4()) for folder in folders}
    changes = []
    for folder in folders:
        _check_store(folder)
        new_folder = _new_folder(root, folder, new_ids[folder.name], target)
        for path in _files(folder):
            if path.name.startswith(f"{_STORE}-"):
                continue  # its pages are in the copy of the store
            content = _content_of(path)
            if path == folder / _META:
                content = _meta_content(path, target)
            elif path == folder / _STORE:
                content = _renamed_store(path, new_ids, session_id)
            stat = path.stat()
            new_path = new_folder / path.relative_to(folder)
            changes.append(_create(new_path, content, stat.st_size, stat.st_mtime))
        if folder.name == session_id:
            changes += _new_meta(folder, new_folder, target)
    return changes, new_ids[session_id]


def restore_files(
    root: Path, file: str, rows: Iterable[RawRow], modified_at: float | None = None
) -> list[FileChange]:
    """Plan to write a deleted session back. ``file`` is the path of its store below the root.

    The files get the time of the store: it is the end of sessions without another time. Nothing is planned
    for files that exist. Raises `ChangeConflictError` if the store exists and does not
    contain the archived conversation.
    """
    store = root / file
    written: dict[str, bytes] = {}
    with TempFolder() as folder:
        scratch = folder / "restored"
        scratch.mkdir()
        with RowRestorer(scratch) as restorer:
            restorer.add(file, rows, CursorCli.schema)
            restored = restorer.finish()
            if store.name == _STORE and store.exists() and not _contains_blobs(store, scratch / file):
                raise ChangeConflictError(f"{store} exists with other content. Nothing was changed.", store)
            for path in restored:
                written[path.relative_to(scratch).as_posix()] = path.read_bytes()
    return [
        _create(root / name, lambda data=data: [data], len(data), modified_at)  # type: ignore[misc]
        for name, data in written.items()
        if not (root / name).exists()
    ]


def _contains_blobs(store: Path, restored: Path) -> bool:
    """Return whether a store has all blobs of a restored one."""
    if not restored.is_file():
        return True
    with closing(sqlite3.connect(restored)) as db:
        needed = {str(name) for (name,) in db.execute("select id from blobs")}
    try:
        with Database(store) as current:
            rows = current.read(lambda db: db.execute("select id from blobs").fetchall())
    except (BackscrollError, sqlite3.Error):
        return False
    return needed <= {bytes(name).decode("utf-8", "replace") for (name,) in rows if name is not None}


def _has_store(root: Path, session_id: str) -> bool:
    """Return whether a session has a folder of its own."""
    return bool(_session_folders(root, session_id))


def _subagent_folders(session: StoredSession) -> list[Path]:
    """Return the folders of the session's subagents that have stores of their own."""
    stores = [Path(path) for path in session.paths if Path(path).name == _STORE]
    return sorted({path.parent for path in stores if path.parent.name != session.id})


def _session_folder(root: Path, session_id: str) -> Path:
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
        return _content_of(path)
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


def _content_of(path: Path) -> Content:
    """Return the content of a file, read in blocks."""

    def content() -> Iterator[bytes]:
        with path.open("rb") as file:
            yield from iter(lambda: file.read(_BLOCK_BYTES), b"")

    return content


# Transcripts


def _move_transcripts(root: Path, session_id: str, folder: str | None, target: Path) -> list[FileChange]:
    """Plan to move the transcripts in the project of a folder to that of another one.

    Transcripts in other projects stay, such as those of a window without a folder.
    """
    if folder is None:
        return []
    created: list[FileChange] = []
    deleted: list[FileChange] = []
    slugs = project_slugs(folder)
    for path in _find_transcript_files(root, session_id):
        project, *rest = path.relative_to(root / "projects").parts
        if project not in slugs:
            continue
        new_path = root.joinpath("projects", _target_slug(root, project, folder, target), *rest)
        if new_path == path:
            continue
        if new_path.exists():
            raise ChangeConflictError(f"{new_path} exists already. Nothing was changed.", new_path)
        stat = path.stat()
        created.append(
            FileChange(
                path=new_path,
                content=_content_of(path),
                before=None,
                size=stat.st_size,
                label="transcript",
                modified_at=stat.st_mtime,
            )
        )
        deleted.append(
            FileChange(
                path=path,
                content=None,
                before=file_sha256(path),
                label="transcript",
                modified_at=stat.st_mtime,
            )
        )
    return [*created, *deleted]


def _find_transcript_files(root: Path, session_id: str) -> list[Path]:
    """Return the transcripts of a session and its subagents in all projects."""
    found: list[Path] = []
    for folder in sorted(root.glob(f"projects/*/{_TRANSCRIPT_FOLDER}")):
        found += [
            path for suffix in ("jsonl", "txt") if (path := folder / f"{session_id}.{suffix}").is_file()
        ]
        found += sorted(path for path in (folder / session_id).rglob("*") if path.is_file())
    return found


def _target_slug(root: Path, slug: str, folder: str, target: Path) -> str:
    """Return the name of the target's project: an existing one, else by the rule of the old name."""
    existing = [name for name in _preferred(slug, folder, target) if (root / "projects" / name).is_dir()]
    return existing[0] if existing else moved_slug(slug, folder, str(target))


def _preferred(slug: str, folder: str, target: Path) -> Iterator[str]:
    yield moved_slug(slug, folder, str(target))
    yield from sorted(project_slugs(str(target)))


# Files of a backup, restored onto another machine


def relocate(files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> Relocation:
    """Return the new paths and contents of the files of a root."""
    return _CursorCliRelocation(files, maps)


class _CursorCliRelocation(Relocation):
    """New paths and contents of files that are restored from a backup onto another machine."""

    def __init__(self, files: BackupFolder, maps: PathMaps) -> None:
        self._maps = maps
        self._folders: dict[tuple[str, str], str] = {}  # names below ``chats`` and ``projects``
        self.warnings = ()
        workspaces = {*files.workspaces, *_recorded_folders(files)}
        mapped = {one: new for one in sorted(workspaces) if (new := maps.path(one)) is not None}
        names = {PurePosixPath(path).parts[:2] for path in files.paths}
        for folder, new in mapped.items():
            self._folders["chats", folder_hash(folder)] = folder_hash(new)
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
