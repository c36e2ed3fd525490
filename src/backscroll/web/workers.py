"""Worker threads for requests, and a response that a worker writes while it is sent."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from tempfile import SpooledTemporaryFile
from threading import Lock, Thread
from typing import Any, TypeVar

import anyio
import anyio.abc
import anyio.from_thread
import anyio.lowlevel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from backscroll.history.history import History

T = TypeVar("T")


MAX_THREADS = 4  # so that a slow page does not block the others; each has caches of about 80 MB


JOIN_SECONDS = 1.0


class _Job:
    """A function to run, and its result."""

    def __init__(self, work: Callable[[History], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_abandoned = False  # the client has gone
        self.done = anyio.Event()
        self.token = anyio.lowlevel.current_token()


class Workers:
    """Thread pool. Threads start on demand."""

    def __init__(self, open_history: Callable[[], History]) -> None:
        self._open_history = open_history
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._pending_count = 0  # only used in the event loop

    async def run(self, work: Callable[[History], T]) -> T:
        """Run a function in a worker thread."""
        self._pending_count += 1
        if len(self._threads) < min(self._pending_count, MAX_THREADS):
            thread = Thread(target=self._serve, daemon=True)
            self._threads.append(thread)
            thread.start()
        job = _Job(work)
        self._jobs.put(job)
        try:
            await job.done.wait()
        finally:
            job.is_abandoned = True
            self._pending_count -= 1
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[no-any-return]  # the result of `work`

    def close(self) -> None:
        """Stop the threads after their current work. Wait at most a second for each."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout=JOIN_SECONDS)

    def _serve(self) -> None:
        opened = OpenedHistory(self._open_history)
        while (job := self._jobs.get()) is not None:
            if job.is_abandoned:
                continue
            try:
                job.result = opened.run(job.work)
            except BaseException as error:  # raised where the result is awaited  # noqa: BLE001
                job.error = error
            with suppress(RuntimeError):  # the event loop may have ended
                anyio.from_thread.run_sync(job.done.set, token=job.token)
        opened.close()


class OpenedHistory:
    """The History of one thread. Opened again if the archive is replaced, and after an error."""

    def __init__(self, open_history: Callable[[], History]) -> None:
        self._open_history = open_history
        self._history: History | None = None
        self._file_id: tuple[int, int] | None = None

    def run(self, work: Callable[[History], T]) -> T:
        """Run a function with the History."""
        history = self._history
        if history is not None and self._file_id != _file_id(history):
            self.close()  # another process has replaced the archive
            history = None
        if history is None:
            history = self._open_history()
        self._history = None
        with ExitStack() as on_error:
            on_error.push(history)  # closes the archive and raises a readable error
            result = work(history)
            on_error.pop_all()
        self._history, self._file_id = history, _file_id(history)
        return result

    def close(self) -> None:
        """Close the History."""
        if self._history is not None:
            self._history.close()
            self._history = None


def _file_id(history: History) -> tuple[int, int] | None:
    try:
        stat = history.archive_path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


MAX_MEMORY_BYTES = 8 * 1024 * 1024  # of a file; a longer one is written to the disk


CHUNK_BYTES = 64 * 1024


class _Buffer:
    """Bytes that a thread writes and the event loop reads. A slow client does not stop the writer."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(MAX_MEMORY_BYTES)  # noqa: SIM115 - closed by `close`
        self._lock = Lock()
        self._size = 0
        self._token = anyio.lowlevel.current_token()
        self._changed = anyio.Event()
        self.is_closed = False

    def write(self, content: bytes) -> None:
        """Append content, in the worker thread."""
        with self._lock:
            if self.is_closed:
                return
            self._file.seek(self._size)
            self._file.write(content)
            self._size += len(content)
        with suppress(RuntimeError):  # the event loop may have ended
            anyio.from_thread.run_sync(self.notify, token=self._token)

    def notify(self) -> None:
        """Wake the reader, in the event loop."""
        self._changed.set()
        self._changed = anyio.Event()

    def read(self, offset: int) -> bytes:
        """Return the next chunk, empty if it is not written yet."""
        with self._lock:
            self._file.seek(offset)
            return self._file.read(CHUNK_BYTES)

    async def wait(self) -> None:
        """Wait until something is written."""
        await self._changed.wait()

    def close(self) -> None:
        with self._lock:
            self.is_closed = True
            self._file.close()


class StreamedFile(Response):
    """A file to download. ``write`` yields its content in a worker thread.

    An error before the first byte is raised. A later one aborts the response, so that the browser reports an
    incomplete file.
    """

    def __init__(
        self,
        workers: Workers,
        write: Callable[[History], Iterator[bytes]],
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(media_type=media_type, headers=headers)
        del self.headers["content-length"]
        self._workers = workers
        self._write = write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        buffer = _Buffer()
        is_done = False
        error: Exception | None = None

        async def write() -> None:
            nonlocal is_done, error
            try:
                await self._workers.run(lambda history: _fill(buffer, self._write(history)))
            except Exception as failure:  # noqa: BLE001 - raised below, without an exception group
                error = failure
            is_done = True
            buffer.notify()

        async def watch_client(tasks: anyio.abc.TaskGroup) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch_client, tasks)
                tasks.start_soon(write)
                offset = 0
                while error is None:
                    was_done = is_done  # before the read: nothing is written after it
                    if content := buffer.read(offset):
                        if not offset:
                            await self._start(send)
                        offset += len(content)
                        await send({"type": "http.response.body", "body": content, "more_body": True})
                    elif was_done:
                        break
                    else:
                        await buffer.wait()
                if error is None:
                    if not offset:
                        await self._start(send)
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                tasks.cancel_scope.cancel()
        finally:
            buffer.close()
        if error is not None:
            raise error

    async def _start(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})


def _fill(buffer: _Buffer, parts: Iterator[bytes]) -> None:
    """Write all parts in chunks, until the client has gone."""
    pending = bytearray()
    is_first = True
    for part in parts:
        if buffer.is_closed:
            return
        pending += part
        if is_first or len(pending) >= CHUNK_BYTES:
            buffer.write(bytes(pending))
            pending.clear()
            is_first = False
    if pending:
        buffer.write(bytes(pending))
