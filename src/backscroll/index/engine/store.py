"""The index in its folder: opened late, replaced whole, never trusted more than the archive.

The folder holds one generation of the index and a file that names it. A new
generation is made beside the old one and takes its place by one rename.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from backscroll.index.engine.documents import Document
from backscroll.index.query.parser import Query

if TYPE_CHECKING:
    import tantivy

    from backscroll.index.engine.writer import IndexMetadata, Writer
    from backscroll.index.pattern.pattern import Pattern
    from backscroll.index.query.ranking import Hit
    from backscroll.index.query.searcher import By, HitPage, PendingSearch, Snapshot

__all__ = ["Index", "IndexDamagedError"]

_NAME = "current"
_COPY = "copy"  # a generation that is being made and may never be finished
_SMALL = 100  # messages that one thread writes as fast as two
_MOST = 1000
_GLANCE = 192  # messages that are looked at before asking more precisely

_Stamp = tuple[int, int]


class IndexDamagedError(Exception):
    """The index cannot be read. It is a view: `Index.rebuild`, then write everything again."""


class Index:
    """A full-text index of messages. Making one opens and loads nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._naming = folder / _NAME  # these two are looked at with every search
        self._committed = folder  # the file that is replaced with every commit
        self._generation = ""
        self._engine: tantivy.Index | None = None
        self._named_by: _Stamp | None = None  # the file that named it
        self._seen: _Stamp | None = None
        self._snapshot: Snapshot | None = None

    def is_usable(self) -> bool:
        """Whether it is there, undamaged and written by this version."""
        from backscroll.index.engine.schema import VERSION

        try:
            note = self._note()
        except IndexDamagedError:
            return False
        return note is not None and note.version == VERSION

    def rebuild(self) -> None:
        """Start again with an empty index. Whoever is reading the old one may go on."""
        import shutil  # with all that it loads, only for the one who needs it

        from backscroll.index.engine.schema import open_index
        from backscroll.index.engine.writer import Writer

        self.close()
        old = self._named()
        if self.folder.is_file():
            self.folder.unlink()
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        numbers = [int(path.name) for path in self.folder.iterdir() if path.name.isdecimal()]
        name = str(max(numbers, default=0) + 1)
        (self.folder / name).mkdir(mode=0o700)
        try:
            writer = Writer(open_index(str(self.folder / name), is_new=True), is_small=True)
        except ValueError as error:
            raise OSError(f"the index cannot be written: {error}") from error
        writer.commit(None)
        writer.close()
        self._use(name)
        shutil.rmtree(self.folder / _COPY, ignore_errors=True)
        for number in numbers:
            if str(number) == old or number < int(name) - 1:
                # Another process may hold a file of it open, which some systems do not let go.
                shutil.rmtree(self.folder / str(number), ignore_errors=True)

    def _use(self, name: str) -> None:
        """Have everybody use a generation from now on."""
        unfinished = self.folder / f"{_NAME}.{name}"
        unfinished.write_text(name, encoding="ascii")
        unfinished.replace(self.folder / _NAME)

    def purge_deleted(self) -> bool:
        """Leave nothing in the files of what was forgotten; whoever is reading the old ones may go on.

        False when another process is writing, or it could not be done: then only a `rebuild` does it.
        """
        import shutil

        from backscroll.index.engine.purge import copy_without_deleted

        copy = self.folder / _COPY
        shutil.rmtree(copy, ignore_errors=True)
        with self.writer(is_small=True) as writer:  # so that nobody else writes meanwhile
            if writer is None:
                return False
            old = self._generation
            with self._guarded():
                is_made = copy_without_deleted(self.folder / old, copy, self.watermark)
            if not is_made:
                shutil.rmtree(copy, ignore_errors=True)
                return False
            name = str(max(int(each.name) for each in self.folder.iterdir() if each.name.isdecimal()) + 1)
            copy.rename(self.folder / name)
            self._use(name)
        self.close()
        shutil.rmtree(self.folder / old, ignore_errors=True)
        return True

    @property
    def watermark(self) -> str | None:
        """What the caller said with the last commit; None for an index that is new or not to be read."""
        try:
            note = self._note()
        except IndexDamagedError:
            return None
        return note.watermark if note is not None else None

    def write(
        self, documents: Iterable[Document], *, delete: Iterable[int] = (), watermark: str | None = None
    ) -> bool:
        """Forget sessions, then add messages, in one commit. False when another process is writing.

        Without a watermark the one of the last commit stays.
        """
        rest = iter(documents)
        some = list(islice(rest, _SMALL))
        with self.writer(is_small=len(some) < _SMALL) as writer:
            if writer is None:
                return False
            writer.delete_sessions(delete)
            writer.add(chain(some, rest))
            writer.commit(watermark if watermark is not None else self.watermark)
        return True

    @contextmanager
    def writer(self, *, is_small: bool = False) -> "Iterator[Writer | None]":
        """Hold the index for several commits; None when another process is writing.

        What was not committed at the end, or when something is raised, is dropped.
        """
        from backscroll.index.engine.writer import Writer, is_lock_error

        with self._guarded():
            engine = self._opened()
            try:
                name = self._generation
                writer = Writer(engine, is_small=is_small, is_current=lambda: self._named() == name)
            except ValueError as error:
                if not is_lock_error(error):
                    raise
                writer = None
        if writer is None:
            yield None
            return
        try:
            yield writer
        finally:
            writer.close()

    def search(self, query: Query, *, limit: int, offset: int = 0, by: "By" = "session") -> "HitPage":
        """One page: the best message of each session, or messages, best first; newest first without words."""
        return self.finish_search(self.start_search(query, limit=limit, offset=offset, by=by))

    def start_search(
        self,
        query: Query,
        *,
        limit: int,
        offset: int = 0,
        by: "By" = "session",
        match_any: bool = False,
        with_counts: bool = True,
    ) -> "PendingSearch":
        """The same page before all is counted, to be looked at while the counting goes on, or without it.

        When loose, not every word is asked for even where some message has all of them.
        """
        from backscroll.index.query.compile import CompiledQuery

        matching = CompiledQuery(query)
        with self._guarded():
            return self._current().search(
                matching,
                limit=min(max(limit, 0), _MOST),
                offset=max(offset, 0),
                by=by,
                match_any=match_any,
                with_counts=with_counts,
            )

    def finish_search(self, search: "PendingSearch") -> "HitPage":
        """The page that was started, with its counts."""
        with self._guarded():
            return search.finish()

    def count_by_session(self, query: Query) -> dict[int, int]:
        """How many messages of each session have every word, by the session's number."""
        from backscroll.index.query.compile import CompiledQuery
        from backscroll.index.query.counts import count_by_session

        matching = CompiledQuery(query)
        if matching.is_empty:
            return {}
        with self._guarded():
            buckets = count_by_session(self._current().searcher, matching.strict())
        return {bucket["key"]: bucket["doc_count"] for bucket in buckets}

    def candidates(
        self, pattern: "Pattern", query: Query | None = None, *, among_few: bool = False
    ) -> "Iterator[Hit]":
        """Every message that may hold the pattern, newest first; the caller looks at its text.

        A pattern that is not `is_narrow` gives every message that the query's filters let through. Among few
        messages it is not worth asking the engine more than once.
        """
        from backscroll.index.pattern.candidates import candidate_queries
        from backscroll.index.query.searcher import TooManyTermsError

        first, *narrower = candidate_queries(pattern.needs, query or Query())
        with self._guarded():
            snapshot = self._current()
            hits = snapshot.newest(first)
            glanced_at = list(islice(hits, _GLANCE))
            yield from glanced_at
            if among_few:
                yield from hits
            if among_few or len(glanced_at) < _GLANCE:
                return
            seen = {(hit.session, hit.position) for hit in glanced_at}
            for wanted in narrower:
                with suppress(TooManyTermsError):
                    hits = snapshot.newest(wanted)
            yield from (hit for hit in hits if (hit.session, hit.position) not in seen)

    def count_candidates(self, pattern: "Pattern", query: Query | None = None) -> int:
        """How many messages `candidates` gives at most."""
        from backscroll.index.pattern.candidates import candidate_queries

        with self._guarded():
            return self._current().count_messages(candidate_queries(pattern.needs, query or Query())[0])

    def close(self) -> None:
        """Let go of the files."""
        self._engine = self._snapshot = self._seen = None
        self._generation = ""

    def _note(self) -> "IndexMetadata | None":
        from backscroll.index.engine.writer import IndexMetadata

        with self._guarded():
            text = self._current().note
            return msgspec.json.decode(text, type=IndexMetadata) if text is not None else None

    def _named(self) -> str:
        """The name of the generation in use; empty when there is none."""
        with suppress(OSError, UnicodeDecodeError):
            name = (self.folder / _NAME).read_text(encoding="ascii").strip()
            return name if name.isdecimal() else ""
        return ""

    def _opened(self) -> "tantivy.Index":
        named = _stamp(self._naming)
        if self._engine is not None and named is not None and named == self._named_by:
            return self._engine
        name = self._named()
        if self._engine is None or name != self._generation:
            from backscroll.index.engine.schema import open_index

            if not name:
                raise IndexDamagedError(f"there is no index in {self.folder}")
            self.close()
            self._engine = open_index(str(self.folder / name))
            self._generation = name
            self._committed = self.folder / name / "meta.json"
        self._named_by = named
        return self._engine

    def _current(self) -> "Snapshot":
        """The newest commit, another process's included."""
        from backscroll.index.query.searcher import Snapshot

        engine = self._opened()
        seen = _stamp(self._committed)
        if self._snapshot is None or seen != self._seen:
            engine.reload()
            self._snapshot, self._seen = Snapshot(engine.searcher()), seen
        return self._snapshot

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Whatever the engine cannot read is damage, and damage is said in one way."""
        try:
            yield
        except (ValueError, OSError, msgspec.DecodeError) as error:
            raise IndexDamagedError(f"the index in {self.folder} cannot be read: {error}") from error
        except BaseException as error:
            # The engine's way to say that a file does not hold what it should; it has no importable name.
            if type(error).__name__ != "PanicException":
                raise
            raise IndexDamagedError(f"the index in {self.folder} is damaged: {error}") from error


def _stamp(path: Path) -> _Stamp | None:
    """What differs when another file has taken this one's place; None when there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino
