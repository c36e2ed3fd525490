"""The library: everything a face can do is a method here."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from backscroll import sources
from backscroll.config import Machine, NamedRoot, Settings, archive_home, settings, this_machine
from backscroll.errors import (
    ArchiveError,
    BackscrollError,
    DataNotFoundError,
    SessionNotFoundError,
    UsageError,
)
from backscroll.model import PaginatedResult, Pagination, Retention, SearchResult, Session, SessionSummary
from backscroll.model.ledger import Ledger
from backscroll.sources import Source

if TYPE_CHECKING:
    from backscroll.archive import Archive, Filter
    from backscroll.archive.adopting import Adopted
    from backscroll.archive.compacting import Compacted
    from backscroll.archive.forgetting import Forgotten
    from backscroll.archive.status import Status
    from backscroll.archive.upgrade import Upgraded
    from backscroll.export.files import Exported, Format
    from backscroll.index import Index
    from backscroll.ingest.finding import By
    from backscroll.ingest.follow import Said
    from backscroll.ingest.originals import Extracted
    from backscroll.ingest.survey import Progress, Survey
    from backscroll.ingest.sync import Synced
    from backscroll.ingest.upkeep import Rebuilt
    from backscroll.ingest.watch import Change, Watcher
    from backscroll.readers.outline import Outline
    from backscroll.render.redaction import Redaction, Replaced
    from backscroll.render.secrets import Kinds
    from backscroll.testing.demo import Demo

__all__ = ["History"]

_LARGEST_PAGE = 1000
_WHOLE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _check_page(limit: int, offset: int) -> None:
    if not 1 <= limit <= _LARGEST_PAGE:
        raise UsageError(f"a page holds 1 to {_LARGEST_PAGE} sessions, not {limit}")
    if offset < 0:
        raise UsageError(f"a page cannot begin before the first session: {offset}")


class History:
    """A person's history, wherever the tools have left it.

    With ``roots`` only these folders are read; otherwise every place where a tool keeps its history.
    """

    def __init__(
        self,
        *,
        roots: Sequence[NamedRoot] = (),
        home: Path | None = None,
        machine: Machine | None = None,
    ) -> None:
        self._machine = machine or this_machine()
        self._named = tuple(roots)
        self._home = home
        for root in self._named:
            if root.source not in sources.NAMES:
                sources.named(root.source)

    @property
    def archive_path(self) -> Path:
        """The archive's file, whether or not it exists yet."""
        return archive_home(self._home, self._machine) / "archive.db"

    @cached_property
    def _archive(self) -> "Archive":
        from backscroll.archive import Archive, Barrier  # the database is loaded only by those who need it

        return Archive(self.archive_path, barrier=Barrier(patterns=self.settings.exclude))

    @cached_property
    def settings(self) -> Settings:
        """What the archive's settings file says. Raises `UsageError` when it cannot be understood."""
        return settings(self.archive_path.parent, self._machine)

    def close(self) -> None:
        """Close the archive, if it was opened."""
        if "_archive" in self.__dict__:
            self._archive.close()
            del self.__dict__["_archive"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is not None:
            self._tell_trouble(error)

    def _tell_trouble(self, error: BaseException) -> None:
        """Raise in a sentence what the archive's file has said with an error of its own, at whatever step."""
        if isinstance(error, BackscrollError | OSError | KeyboardInterrupt):
            return
        from backscroll.archive.trouble import is_trouble, trouble

        if is_trouble(error):
            raise trouble(error, self.archive_path) from error

    def sync(self, progress: "Progress | None" = None, *, wait: bool = True) -> "Synced | None":
        """Read what changed into the archive. None when another process is at it and ``wait`` is off."""
        import sqlite3

        from backscroll.archive.trouble import is_busy, is_trouble, trouble
        from backscroll.ingest.sync import sync

        try:
            with self._archive.patience(None if wait else 0.0) as archive:
                if archive is None:
                    return None
                if wait and archive.owes_erasure:
                    self._finish_erasure()
                report = sync(archive, self.roots(), progress, index=lambda: self._index)
        except sqlite3.Error as error:
            if not wait and is_busy(error):
                return None
            if is_trouble(error):
                raise trouble(error, self.archive_path) from error
            raise
        if self._archive.unindexed(1) or not self._index_folder.exists():
            self._update_index()
        return report

    def _finish_erasure(self) -> None:
        from backscroll.ingest.upkeep import erase

        erase(self._archive, self._index)

    def is_index_behind(self) -> bool:
        """Whether a search does not find everything yet; the next sync completes the index."""
        return bool(self._archive.unindexed(1))

    @property
    def _index_folder(self) -> Path:
        return self.archive_path.with_name("index")

    @cached_property
    def _index(self) -> "Index":
        from backscroll.index import Index

        return Index(self._index_folder)

    def watch(self, stop: Event | None = None) -> "Iterator[Change]":
        """Keep the archive up to date until told to stop, and tell what becomes of sessions meanwhile.

        `sync` first: else all that is new since the last time is told as well.
        """
        return self._watcher().changes(stop or Event())

    def follow(
        self, ref: str | None = None, *, last: int = 10, everything: bool = False, stop: Event | None = None
    ) -> "Iterator[Said]":
        """A session's last messages, then every one that comes, until told to stop.

        Without a ref it is the session with the newest activity. One that is not there yet is waited for: any
        at all, or the one with a whole id. ``everything`` tells abandoned branches and injected text as well.
        """
        from backscroll.ingest.follow import follow

        if not self.is_awaited(ref):
            summary = self.find("1" if ref is None else ref)
            ref = summary.ref

        def find() -> SessionSummary | None:
            return None if self.is_awaited(ref) else self.find("1" if ref is None else ref)

        touched = self._watcher().touched(stop or Event())
        return follow(self._archive, find, touched, last=last, everything=everything)

    def is_awaited(self, ref: str | None) -> bool:
        """Whether there is no such session yet, but one may begin: any at all, or one with this whole id."""
        from backscroll.archive import Filter

        if ref is None:
            return self._archive.count(Filter()) == 0
        id_ = ref.rpartition(":")[2]
        return _WHOLE_ID.fullmatch(id_) is not None and not self._archive.find(id_)

    def _watcher(self) -> "Watcher":
        from backscroll.ingest.watch import Watcher

        return Watcher(self._archive, self._index, self.roots)

    def _update_index(self) -> None:
        from backscroll.index import IndexDamagedError
        from backscroll.ingest.indexing import update

        try:
            update(self._archive, self._index)
        except (OSError, IndexDamagedError) as error:
            raise ArchiveError(
                f"{self._index_folder}: {error}. The archive is whole, and the next sync completes the index:"
                " make room, or check who may write there",
                self._index_folder,
                is_readable=True,
            ) from error

    def search_sessions(
        self,
        query: str,
        *,
        limit: int = 20,
        offset: int = 0,
        by: "By" = "session",
        context: int = 2,
        pattern: Literal["words", "exact", "regex"] = "words",
        filters: Mapping[str, str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        progress: "Progress | None" = None,
    ) -> SearchResult:
        """Find what was said: words in the query syntax, an exact substring, or a regular expression.

        ``filters`` are those of the query syntax, by name: source, workspace, role, tool, model, branch …
        ``until`` is the first moment that is too late. ``progress`` is told how many messages were looked at
        when a pattern holds nothing to look up. Raises `WorkspaceNotFoundError` with the candidates when the
        workspace is the end of several paths.
        """
        from backscroll.index import Filter, IndexDamagedError, Query, exact, parse, regex
        from backscroll.ingest.finding import find_pattern, find_words, resolve

        _check_page(limit, offset)
        if not self._index.is_usable():
            self._update_index()
        if "*" not in (called := (filters or {}).get("workspace", "*")):
            self._archive.workspace_hashes(called)  # raises when it is not clear which is meant
        asked = parse(query) if pattern == "words" else Query()
        conditions = [Filter(name, value) for name, value in (filters or {}).items()]
        asked = resolve(self._archive, asked.narrowed(*conditions, since=since, until=until))

        def found() -> SearchResult:
            if pattern == "words":
                return find_words(
                    self._archive, self._index, asked, limit=limit, offset=offset, by=by, context=context
                )
            looked_for = exact(query) if pattern == "exact" else regex(query)
            return find_pattern(
                self._archive,
                self._index,
                looked_for,
                asked,
                limit=limit,
                offset=offset,
                by=by,
                context=context,
                progress=None if looked_for.is_narrow else progress,
            )

        try:
            return found()
        except IndexDamagedError:
            # Damage in a place that only this search has looked at.
            self._index.rebuild()
            self._update_index()
            return found()

    def list_sessions(
        self, wanted: "Filter | None" = None, *, limit: int = 20, offset: int = 0
    ) -> PaginatedResult[SessionSummary]:
        """One page of sessions, newest first."""
        from backscroll.archive import Filter

        _check_page(limit, offset)
        wanted = wanted or Filter()
        total = self._archive.count(wanted)
        data = self._archive.summaries(wanted, limit=limit, offset=offset)
        has_more = offset + len(data) < total
        return PaginatedResult(tuple(data), Pagination(total, limit, offset, has_more))

    def find(self, ref: str, wanted: "Filter | None" = None) -> SessionSummary:
        """The session that a ref names: an index of the list, an id, or any unambiguous beginning of one.

        Raises `SessionNotFoundError`, which names the candidates when there are several.
        """
        from backscroll.archive import Filter

        wanted = wanted or Filter()
        if ref.isascii() and ref.isdigit():
            place = int(ref)
            if 0 < place <= self._archive.count(wanted):
                return self._archive.summaries(wanted, limit=1, offset=place - 1)[0]
        source, colon, id_ = ref.partition(":")
        if not colon or source not in sources.NAMES:
            id_ = ref
        found = self._archive.find(id_) if id_ else []
        if len(found) == 1:
            return found[0]
        if not found:
            raise SessionNotFoundError(
                f"no session is called {ref!r}; backscroll list shows what there is", ref
            )
        names = "\n".join(f"  {one.ref}  {one.title or ''}".rstrip() for one in found)
        raise SessionNotFoundError(f"{ref!r} may be any of these; write more of it:\n{names}", ref)

    def archive_status(self) -> "Status":
        """What the archive holds, in numbers."""
        return self._archive.status()

    def ledger(self, since: datetime | None = None) -> Ledger:
        """What became of sessions in the tools' own stores since a moment, or ever. All of them are kept."""
        return self._archive.ledger(since)

    def verify_archive(self) -> list[str]:
        """What in the archive does not agree with itself, a sentence each."""
        return self._archive.verify()

    def upgrade_database(self, path: Path) -> "Upgraded":
        """Bring another program's database from the old unified schema to today's, after a backup.

        Raises `DatabaseNotFoundError`, `DatabaseUnreadableError`, `DatabaseLockedError` or
        `DestinationError`; then the database holds what it held before.
        """
        from backscroll.archive.upgrade import upgrade

        return upgrade(path)

    def adopt_database(self, path: Path) -> "Adopted":
        """Take the conversations of an upgraded database into the archive, where it has none of that id.

        Raises `DatabaseUnreadableError`; then the archive is as it was.
        """
        from backscroll.archive.adopting import adopt

        return adopt(self.archive_path, path, self._archive.barrier)

    def forget_session(self, ref: str) -> "Forgotten":
        """Erase a session and its subagents from archive and index for good, and keep them from coming back.

        The tool's own files are not touched. Messages that another session repeats stay in that one.
        """
        from backscroll.ingest.upkeep import forget

        summary = self.find(ref)
        if summary.parent_ref is not None:
            raise UsageError(
                f"{summary.ref} is a subagent and is forgotten with the session that started it:"
                f" {summary.parent_ref}"
            )
        return forget(self._archive, self._index, summary)

    def rebuild_archive(self, progress: "Progress | None" = None) -> "Rebuilt":
        """Make sessions and index anew from the original files and rows that are kept."""
        from backscroll.ingest.upkeep import rebuild

        return rebuild(self._archive, self._index, progress)

    def compact_archive(self) -> "Compacted":
        """Make the archive's file as small as it can be."""
        return self._archive.compact()

    def extract(self, ref: str, folder: Path) -> "Extracted":
        """Write a session's originals into a folder, and its subagents' too.

        Files come byte for byte; of databases the session's rows, laid out as the tool lays them out.
        Raises `DestinationError` when a file of that name is there already.
        """
        from backscroll.ingest.originals import extract

        summary = self.find(ref)
        done = extract(self._archive, summary.id, folder)
        if not done.files:
            raise DataNotFoundError(f"of {summary.ref} no original is kept; show it with --json", folder)
        return done

    def get_session(self, ref: str, wanted: "Filter | None" = None) -> Session:
        """A session with every message of it."""
        summary = self.find(ref, wanted)
        return Session(summary, tuple(self._archive.messages_of(summary)))

    def export_session(
        self,
        ref: str,
        format: "Format" = "md",
        *,
        redaction: "Redaction | None" = None,
        everything: bool = False,
    ) -> Iterator[str]:
        """A session as Markdown, HTML, JSON, JSON lines or text, piece by piece.

        With a redaction, secrets are replaced; afterwards it tells what was. ``everything`` tells abandoned
        branches and injected text as well; JSON always does.
        """
        from backscroll.export.telling import Teller

        summary = self.find(ref)
        teller = Teller(self._archive, format, redaction, everything=everything)
        teller.learn([summary])
        return teller.tell(summary)

    def export_sessions(
        self,
        summaries: Sequence[SessionSummary],
        folder: Path,
        format: "Format" = "md",
        *,
        redaction: "Redaction | None" = None,
        everything: bool = False,
        force: bool = False,
        progress: "Progress | None" = None,
    ) -> "Exported":
        """Sessions as files of a folder, one each, with an index page beside HTML.

        Raises `DestinationError`, before anything is written, when a file is there already and ``force``
        is off.
        """
        from backscroll.export.telling import Teller

        teller = Teller(self._archive, format, redaction, everything=everything)
        return teller.write(summaries, folder, force=force, progress=progress)

    def find_secrets(
        self,
        summaries: "Sequence[SessionSummary]",
        *,
        kinds: "Sequence[Kinds]" = ("secrets",),
        progress: "Progress | None" = None,
    ) -> "list[Replaced]":
        """Keys, tokens and passwords that stand in sessions: kind, hint and places, never the secret."""
        from backscroll.export.searching import find_secrets

        return find_secrets(self._archive, summaries, kinds, progress)

    def every_session(self, wanted: "Filter | None" = None) -> list[SessionSummary]:
        """All sessions that fit, newest first, without pages."""
        from backscroll.archive import Filter

        return self._archive.summaries(wanted or Filter(), limit=-1, offset=0)

    def roots(self) -> Iterator[tuple[Source, Path]]:
        """Every folder that is looked at, whether or not it exists."""
        wanted = {root.source for root in self._named} or set(sources.NAMES)
        for name in filter(wanted.__contains__, sources.NAMES):
            source = sources.named(name)
            named = [root.path for root in self._named if root.source == name]
            for path in named or source.roots(self._machine):
                yield source, path

    def retentions(self, now: datetime | None = None) -> list[Retention]:
        """What the tools themselves will delete within a week. What was synced is kept here."""
        now = now or datetime.now(UTC)
        found = [source.retention(root, now) for source, root in self.roots() if root.is_dir()]
        return [one for one in found if one is not None]

    def survey(self, progress: "Progress | None" = None) -> "Survey":
        """What there is, and whether all of it was understood."""
        from backscroll.ingest.survey import survey

        return survey(self.roots(), progress)

    def outlines(self) -> "dict[str, dict[str, Outline]]":
        """Keys and types of every kind of record, by source, with no value in them."""
        from backscroll.readers.outline import Outline

        found: dict[str, dict[str, Outline]] = {}
        for source, root in self.roots():
            kinds = found.setdefault(source.name, {})
            for unit in source.units(root) if root.is_dir() else ():
                for kind, document in source.documents(unit):
                    kinds.setdefault(kind, Outline()).add(document)
            source.close()
        return found

    def write_demo(self, folder: Path) -> "Demo":
        """Write a made-up history into a folder that does not exist yet, or is empty.

        Raises `DestinationError` when it cannot be written; then nothing is left behind.
        """
        from backscroll.testing import demo  # a long story, which nobody else should have to load

        return demo.write(folder)
