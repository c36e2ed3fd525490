"""Give the index the words it does not have yet. The archive decides what it must have."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from backscroll.archive import Archive
from backscroll.archive.index_queue import IndexJob
from backscroll.index import Index, IndexSession
from backscroll.index.engine.background import BackgroundTask
from backscroll.ingest.index_documents import Ready, noted, spoken
from backscroll.model import UNKNOWN_WORKSPACE, Message, SessionSummary
from backscroll.model.searchable_text import ANNOTATIONS_POSITION

if TYPE_CHECKING:
    from backscroll.index.engine.encode import EncodedMessage
    from backscroll.index.engine.writer import Writer

__all__ = ["Indexing", "update"]

_FEW = 3  # sessions that one thread writes as fast as two
_BATCH = 500  # sessions that are looked up together
_COMMIT = 4000  # sessions in one commit at most, so that not all is lost when a long run is stopped
_MUCH = 96 * 1024 * 1024  # bytes of entries, likewise; each commit leaves a part, and parts must be merged


def update(archive: Archive, index: Index) -> bool:
    """Bring the index up to the archive. False when another process is writing it."""
    with Indexing(archive, index) as indexing:
        return indexing.catch_up()


class _Told(NamedTuple):
    """A session of which what the index needs is ready."""

    whose: IndexSession
    account: int
    copies: set[int]  # positions of messages that are another session's


class Indexing:
    """The index, held for writing from the first time that there is something to write."""

    def __init__(self, archive: Archive, index: Index) -> None:
        self._archive = archive
        self._index = index
        self._writer: Writer | None = None
        self._held = ExitStack()
        self._waiting: set[IndexJob] = set()  # written, and not committed yet
        self._size = 0  # bytes of what is ready that wait so
        self._feeding: BackgroundTask[None] | None = None
        self._ready: Ready | None = None  # what it is fed with

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with suppress(OSError):  # what cannot be committed is still noted as lacking
                self.commit()
        finally:
            self._held.__exit__(kind, error, trace)

    def catch_up(self, ready: Ready | None = None) -> bool:
        """Index all that the archive has and the index has not.

        What is ready is taken from there while the caller goes on, and may wait to be committed together with
        what follows. False when another process is writing the index.
        """
        archive, index = self._archive, self._index
        if self._writer is None and not _belongs(index, archive):
            archive.index_queue.add_all()
            with archive.write_transaction():
                # Whoever waited for this finds it done, and throws away nothing that others are writing.
                if not _belongs(index, archive):
                    index.rebuild()
                    index.write((), watermark=archive.identity)
        while lacks := self._lacks():
            if self._writer is None:
                is_small = ready is None and len(lacks) < _FEW
                self._writer = self._held.enter_context(index.writer(is_small=is_small))
            if self._writer is None:
                return False
            try:
                self._end_feeding()
                if self._size > _MUCH or len(self._waiting) >= _COMMIT:
                    self.commit()
                if self._ready is not None and self._ready is not ready:
                    self._ready.clear()
                self._ready = ready
                self._write(self._writer, lacks, ready)
                if ready is None:
                    self.commit()
            except OSError:
                self._waiting.clear()
                if self._writer.is_current():
                    raise
            if not self._writer.is_current():
                return False  # another process has begun a new one, and notes for itself what that lacks
        return True

    def _lacks(self) -> list[IndexJob]:
        found = self._archive.index_queue.next_jobs(_COMMIT + len(self._waiting))
        return [one for one in found if one not in self._waiting]

    def commit(self) -> None:
        """Let everybody find what was written. What cannot be committed is no longer waited with."""
        done, self._waiting, self._size = self._waiting, set(), 0
        self._end_feeding()
        if self._writer is not None and done:
            self._writer.commit(self._archive.identity)
            if self._writer.is_current():
                self._archive.index_queue.mark_done(done)

    def _feed(self, writer: "Writer", ready: Ready, told: list[_Told]) -> None:
        """Write what is ready in a thread of its own: the engine is slower than whoever takes in the next."""

        def feed() -> None:
            for one in told:
                entries = (each for each in ready.entries(one.account) if each.position not in one.copies)
                writer.add_session(one.whose, entries, with_title=True)

        self._feeding = BackgroundTask(feed)

    def _end_feeding(self) -> None:
        feeding, self._feeding = self._feeding, None
        if feeding is not None:
            feeding.result()

    def _write(self, writer: "Writer", lacks: Sequence[IndexJob], ready: Ready | None) -> None:
        archive = self._archive
        writer.delete_sessions(one.session_id for one in lacks if one.first_position == 0)
        told: list[_Told] = []
        for start in range(0, len(lacks), _BATCH):
            firsts = {one.session_id: one.first_position for one in lacks[start : start + _BATCH]}
            workspaces = archive.sessions.workspace_hashes_by_id(firsts)
            for number, summary in archive.sessions.by_ids(firsts).items():
                if summary.parent_ref is not None and summary.id.startswith("inline-"):
                    continue  # told together with its parent
                whose = _whose(number, summary, workspaces.get(number, UNKNOWN_WORKSPACE))
                if firsts[number] < ANNOTATIONS_POSITION:
                    account, copies = archive.messages.single_fragment(summary) or (None, set())
                    if ready is not None and account is not None and account in ready and firsts[number] == 0:
                        told.append(_Told(whose, account, copies))
                    else:
                        self._write_session(writer, whose, summary, firsts[number], account, copies)
                _write_notes(writer, whose, summary, is_all=firsts[number] == ANNOTATIONS_POSITION)
        if ready is not None and told:
            self._feed(writer, ready, told)
        self._waiting.update(lacks)
        self._size += ready.size if ready is not None else 0

    def _write_session(
        self,
        writer: "Writer",
        whose: IndexSession,
        summary: SessionSummary,
        first: int,
        account: int | None,
        copies: set[int],
    ) -> None:
        archive = self._archive
        if first:
            writer.delete_from(whose.session, first)
        if account is None:
            entries = _made(first, archive.messages.of_session(summary, first))
        else:
            entries = _made(first, archive.messages.of_fragment(account, first))
        # The title is found with the first message that is the session's own.
        with_title = all(position in copies for position in range(first))
        writer.add_session(whose, entries, with_title=with_title)


def _write_notes(writer: "Writer", whose: IndexSession, summary: SessionSummary, *, is_all: bool) -> None:
    """Write what people have added to a session; when that is all, in place of what they had added."""
    from backscroll.index.engine.encode import encode_message

    if is_all:
        writer.delete_from(whose.session, ANNOTATIONS_POSITION)
    spoken_of = noted(summary)
    if spoken_of is not None:
        writer.add_session(whose, [encode_message(spoken_of)], with_title=False)


def _belongs(index: Index, archive: Archive) -> bool:
    return index.is_usable() and index.watermark == archive.identity


def _whose(number: int, summary: SessionSummary, workspace: str) -> IndexSession:
    return IndexSession(
        session=number,
        source=summary.source,
        title=summary.original_title or summary.title,
        branch=summary.git_branch,
        workspace_hash=workspace,
        workspace_name=summary.workspace_name,
    )


def _made(first: int, messages: Iterable[Message]) -> "Iterator[EncodedMessage]":
    """Entries of those messages that are the session's own, from a position on."""
    from backscroll.index.engine.encode import encode_message

    for position, message in enumerate(messages, start=first):
        if message.copied_from is None:
            yield encode_message(spoken(position, message))
