"""The index in its folder.

The folder contains one generation of the index, in a numbered sub-folder, and the file
``current`` that names it. A new generation is built next to the old one and replaces it
by one rename.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import tantivy

from backscroll.index.compile import CompiledQuery, Synonyms, candidate_queries, with_language
from backscroll.index.query import Query
from backscroll.index.ranking import FindParents, Hit
from backscroll.index.schema import VERSION, IndexMetadata, open_index
from backscroll.index.searcher import FacetCounter, HitPage, Snapshot, TooManyTermsError, count_by_session
from backscroll.model.search import SearchBy

if TYPE_CHECKING:
    from backscroll.index.pattern import Pattern
    from backscroll.index.writer import Writer
    from backscroll.readers.temp_folder import TempFolder


_CURRENT = "current"
_COPY = "copy"  # an unfinished generation
_MAX_PAGE_SIZE = 1000
_FAST_CANDIDATES = 192  # candidates to read before a more precise query pays
_FileStamp = tuple[int, int]  # modification time and inode
_LOCK_SUFFIX = ".lock"


class IndexDamagedError(Exception):
    """The index cannot be read. Call `Index.rebuild`, then write everything again."""


class Index:
    """A full-text index of messages. The constructor opens no files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._current_file = folder / _CURRENT
        self._meta_file = folder  # replaced by Tantivy with every commit
        self._generation = ""
        self._engine: tantivy.Index | None = None
        self._current_stamp: _FileStamp | None = None
        self._meta_stamp: _FileStamp | None = None
        self._snapshot: Snapshot | None = None

    def is_usable(self) -> bool:
        """Return whether the index exists, is undamaged and has the version of this program."""
        try:
            metadata = self._metadata()
        except IndexDamagedError:
            return False
        return metadata is not None and metadata.version == VERSION

    def rebuild(self, watermark: str | None = None) -> None:
        """Replace the index by an empty one. Readers of the old one can continue."""
        import shutil  # only needed here: its own imports are slow

        self.close()
        old = self._current_generation()
        if self.folder.is_file():
            self.folder.unlink()
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        generations = self._generations()
        name = str(max(generations, default=0) + 1)
        (self.folder / name).mkdir(mode=0o700)
        try:
            writer = _create_writer(open_index(str(self.folder / name), is_new=True), is_small=True)
        except ValueError as error:
            raise OSError(f"cannot write to the index: {error}") from error
        writer.commit(watermark)
        writer.close()
        self._activate(name)
        shutil.rmtree(self.folder / _COPY, ignore_errors=True)
        for generation in generations:
            if str(generation) == old or generation < int(name) - 1:
                # Errors are ignored: Windows does not delete files that another process has open.
                shutil.rmtree(self.folder / str(generation), ignore_errors=True)

    def purge_deleted(self) -> bool:
        """Remove deleted messages from the index files. Readers of the old files can continue.

        Return False if another process is writing or the purge failed; then `rebuild` is the alternative.
        """
        import shutil  # only needed here: its own imports are slow

        from backscroll.index.writer import copy_without_deleted

        copy = self.folder / _COPY
        shutil.rmtree(copy, ignore_errors=True)
        with self.writer(is_small=True) as writer:  # keeps other processes from writing
            if writer is None:
                return False
            old = self._generation
            with self._damage_errors():
                is_complete = copy_without_deleted(self.folder / old, copy, self.watermark)
            if not is_complete:
                shutil.rmtree(copy, ignore_errors=True)
                return False
            name = str(max(self._generations()) + 1)
            copy.rename(self.folder / name)
            self._activate(name)
        self.close()
        shutil.rmtree(self.folder / old, ignore_errors=True)
        return True

    def _generations(self) -> list[int]:
        return [int(path.name) for path in self.folder.iterdir() if path.name.isdecimal()]

    def _activate(self, name: str) -> None:
        """Make a generation the current one for all processes."""
        temporary = self.folder / f"{_CURRENT}.{name}"
        temporary.write_text(name, encoding="ascii")
        temporary.replace(self._current_file)

    @property
    def watermark(self) -> str | None:
        """The watermark of the last commit; None if the index is new or damaged."""
        try:
            metadata = self._metadata()
        except IndexDamagedError:
            return None
        return metadata.watermark if metadata is not None else None

    @contextmanager
    def writer(self, *, is_small: bool = False) -> Iterator[Writer | None]:
        """Lock the index for several commits. Yields None if another process is writing.

        Uncommitted changes are dropped at the end and on an exception.
        """
        with self._damage_errors():
            engine = self._open()
            try:
                name = self._generation
                writer = _create_writer(
                    engine, is_small=is_small, is_current=lambda: self._current_generation() == name
                )
            except ValueError as error:
                if not _is_lock_error(error):
                    raise
                writer = None
        if writer is None:
            yield None
            return
        try:
            yield writer
        finally:
            writer.close()

    def search(
        self,
        query: Query,
        *,
        limit: int,
        offset: int = 0,
        by: SearchBy = "session",
        match_any: bool = False,
        with_counts: bool = True,
        synonyms: Synonyms = lambda _: (),
        find_parents: FindParents = lambda _: {},
    ) -> HitPage:
        """Return one page: the best message of each session, or messages. Newest first without words.

        With ``match_any``, messages with some of the words match even if others have all of them. Synonyms
        count in the text of whole sessions. With ``find_parents``, subagents follow their sessions.
        """
        with self._damage_errors():
            snapshot = self._latest_snapshot()
            return snapshot.search(
                CompiledQuery(query, synonyms, snapshot.has_word),
                limit=min(max(limit, 0), _MAX_PAGE_SIZE),
                offset=max(offset, 0),
                by=by,
                match_any=match_any,
                with_counts=with_counts,
                find_parents=find_parents,
            )

    def find_messages(self, query: Query, *, limit: int, requires_all: bool = False) -> list[Hit]:
        """Return the best messages for a query, any number of them, without counts.

        If no message has all words, those with some of them are returned, unless ``requires_all``.
        """
        with self._damage_errors():
            snapshot = self._latest_snapshot()
            compiled = CompiledQuery(query, is_indexed=snapshot.has_word)
            found = snapshot.search(compiled, limit=limit, offset=0, by="message", with_counts=False)
            return [] if requires_all and found.is_relaxed else found.hits

    def with_language(self, query: Query) -> Query:
        """Return the query in its language, as far as stop words or unknown words show it."""
        with self._damage_errors():
            return with_language(query, self._latest_snapshot().has_word)

    def count_by_session(self, query: Query) -> dict[int, int]:
        """Return the number of messages with every word, by session id."""
        compiled = CompiledQuery(query)
        if compiled.is_empty:
            return {}
        with self._damage_errors():
            buckets = count_by_session(self._latest_snapshot().searcher, compiled.strict())
        return {bucket["key"]: bucket["doc_count"] for bucket in buckets}

    @contextmanager
    def facet_counter(self) -> Iterator[FacetCounter]:
        """Yield a counter of messages by property, for the current commit of the index."""
        with self._damage_errors():
            yield FacetCounter(self._latest_snapshot().searcher)

    def candidates(
        self, pattern: Pattern, query: Query | None = None, *, refine: bool = True
    ) -> Iterator[Hit]:
        """Yield every message that may match the pattern, newest first. The caller verifies the text.

        A pattern that is not `is_narrow` yields every message that passes the filters of the query. Without
        ``refine`` only the fastest query runs, which is enough for a few sessions.
        """
        fast, *precise = candidate_queries(pattern.required, query or Query())
        with self._damage_errors():
            snapshot = self._latest_snapshot()
            hits = snapshot.newest(fast)
            first = list(islice(hits, _FAST_CANDIDATES))
            yield from first
            if not refine:
                yield from hits
            if not refine or len(first) < _FAST_CANDIDATES:
                return
            seen = {(hit.session, hit.position) for hit in first}
            for query_ in precise:
                with suppress(TooManyTermsError):
                    hits = snapshot.newest(query_)
            yield from (hit for hit in hits if (hit.session, hit.position) not in seen)

    def count_candidates(self, pattern: Pattern, query: Query | None = None) -> int:
        """Return the maximum number of messages that `candidates` yields."""
        with self._damage_errors():
            fast, *_ = candidate_queries(pattern.required, query or Query())
            return self._latest_snapshot().count_messages(fast)

    def close(self) -> None:
        """Close all files."""
        self._engine = self._snapshot = self._meta_stamp = None
        self._generation = ""

    def _metadata(self) -> IndexMetadata | None:
        with self._damage_errors():
            text = self._latest_snapshot().metadata
            return msgspec.json.decode(text, type=IndexMetadata) if text is not None else None

    def _current_generation(self) -> str:
        """Return the name of the current generation; empty if there is none."""
        with suppress(OSError, UnicodeDecodeError):
            name = self._current_file.read_text(encoding="ascii").strip()
            return name if name.isdecimal() else ""
        return ""

    def _open(self) -> tantivy.Index:
        stamp = _file_stamp(self._current_file)
        if self._engine is not None and stamp is not None and stamp == self._current_stamp:
            return self._engine
        name = self._current_generation()
        if self._engine is None or name != self._generation:
            if not name:
                raise IndexDamagedError(f"there is no index in {self.folder}")
            self.close()
            self._engine = self._open_generation(name)
            self._generation = name
            self._meta_file = self.folder / name / "meta.json"
        self._current_stamp = stamp
        return self._engine

    def _open_generation(self, name: str) -> tantivy.Index:
        folder = self.folder / name
        try:
            return open_index(str(folder))
        except ValueError:
            import weakref  # only needed for an index that cannot be written

            if not folder.is_dir() or os.access(folder, os.W_OK):
                raise
            engine, links = _open_read_only(folder)
            weakref.finalize(self, links.close)
            return engine

    def _latest_snapshot(self) -> Snapshot:
        """Return the newest commit of any process."""
        engine = self._open()
        stamp = _file_stamp(self._meta_file)
        if self._snapshot is None or stamp != self._meta_stamp:
            engine.reload()
            self._snapshot, self._meta_stamp = Snapshot(engine.searcher()), stamp
        return self._snapshot

    @contextmanager
    def _damage_errors(self) -> Iterator[None]:
        """Raise `IndexDamagedError` for everything that Tantivy raises on unreadable files."""
        try:
            yield
        except (ValueError, OSError, msgspec.DecodeError) as error:
            raise IndexDamagedError(f"cannot read the index in {self.folder}: {error}") from error
        except BaseException as error:
            # A Rust panic on unexpected file content. The exception class cannot be imported.
            if type(error).__name__ != "PanicException":
                raise
            raise IndexDamagedError(f"the index in {self.folder} is damaged: {error}") from error


def _create_writer(
    engine: tantivy.Index, *, is_small: bool, is_current: Callable[[], bool] = lambda: True
) -> Writer:
    from backscroll.index.writer import Writer

    return Writer(engine, is_small=is_small, is_current=is_current)


def _is_lock_error(error: ValueError) -> bool:
    """Return whether the error means that another process writes to the index."""
    return "LockBusy" in str(error)


def _file_stamp(path: Path) -> _FileStamp | None:
    """Return a value that changes when the file is replaced; None if there is no file."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino


def _open_read_only(folder: Path) -> tuple[tantivy.Index, TempFolder]:
    """Open the index in a folder without writing to it. The caller closes the temporary folder.

    Tantivy creates a lock file even to read. The temporary folder contains links to all other files.
    Later changes of the index are not seen.
    """
    from backscroll.readers.temp_folder import TempFolder  # start-up: rarely needed, its imports are slow

    links = TempFolder()
    try:
        for file in folder.iterdir():
            if file.suffix != _LOCK_SUFFIX:
                _link(file.resolve(), links.path / file.name)
        return open_index(str(links.path)), links
    except BaseException:
        links.close()
        raise


def _link(file: Path, link: Path) -> None:
    try:
        link.symlink_to(file)
    except OSError:  # Windows without permission to create links
        import shutil  # rarely needed: its own imports are slow

        shutil.copyfile(file, link)
