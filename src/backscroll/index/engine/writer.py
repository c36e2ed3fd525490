"""Writing to the index: add messages, delete sessions, commit."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby

import msgspec
import tantivy

from backscroll.index.engine.documents import Document, IndexSession
from backscroll.index.engine.encode import EncodedMessage, encode_message, encode_session
from backscroll.index.engine.schema import METADATA_TAG, SESSION_TAG, IndexMetadata, schema
from backscroll.index.engine.throttle import Throttle

__all__ = ["Writer"]

# About 50 MB in all, with the queue. With 44 MB, a first sync of 0.5 GB takes 5 % less CPU, but leaves nine
# segments instead of two: searches take 15 % longer.
HEAP_BYTES = 28_000_000
SMALL_HEAP_BYTES = 15_000_000
# Several threads would split the heap and write smaller segments, which need more merging. A process that
# writes much also has other work for the other cores.
_THREADS = 1


class Writer:
    """Exclusive write access to the index until `close`."""

    def __init__(
        self, index: tantivy.Index, *, is_small: bool = False, is_current: Callable[[], bool] = lambda: True
    ) -> None:
        self.is_current = is_current  # False after another process has replaced this index
        self._writer = index.writer(SMALL_HEAP_BYTES if is_small else HEAP_BYTES, _THREADS)
        # A killed writer may have left files with the names that the next commit chooses.
        self._writer.garbage_collect_files()
        self._is_committed = True
        self._throttle = Throttle()

    def delete_sessions(self, sessions: Iterable[int]) -> None:
        """Delete all messages of these sessions that were added before."""
        ids = list(sessions)
        if ids:
            self._is_committed = False
            # tantivy-py cannot delete by the value of a numeric term, so this is a query.
            query = tantivy.Query.term_set_query(schema(), "session", ids)
            self._writer.delete_documents_by_query(query)

    def delete_from(self, session: int, position: int) -> None:
        """Delete the messages of a session from a position on."""
        self._is_committed = False
        self._writer.delete_documents_by_query(_from_position(session, position))

    def delete_window(self, session: int, position: int) -> None:
        """Delete the session documents from a position on."""
        self._is_committed = False
        self._writer.delete_documents_by_query(
            _from_position(session, position, tantivy.Query.term_query(schema(), "tags", SESSION_TAG))
        )

    def add(self, documents: Iterable[Document]) -> None:
        """Add messages of any sessions."""
        own = (document for document in documents if not document.is_copy)
        for _, group in groupby(own, key=lambda document: document.session):
            messages = list(group)
            self.add_session(_session_of(messages[0]), map(encode_message, messages))

    def add_session(
        self,
        session: IndexSession,
        messages: Iterable[EncodedMessage],
        *,
        with_title: bool = True,
        earlier_prose: Iterable[bytes] = (),
        window: int | None = None,
    ) -> None:
        """Add messages of one session, in order, and its session documents.

        The title is indexed with the first message. For ``earlier_prose`` and ``window``, see
        `encode_session`.
        """
        self._is_committed = False
        add = self._writer.add_json
        documents = encode_session(
            session, messages, with_title=with_title, earlier_prose=earlier_prose, window=window
        )
        for text in documents:
            self._throttle.add(len(text))
            try:
                add(text)
            except ValueError as error:
                raise _write_error(error) from error

    def commit(self, watermark: str | None) -> None:
        """Make all additions and deletions durable and visible in one step."""
        document = tantivy.Document()
        document.add_text("tags", METADATA_TAG)
        document.add_text("metadata", msgspec.json.encode(IndexMetadata(watermark=watermark)).decode())
        with _os_errors():
            self._writer.delete_documents_by_term("tags", METADATA_TAG)
            self._writer.add_document(document)
            self._writer.commit()
        self._is_committed = True

    def close(self) -> None:
        """Wait for segment merges and release the lock. Uncommitted changes are dropped."""
        with suppress(ValueError):  # the engine has already failed, for example on a full disk
            if not self._is_committed:
                self._writer.rollback()  # this also stops the merges of earlier commits
            self._writer.wait_merging_threads()


def _from_position(session: int, position: int, *conditions: tantivy.Query) -> tantivy.Query:
    """Match the documents of a session from a position on."""
    position_query = tantivy.Query.range_query(
        schema(), "position", tantivy.FieldType.Unsigned, lower_bound=position, upper_bound=None
    )
    queries = [tantivy.Query.term_query(schema(), "session", session), position_query, *conditions]
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, query) for query in queries])


@contextmanager
def _os_errors() -> Iterator[None]:
    """Raise OSError in place of the ValueError with which Tantivy reports a failed write."""
    try:
        yield
    except ValueError as error:
        raise _write_error(error) from error


def _write_error(error: ValueError) -> OSError:
    return OSError(f"cannot write to the index: {error}")


def _session_of(document: Document) -> IndexSession:
    return IndexSession(
        session=document.session,
        source=document.source,
        title=document.title,
        workspace_hash=document.workspace_hash,
        workspace_name=document.workspace_name,
    )
