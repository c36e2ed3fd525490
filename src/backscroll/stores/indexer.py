"""The index of an archive: query it, write what the archive has queued, erase forgotten sessions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.sync_state import IndexJob
from backscroll.errors import ArchiveError
from backscroll.index.documents import (
    EncodedMessage,
    IndexSession,
    SpooledDocuments,
    annotations_document,
    encode_message,
    message_document,
    prose_in,
    window_start,
)
from backscroll.index.store import Index, IndexDamagedError
from backscroll.model.message import ANNOTATIONS_POSITION, Message
from backscroll.model.session import SessionSummary
from backscroll.model.workspace import UNKNOWN_WORKSPACE

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from backscroll.archive.maintenance.forget import ForgetResult
    from backscroll.index.writer import Writer

SMALL_JOB_COUNT = 3  # fewer sessions are written as fast by one thread as by two
LOOKUP_BATCH_SIZE = 500  # sessions
MAX_COMMIT_SESSIONS = 4000  # limits the loss if a long run is interrupted
MAX_COMMIT_BYTES = 96 * 1024 * 1024  # the same; each commit leaves a segment that must be merged
T = TypeVar("T")


class IndexAccess:
    """The index of an archive. It is built when missing, and rebuilt when damaged."""

    def __init__(self, archive: Archive, path: Path) -> None:
        self._archive = archive
        self._path = path
        self.index = Index(path)

    def update(self) -> bool:
        """Index what the archive has queued. Return False if another process is writing the index.

        Raises `ArchiveError` if the index cannot be written.
        """
        try:
            return update(self._archive, self.index)
        except (OSError, IndexDamagedError) as error:
            raise ArchiveError(
                f"The index {self._path} cannot be written: {error}. The archive is intact."
                " Free disk space or check the permissions.",
                self._path,
                hint="Then run 'backscroll sync'.",
                is_readable=True,
            ) from error

    def query(self, run: Callable[[Index], T]) -> T:
        """Run a query. A missing index is built first. A damaged index is rebuilt and queried again."""
        if not self.index.is_usable():
            self.update()
        try:
            return run(self.index)
        except IndexDamagedError:
            self.index.rebuild()
            self.update()
            return run(self.index)


def update(archive: Archive, index: Index) -> bool:
    """Index everything that is queued. Return False if another process is writing the index."""
    with Indexer(archive, index) as indexer:
        return indexer.catch_up()


def forget(archive: Archive, index: Index, summary: SessionSummary) -> "ForgetResult":
    """Erase a session from archive and index. The tool's own files are not changed."""
    return replace(archive.maintenance.forget(summary), is_erased=erase(archive, index))


def erase(archive: Archive, index: Index) -> bool:
    """Remove forgotten sessions from the index and from free pages. Return False if the archive is in use.

    If this is interrupted, the next sync completes it.
    """
    if archive.pending_erasure.is_index_pending:
        if not _purge(archive, index):
            index.rebuild()  # a new index never contained the text
            update(archive, index)
        archive.pending_erasure.mark_index_done()
    return archive.maintenance.vacuum()


def _purge(archive: Archive, index: Index) -> bool:
    """Purge deleted documents from the index. Return False if the index must be rebuilt."""
    try:
        return update(archive, index) and index.purge_deleted()
    except (IndexDamagedError, OSError):
        return False


class _SpooledSession(NamedTuple):
    """A session whose documents are in a spool file."""

    session: IndexSession
    fragment_id: int
    copies: set[int]  # positions of messages that another session contained first


class Indexer:
    """Writes to the index. The writer is opened when there is something to write, and kept open."""

    def __init__(self, archive: Archive, index: Index) -> None:
        self._archive = archive
        self._index = index
        self._writer: Writer | None = None
        self._resources = ExitStack()
        self._uncommitted: set[IndexJob] = set()
        self._uncommitted_bytes = 0  # of spooled documents
        self._feeder: ThreadPoolExecutor | None = None
        self._feeding: Future[None] | None = None
        self._spooled: SpooledDocuments | None = None  # used by the feeder

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with suppress(OSError):  # jobs without a commit stay in the queue
                self.commit()
        finally:
            self._resources.__exit__(kind, error, trace)

    def catch_up(self, spooled: SpooledDocuments | None = None) -> bool:
        """Index everything that is queued. Return False if another process is writing the index.

        Spooled documents are written in the background, and committed together with later ones.
        """
        archive, index = self._archive, self._index
        if self._writer is None and not _belongs(index, archive):
            archive.index_queue.add_all()
            with archive.write_transaction():
                # Check again: another process may have replaced the index while this one waited.
                if not _belongs(index, archive):
                    index.rebuild(archive.identity)
        while jobs := self._next_jobs():
            if self._writer is None:
                is_small = spooled is None and len(jobs) < SMALL_JOB_COUNT
                self._writer = self._resources.enter_context(index.writer(is_small=is_small))
            if self._writer is None:
                return False
            try:
                self._end_feeding()
                if (
                    self._uncommitted_bytes > MAX_COMMIT_BYTES
                    or len(self._uncommitted) >= MAX_COMMIT_SESSIONS
                ):
                    self.commit()
                if self._spooled is not None and self._spooled is not spooled:
                    self._spooled.clear()
                self._spooled = spooled
                self._write(self._writer, jobs, spooled)
                if spooled is None:
                    self.commit()
            except OSError:
                self._uncommitted.clear()
                if self._writer.is_current():
                    raise
            if not self._writer.is_current():
                return False  # another process has started a new index and queued everything for it
        return True

    def _next_jobs(self) -> list[IndexJob]:
        jobs = self._archive.index_queue.next_jobs(MAX_COMMIT_SESSIONS + len(self._uncommitted))
        return [job for job in jobs if job not in self._uncommitted]

    def commit(self) -> None:
        """Commit what was written. If that fails, the jobs stay in the queue."""
        jobs, self._uncommitted, self._uncommitted_bytes = self._uncommitted, set(), 0
        self._end_feeding()
        if self._writer is not None and jobs:
            self._writer.commit(self._archive.identity)
            if self._writer.is_current():
                self._archive.index_queue.mark_done(jobs)

    def _feed(self, writer: "Writer", spooled: SpooledDocuments, sessions: list[_SpooledSession]) -> None:
        """Write spooled documents in a thread. The engine is slower than the merge of the next shards."""

        def feed() -> None:
            for one in sessions:
                documents = (
                    document
                    for document in spooled.documents(one.fragment_id)
                    if document.position not in one.copies
                )
                writer.add_session(one.session, documents, with_title=True)

        if self._feeder is None:
            from concurrent.futures import ThreadPoolExecutor  # start-up: needed by a large first sync only

            self._feeder = self._resources.enter_context(ThreadPoolExecutor(max_workers=1))
        self._feeding = self._feeder.submit(feed)

    def _end_feeding(self) -> None:
        feeding, self._feeding = self._feeding, None
        if feeding is not None:
            feeding.result()

    def _write(self, writer: "Writer", jobs: Sequence[IndexJob], spooled: SpooledDocuments | None) -> None:
        archive = self._archive
        writer.delete_sessions(job.session_id for job in jobs if job.first_position == 0)
        spooled_sessions: list[_SpooledSession] = []
        for start in range(0, len(jobs), LOOKUP_BATCH_SIZE):
            firsts = {job.session_id: job.first_position for job in jobs[start : start + LOOKUP_BATCH_SIZE]}
            workspaces = archive.sessions.workspace_hashes_by_id(firsts)
            for id_, summary in archive.sessions.by_ids(firsts).items():
                if summary.parent_ref is not None and summary.id.startswith("inline-"):
                    continue  # indexed with its parent
                session = _index_session(id_, summary, workspaces.get(id_, UNKNOWN_WORKSPACE))
                first = firsts[id_]
                if first < ANNOTATIONS_POSITION:
                    fragment_id, copies = archive.messages.single_fragment(summary) or (None, set())
                    if fragment_id is not None and first == 0 and spooled and fragment_id in spooled:
                        spooled_sessions.append(_SpooledSession(session, fragment_id, copies))
                    else:
                        self._write_session(writer, session, summary, first, fragment_id, copies)
                _write_annotations(writer, session, summary, is_update=first == ANNOTATIONS_POSITION)
        if spooled is not None and spooled_sessions:
            self._feed(writer, spooled, spooled_sessions)
        self._uncommitted.update(jobs)
        self._uncommitted_bytes += spooled.size if spooled is not None else 0

    def _write_session(
        self,
        writer: "Writer",
        session: IndexSession,
        summary: SessionSummary,
        first: int,
        fragment_id: int | None,
        copies: set[int],
    ) -> None:
        messages = self._archive.messages
        window = window_start(first)  # its session document is written again
        if first:
            writer.delete_from(session.session, first)
            writer.delete_window(session.session, window)
        in_window = (
            messages.of_session(summary, window)
            if fragment_id is None
            else messages.of_fragment(fragment_id, window)
        )
        numbered = enumerate(in_window, start=window)
        earlier_prose = [
            prose_in(document.fields)
            for document in _documents(
                (position, message)
                for position, message in islice(numbered, first - window)
                if message.role in ("user", "assistant")
            )
        ]
        # The title is indexed with the first message that is not a copy.
        with_title = all(position in copies for position in range(first))
        writer.add_session(
            session,
            _documents(numbered),
            with_title=with_title,
            earlier_prose=earlier_prose,
            window=window if first else None,
        )


def _write_annotations(
    writer: "Writer", session: IndexSession, summary: SessionSummary, *, is_update: bool
) -> None:
    """Index the annotations of a session. An update replaces the earlier ones."""
    if is_update:
        writer.delete_from(session.session, ANNOTATIONS_POSITION)
    document = annotations_document(summary)
    if document is not None:
        writer.add_session(session, [encode_message(document)], with_title=False)


def _belongs(index: Index, archive: Archive) -> bool:
    return index.is_usable() and index.watermark == archive.identity


def _index_session(id_: int, summary: SessionSummary, workspace: str) -> IndexSession:
    return IndexSession(
        session=id_,
        source=summary.source,
        title=summary.original_title or summary.title,
        branch=summary.git_branch,
        workspace_hash=workspace,
        workspace_name=summary.workspace_name,
    )


def _documents(numbered: Iterable[tuple[int, Message]]) -> Iterator[EncodedMessage]:
    """Yield the documents of the messages that are not copies. Each message comes with its position."""
    for position, message in numbered:
        if message.copied_from is None:
            yield encode_message(message_document(position, message))
