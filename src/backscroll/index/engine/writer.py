"""Writing the index: messages in, whole sessions out, one commit at a time."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

import msgspec
import tantivy

from backscroll.index.engine.documents import Document, IndexSession
from backscroll.index.engine.encode import EncodedMessage, encode_message, encode_session
from backscroll.index.engine.schema import METADATA_TAG, VERSION, schema
from backscroll.index.engine.throttle import Throttle

__all__ = ["IndexMetadata", "Writer", "is_lock_error"]

_HEAP = 28_000_000  # with what waits to be written, about 50 MB in all
_SMALL_HEAP = 15_000_000
# In the same room several would write smaller parts, which have to be merged again; and whoever has much to
# write has other work for the other cores.
_THREADS = 1


class IndexMetadata(msgspec.Struct):
    """What an index says of itself."""

    version: int = VERSION
    watermark: str | None = None


def is_lock_error(error: ValueError) -> bool:
    """Whether an index could not be written because another process is writing it."""
    return "LockBusy" in str(error)


class Writer:
    """The index, held for writing; nobody else can write before it is closed."""

    def __init__(
        self, index: tantivy.Index, *, is_small: bool = False, is_current: Callable[[], bool] = lambda: True
    ) -> None:
        self.is_current = is_current  # False once another process has put a new index in the place of this
        self._writer = index.writer(_SMALL_HEAP if is_small else _HEAP, _THREADS)
        self._is_committed = True
        self._backlog = Throttle()

    def delete_sessions(self, sessions: Iterable[int]) -> None:
        """Take out every message of these sessions that was added before."""
        numbers = list(sessions)
        if numbers:
            self._is_committed = False
            # A term of a number is not deleted by its value in this binding; a query is.
            query = tantivy.Query.term_set_query(schema(), "session", numbers)
            self._writer.delete_documents_by_query(query)

    def delete_from(self, session: int, first: int) -> None:
        """Take out the messages of a session from a position on."""
        self._is_committed = False
        conditions = [
            tantivy.Query.term_query(schema(), "session", session),
            tantivy.Query.range_query(
                schema(), "position", tantivy.FieldType.Unsigned, lower_bound=first, upper_bound=None
            ),
        ]
        both = tantivy.Query.boolean_query([(tantivy.Occur.Must, one) for one in conditions])
        self._writer.delete_documents_by_query(both)

    def add(self, documents: Iterable[Document]) -> None:
        """Add messages of any sessions."""
        for document in documents:
            if not document.is_copy:
                self.add_session(_whose(document), [encode_message(document)])

    def add_session(
        self, whose: IndexSession, entries: Iterable[EncodedMessage], *, with_title: bool = True
    ) -> None:
        """Add messages of one session, in order; the title goes with the first of them."""
        self._is_committed = False
        add = self._writer.add_json
        for text in encode_session(whose, entries, with_title=with_title):
            self._backlog.add(len(text))
            try:
                add(text)
            except ValueError as error:
                raise _not_written(error) from error

    def commit(self, watermark: str | None) -> None:
        """Let everybody see what was added and forgotten, all at once and for good."""
        note = tantivy.Document()
        note.add_text("tags", METADATA_TAG)
        note.add_text("note", msgspec.json.encode(IndexMetadata(watermark=watermark)).decode())
        with _said_plainly():
            self._writer.delete_documents_by_term("tags", METADATA_TAG)
            self._writer.add_document(note)
            self._writer.commit()
        self._is_committed = True

    def close(self) -> None:
        """Tidy up what commits left in pieces, and let others write. What was not committed is dropped."""
        with suppress(ValueError):  # of an engine that has already given up, for example on a full disk
            if not self._is_committed:
                self._writer.rollback()  # this also stops the tidying of earlier commits
            self._writer.wait_merging_threads()


@contextmanager
def _said_plainly() -> Iterator[None]:
    """The engine says ValueError when a file cannot be written."""
    try:
        yield
    except ValueError as error:
        raise _not_written(error) from error


def _not_written(error: ValueError) -> OSError:
    return OSError(f"the index cannot be written: {error}")


def _whose(document: Document) -> IndexSession:
    return IndexSession(
        session=document.session,
        source=document.source,
        title=document.title,
        workspace_hash=document.workspace_hash,
        workspace_name=document.workspace_name,
    )
