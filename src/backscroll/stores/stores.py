"""One home opened: its archive, index and change log, the roots of the tools, and the settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll import sources
from backscroll.archive.archive import Archive
from backscroll.archive.connection import read_only_error
from backscroll.archive.session_key import SessionKey
from backscroll.archive.write.exclusions import Exclusions
from backscroll.config import Machine, NamedRoot, Settings, archive_home, settings
from backscroll.errors import ToolRunningError, UsageError
from backscroll.pricing.rates import Rates
from backscroll.readers.files import escape_name, is_utf8

if TYPE_CHECKING:
    from backscroll.changes.change_log import ChangeLog
    from backscroll.model.change import Change, FolderMove
    from backscroll.sources import Source
    from backscroll.sources.capabilities import SessionWriter
    from backscroll.stores.indexer import IndexAccess


class Stores:
    """The archive and the index of one home, opened on first use, and the roots that are read.

    Without roots, all roots of the machine are read. ``is_detached`` reads none.
    """

    def __init__(
        self,
        roots: Sequence[NamedRoot],
        home: Path | None,
        machine: Machine,
        *,
        is_detached: bool = False,
    ) -> None:
        self.machine = machine
        self._is_detached = is_detached
        self.named_roots = tuple(roots)
        self._home = home
        for root in self.named_roots:
            if root.source not in sources.names():
                sources.named(root.source)  # raises UsageError

    @property
    def archive_path(self) -> Path:
        return archive_home(self._home, self.machine) / "archive.db"

    @cached_property
    def settings(self) -> Settings:
        return settings(self.archive_path.parent, self.machine)

    @cached_property
    def archive(self) -> Archive:
        return Archive(
            self.archive_path,
            exclusions=Exclusions(patterns=self.settings.exclude),
            rates=Rates(self.settings.prices),
        )

    @property
    def writable_archive(self) -> Archive:
        """The archive. Raises `ArchiveError` if it is read-only."""
        if self.archive.is_read_only:
            raise read_only_error(self.archive_path)
        return self.archive

    @cached_property
    def index(self) -> IndexAccess:
        from backscroll.stores.indexer import IndexAccess

        return IndexAccess(self.archive, self.index_path)

    @property
    def index_path(self) -> Path:
        return self.archive_path.with_name("index")

    @property
    def spool_path(self) -> Path:
        """The folder in which hooks record events until the next sync."""
        return self.archive_path.with_name("spool")

    @property
    def backup_cache(self) -> Path:
        """The folder with archives that were extracted from backups."""
        return self.archive_path.with_name("backup-cache")

    @property
    def change_log(self) -> ChangeLog:
        """The record of all changes of the tools' stores. Nothing is undone while a process holds it."""
        from backscroll.changes.change_log import ChangeLog  # start-up: few commands change a store

        return ChangeLog(
            self.archive_path.with_name("changes"),
            lambda change: _check_change(change, self.roots()),
            self._move_sessions,
        )

    def _move_sessions(self, moves: Sequence[FolderMove], is_undo: bool) -> None:
        """Move sessions that their tools have deleted to other folders, or back."""
        keys: dict[tuple[str, str], list[SessionKey]] = {}
        for move in moves:
            source, _, session_id = move.session.partition(":")
            key = SessionKey(sources.named(source).platform, session_id)
            keys.setdefault((move.before, move.after), []).append(key)
        for (before, after), sessions in keys.items():
            self.writable_archive.maintenance.move_sessions(sessions, before, after, is_undo=is_undo)

    @property
    def is_open(self) -> bool:
        return "archive" in self.__dict__

    def close(self) -> None:
        """Close the archive if it is open."""
        if self.is_open:
            self.archive.close()
            del self.archive
            self.__dict__.pop("index", None)

    def root_paths(self) -> list[Path]:
        """Return the roots of all sources, existing or not."""
        return [path for _, path in self.roots()]

    def roots(self) -> Iterator[tuple[Source, Path]]:
        """Yield every source with each of its roots, existing or not."""
        if self._is_detached:
            return
        named = {root.source for root in self.named_roots} or set(sources.names())
        for name in filter(named.__contains__, sources.names()):
            source = sources.named(name)
            paths = [root.path for root in self.named_roots if root.source == name]
            for path in paths or source.roots(self.machine):
                if not is_utf8(str(path)):
                    raise UsageError(
                        f"{escape_name(str(path))} has a name that is not UTF-8."
                        " Create a link with another name and pass that one."
                    )
                yield source, path


def check_processes(writer: SessionWriter, root: Path, session_ids: Collection[str]) -> None:
    """Raise `ToolRunningError` if a process holds what would be changed."""
    blocking = writer.blocking_processes(root, session_ids)
    if blocking:
        raise ToolRunningError(blocking[0].reason, blocking[0].pid)


def _check_change(change: Change, roots: Iterable[tuple[Source, Path]]) -> None:
    """Raise `ToolRunningError` if a process holds a file or database of a change."""
    ids: dict[str, list[str]] = {}
    for ref in change.sessions:
        source_name, _, session_id = ref.partition(":")
        ids.setdefault(source_name, []).append(session_id)
    for source, root in roots:
        is_changed = any(Path(path).is_relative_to(root) for path in change.paths)
        writer = source.writer() if is_changed else None
        if writer is not None:
            check_processes(writer, root, ids.get(source.name, []))
