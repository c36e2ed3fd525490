"""The sessions of the archive as the sources' writers need them."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.query.originals import Original
from backscroll.errors import DataNotFoundError, TransferError
from backscroll.model.backup import BackupFolder
from backscroll.model.change import Content
from backscroll.model.resume import Resumable
from backscroll.model.session import SessionSummary
from backscroll.model.store import stores_with
from backscroll.model.stream import RawRow
from backscroll.model.transfer import ArchivedFile, ArchivedRows, ArchivedSession, StoredSession
from backscroll.sources import named
from backscroll.sources.capabilities import CompanionMoves, Relocation, SessionWriter
from backscroll.transfer.safety import writable_roots

_NO_FILES = BackupFolder((), lambda _: iter(()), ())


def writer_of(summary: SessionSummary) -> SessionWriter:
    """Return the writer of a session's source. Raises `TransferError` if it has none."""
    writer = named(summary.source).writer()
    if writer is None:
        raise TransferError(f"Sessions of {summary.source} cannot be changed.", summary.id, "unsupported")
    return writer


def stored_session(archive: Archive, summary: SessionSummary, roots: Collection[Path]) -> StoredSession:
    """Return a session that is in its tool's store, below one of the roots.

    Raises `TransferError` if it is not.
    """
    if summary.parent_ref is not None:
        raise TransferError(
            f"{summary.ref} is a subagent. It is moved with its session: {summary.parent_ref}",
            summary.id,
            "subagent",
        )
    units = archive.originals.in_store(summary)
    resumable = archive.originals.resumable(summary)
    with_messages = stores_with("records", "copy")
    if not summary.is_gone and not any(store.kind in with_messages for store in resumable.stores):
        raise TransferError(
            f"{summary.ref} has no messages in the tool's store. Only its prompts or events are known.",
            summary.id,
            "prompts-only",
        )
    if summary.is_gone or not units:
        raise TransferError(
            f"{summary.ref} is no longer in the tool's store.",
            summary.id,
            "gone",
            hint=f"Run 'backscroll restore-session {summary.id}' first.",
        )
    if resumable.authority:
        raise remote_error(summary)
    root_names = writable_roots(summary, summary.source, (unit.root for unit in units), roots)
    store = next(store for store in resumable.stores if store.root in root_names and not store.is_gone)
    return StoredSession(
        ref=summary.ref,
        id=summary.id,
        root=Path(store.root),
        paths=tuple(unit.path for unit in units if unit.root == store.root),
        folder=resumable.folder,
        folders=resumable.folders,
        title=resumable.title,
    )


def remote_error(summary: SessionSummary) -> TransferError:
    """Return the error for a session of a folder on another host."""
    return TransferError(
        f"{summary.ref} belongs to a folder on another host. Only local folders are supported.",
        summary.id,
        "remote",
    )


def companions(
    archive: Archive, summary: SessionSummary, roots: Collection[Path]
) -> Iterator[tuple[CompanionMoves, StoredSession]]:
    """Yield what other sources have of a session, such as the transcript of a session of an editor.

    Raises `TransferError` if it is below none of the roots.
    """
    units = [unit for unit in archive.originals.in_stores(summary) if unit.source != summary.source]
    resumable = archive.originals.resumable(summary)
    roots_by_source: dict[str, list[str]] = {}
    for unit in units:
        roots_by_source.setdefault(unit.source, []).append(unit.root)
    for source_name, known in roots_by_source.items():
        moves = named(source_name).companion_moves()
        if moves is None:
            continue
        for root in sorted(writable_roots(summary, source_name, known, roots)):
            paths = [unit.path for unit in units if (unit.source, unit.root) == (source_name, root)]
            yield (
                moves,
                StoredSession(
                    ref=summary.ref,
                    id=summary.id,
                    root=Path(root),
                    paths=tuple(paths),
                    folder=resumable.folder,
                    folders=resumable.folders,
                    title=resumable.title,
                ),
            )


def archived_session(
    archive: Archive, summary: SessionSummary, roots: Collection[Path] | None = None
) -> ArchivedSession:
    """Return a session with its originals of one root: one of the given, or any without ``roots``.

    Raises `DataNotFoundError` if none are stored, `TransferError` if they are from other roots.
    """
    files = [one for one in archive.originals.files(summary) if one.source == summary.source]
    rows = [one for one in archive.originals.units_with_rows(summary.id) if one.source == summary.source]
    rows += [one for one in files if one not in rows and archive.originals.side_files(one)]
    logs = [one for one in archive.originals.prompt_logs(summary) if one.source == summary.source]
    if not files and not rows and not logs:
        raise DataNotFoundError(f"The archive has no originals of {summary.ref}.", "")
    resumable = archive.originals.resumable(summary)
    known = list(dict.fromkeys(one.root for one in (*files, *rows, *logs)))
    root_names = known if roots is None else writable_roots(summary, summary.source, known, roots)
    root = next(
        (store.root for store in resumable.stores if store.root in root_names),
        next(root for root in known if root in root_names),
    )
    written = _distinct(_Written(archive, one) for one in files if one.root == root)
    return ArchivedSession(
        ref=summary.ref,
        id=summary.id,
        root=Path(root),
        files=tuple(one.file() for one in written),
        rows=tuple(
            one.rows() for one in _distinct(_Written(archive, one) for one in rows if one.root == root)
        ),
        prompt_logs=tuple(_Written(archive, one).file() for one in logs if one.root == root),
        folder=resumable.folder,
        title=resumable.title,
    )


def resumable_session(archive: Archive, summary: SessionSummary) -> Resumable:
    """Return what a tool needs to resume a session. Files to restore have the paths that they will get."""
    found = archive.originals.resumable(summary)
    if not summary.is_gone:
        return found
    paths = written_paths(archive, summary)
    return replace(
        found, stores=tuple(replace(one, path=paths.get(one.path, one.path)) for one in found.stores)
    )


def written_paths(archive: Archive, summary: SessionSummary) -> dict[str, str]:
    """Return the paths to which a restore writes the originals of a moved session, by their old paths."""
    originals = archive.originals
    found = [*originals.files(summary), *originals.units_with_rows(summary.id)]
    return {one.path: _Written(archive, one).path for one in found if one.source == summary.source}


class _Written:
    """An original as a restore writes it: with the folders of this machine, and of moves since."""

    def __init__(self, archive: Archive, original: Original) -> None:
        self._archive = archive
        self._original = original
        self._relocation = self._relocate()

    @property
    def path(self) -> str:
        original = self._original
        if self._relocation is None:
            return original.path
        path = Path(original.path).relative_to(original.root).as_posix()
        return str(Path(original.root, *self._relocation.path(path).split("/")))

    @property
    def place(self) -> tuple[str, str]:
        """The path and the key: one unit is stored there."""
        return self.path, self._original.key

    @property
    def is_moved(self) -> bool:
        return self.path != self._original.path

    def file(self) -> ArchivedFile:
        if self._relocation is None:
            content = _content(self._archive, self._original)
        else:
            path = Path(self._original.path).relative_to(self._original.root).as_posix()
            content = partial(
                self._relocation.new_content,
                path,
                partial(self._archive.originals.read_file, self._original),
            )
        size, modified_at = self._original.size, _modified_at(self._original)
        return ArchivedFile(self.path, size, content, modified_at=modified_at)

    def rows(self) -> ArchivedRows:
        return ArchivedRows(self.path, self._original.key, self._rows, _modified_at(self._original))

    def _rows(self) -> Iterator[RawRow]:
        for row in self._archived_rows():
            if self._relocation is None:
                yield row
            else:
                path = self._relocation.path(row.path) if row.path else ""
                yield replace(self._relocation.row(row), path=path)

    def _archived_rows(self) -> Iterator[RawRow]:
        return self._archive.originals.rows(self._original, fullest=True)

    def _relocate(self) -> Relocation | None:
        """Return the relocation of a session that was moved after its tool had deleted it."""
        original = self._original
        moves = self._archive.originals.folder_moves(original)
        backup = named(original.source).backup() if moves else None
        if backup is None:
            return None
        maps = self._archive.originals.folder_maps(original).followed_by(moves)
        path = Path(original.path).relative_to(original.root).as_posix()
        sides = {row.path: row.value for row in self._archived_rows() if row.path and not row.table}

        def read(name: str) -> Iterator[bytes]:
            if name == path and not original.key:
                return self._archive.originals.read_file(original)
            return iter([sides.get(name) or b""])

        old_folders = tuple(old for old, _ in maps.pairs)
        files = BackupFolder((path, *sides), read, old_folders)
        return backup.relocate(files, maps, original.root, Path(original.root))


def _distinct(originals: Iterable[_Written]) -> Iterable[_Written]:
    """Return one original for each place. One that was there is preferred to one that was moved there."""
    ordered = sorted(originals, key=lambda one: one.is_moved, reverse=True)
    return {one.place: one for one in ordered}.values()


def _modified_at(original: Original) -> float | None:
    return original.modified_at / 1000 if original.modified_at is not None else None


def _content(archive: Archive, original: Original) -> Content:
    """Return the content of a stored file, with the folders of this machine."""
    content = partial(archive.originals.read_file, original)
    maps = archive.originals.folder_maps(original)
    source_backup = named(original.source).backup() if maps else None
    if source_backup is None:
        return content
    path = Path(original.path).relative_to(original.root).as_posix()
    relocation = source_backup.relocate(_NO_FILES, maps, original.root, Path(original.root))
    return partial(relocation.new_content, path, content)
