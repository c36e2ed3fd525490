"""Writing to the index: add messages, delete sessions, commit, and purge deleted messages."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import tantivy

from backscroll.index.documents import EncodedMessage, IndexSession, encode_session
from backscroll.index.schema import METADATA_TAG, SESSION_TAG, IndexMetadata, open_index, schema

MAX_QUEUED_CHARS = 3_000_000  # in the queue each takes two to four bytes
_THREADS_FOLDER = Path("/proc/self/task")
_INDEXING_THREAD_PREFIX = "thrd-tantivy-in"  # of "thrd-tantivy-index0"; Linux keeps 15 characters
_POLL_SECONDS = 0.003
_RECHECK_SECONDS = 0.0005  # a thread that waits for a lock sleeps too, but not for long
_IDLE_TIMEOUT_SECONDS = 5.0  # another index in this process may never be idle
_STAT_BYTES = 64  # enough of /proc/self/task/*/stat for id, name and state
# About 50 MB in all, with the queue. With 44 MB, a first sync of 0.5 GB takes 5 % less CPU, but leaves nine
# segments instead of two: searches take 15 % longer.
HEAP_BYTES = 28_000_000
SMALL_HEAP_BYTES = 15_000_000
# Several threads would split the heap and write smaller segments, which need more merging. A process that
# writes much also has other work for the other cores.
_WRITER_THREADS = 1
SUPPORTED_ENGINES = ("tantivy v0.27.0, index_format v7",)  # values of tantivy.__version__
_META_FILE = "meta.json"
_MANAGED_FILE = ".managed.json"  # files that Tantivy may delete when no longer in use
_MIN_MERGE_SEGMENTS = 8


class Writer:
    """Exclusive write access to the index until `close`."""

    def __init__(
        self, index: tantivy.Index, *, is_small: bool = False, is_current: Callable[[], bool] = lambda: True
    ) -> None:
        self.is_current = is_current  # False after another process has replaced this index
        self._writer = index.writer(SMALL_HEAP_BYTES if is_small else HEAP_BYTES, _WRITER_THREADS)
        # A killed writer may have left files with the names that the next commit chooses.
        self._writer.garbage_collect_files()
        self._is_committed = True
        self._throttle = _Throttle()

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


class _Throttle:
    """Limits the text that waits in Tantivy's queue.

    The queue holds up to 10,000 messages of any length and fills faster than the indexing thread empties it:
    45 MB with ordinary messages, without limit with long ones. Its fill level is not exposed. But the
    indexing thread sleeps when the queue is empty, and Linux shows the state of each thread. On other systems
    only the queue's own limit applies.
    """

    def __init__(self) -> None:
        self._queued_chars = 0

    def add(self, size: int) -> None:
        """Count characters that are about to be queued. Wait first if the limit is exceeded."""
        if self._queued_chars > MAX_QUEUED_CHARS:
            wait_until_idle()
            self._queued_chars = 0
        self._queued_chars += size


def wait_until_idle() -> None:
    """Wait until the indexing threads sleep. Return at once if the system does not show their state."""
    deadline = time.monotonic() + _IDLE_TIMEOUT_SECONDS
    with ExitStack() as open_files:
        threads = _indexing_threads(open_files)
        while threads and time.monotonic() < deadline:
            if _all_sleep(threads):
                time.sleep(_RECHECK_SECONDS)
                if _all_sleep(threads):
                    return
            time.sleep(_POLL_SECONDS)


def _indexing_threads(open_files: ExitStack) -> list[int]:
    """Open the ``stat`` files of the indexing threads and return their descriptors."""
    found: list[int] = []
    with suppress(OSError):  # not Linux
        for thread in _THREADS_FOLDER.iterdir():
            with suppress(OSError):  # the thread has ended
                if (thread / "comm").read_text().startswith(_INDEXING_THREAD_PREFIX):
                    found.append(os.open(thread / "stat", os.O_RDONLY))
                    open_files.callback(os.close, found[-1])
    return found


def _all_sleep(threads: list[int]) -> bool:
    return all(_state(thread) in (b"S", b"") for thread in threads)


def _state(thread: int) -> bytes:
    """Return the state letter of a thread; empty if it has ended."""
    try:
        return os.pread(thread, _STAT_BYTES, 0).rpartition(b") ")[2][:1]
    except OSError:
        return b""


def copy_without_deleted(folder: Path, copy: Path, watermark: str | None) -> bool:
    """Create a copy of an index that does not contain its deleted messages.

    Tantivy keeps deleted documents until it merges their segment, and tantivy-py has no call that forces a
    merge. Tantivy merges small segments once there are eight of them. So this edits the metadata of a copy of
    the index: each segment with deletions appears nearly empty. Eight commits of one tiny document then
    trigger the merge. The result is verified. The metadata is Tantivy's private format.

    The index must not change meanwhile. Return False if this version of Tantivy is not one of
    `SUPPORTED_ENGINES` or did not merge as expected; the caller then rebuilds the index.
    """
    if getattr(tantivy, "__version__", None) not in SUPPORTED_ENGINES:
        return False
    copy.mkdir(mode=0o700)
    meta = _read_json(folder / _META_FILE)
    with_deletions = [segment for segment in meta["segments"] if segment["deletes"] is not None]
    for segment in meta["segments"]:
        for file in folder.glob(f"{_file_stem(segment)}.*"):
            _link(file, copy / file.name)
    if (folder / _MANAGED_FILE).exists():
        (copy / _MANAGED_FILE).write_bytes((folder / _MANAGED_FILE).read_bytes())
    for segment in with_deletions:
        segment["deletes"]["num_deleted_docs"] = segment["max_doc"] - 1
    (copy / _META_FILE).write_bytes(msgspec.json.encode(meta))
    _merge(copy)
    writer = Writer(open_index(str(copy)), is_small=True)
    writer.commit(watermark)
    writer.close()
    remaining = {_file_stem(segment) for segment in _read_json(copy / _META_FILE)["segments"]}
    if remaining & {_file_stem(segment) for segment in with_deletions}:
        return False
    for file in copy.iterdir():  # no other process uses the copy yet, so unused files can go
        if file.suffix and not file.name.startswith((".", *remaining)) and file.name != _META_FILE:
            file.unlink()
    return True


def _merge(copy: Path) -> None:
    """Trigger a merge of all segments that appear small."""
    writer = open_index(str(copy)).writer(SMALL_HEAP_BYTES, 1)
    for _ in range(_MIN_MERGE_SEGMENTS):
        document = tantivy.Document()
        document.add_text("tags", METADATA_TAG)  # deleted by the next `Writer.commit`
        writer.add_document(document)
        writer.commit()
    writer.wait_merging_threads()


def _link(file: Path, target: Path) -> None:
    """Hard-link a file, or copy it if the file system has no hard links."""
    try:
        os.link(file, target)
    except OSError:
        import shutil  # rarely needed: its own imports are slow

        shutil.copyfile(file, target)


def _file_stem(segment: dict[str, Any]) -> str:
    """Return the common prefix of the file names of a segment."""
    return str(segment["segment_id"]).replace("-", "")


def _read_json(path: Path) -> Any:
    return msgspec.json.decode(path.read_bytes())
