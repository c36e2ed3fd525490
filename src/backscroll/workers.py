"""Worker threads of the servers and the terminal UI, so that their event loops never wait for a query.

Each thread has its own History, because an SQLite connection belongs to the thread that opened it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    import anyio

INTERRUPT_SECONDS = 0.025  # between two interrupts of a cancelled job: each query may be followed by another


class Resource(Protocol):
    """What a thread keeps open: a History."""

    @property
    def archive_path(self) -> Path: ...
    def __enter__(self) -> object: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def close(self) -> None: ...
    def interrupt(self) -> None: ...


R = TypeVar("R", bound=Resource)
T = TypeVar("T")


class WorkerPool(Generic[R]):
    """Runs functions in threads, which start on demand. A single thread runs them in order.

    An idle thread keeps its History open, which is faster, or closes it, which needs less memory.
    """

    def __init__(
        self, open_resource: Callable[[], R], max_threads: int = 1, *, keeps_open: bool = True
    ) -> None:
        self._open_resource = open_resource
        self._max_threads = max_threads
        self._keeps_open = keeps_open
        self._jobs: SimpleQueue[Job[R, Any] | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._unfinished_count = 0  # waiting or running jobs
        self._lock = Lock()

    async def run(self, work: Callable[[R], T]) -> T:
        """Run a function and return its result. Cancelling this coroutine cancels the job."""
        awaited = self.start(work)
        try:
            await awaited.done.wait()
            return awaited.result()
        finally:
            awaited.cancel()

    def start(self, work: Callable[[R], T]) -> AwaitedJob[T]:
        """Run a function. Called in the event loop, which waits for it."""
        awaited = AwaitedJob[T]()
        awaited.cancel_job = self.submit(work, awaited.set_done).cancel
        return awaited

    def submit(
        self, work: Callable[[R], T], on_done: Callable[[Future[T]], object] | None = None
    ) -> Job[R, T]:
        """Run a function as soon as a thread is free, then ``on_done`` in the same thread."""
        job = Job(work)
        if on_done is not None:
            job.future.add_done_callback(on_done)
        with self._lock:
            self._unfinished_count += 1
            if len(self._threads) < min(self._unfinished_count, self._max_threads):
                thread = Thread(target=self._run_jobs, daemon=True)
                self._threads.append(thread)
                thread.start()
        self._jobs.put(job)
        return job

    def close(self) -> None:
        """End the threads after all submitted jobs. Does not wait."""
        for _ in self._threads:
            self._jobs.put(None)

    def join(self, timeout_seconds: float) -> bool:
        """Wait until all threads have ended. Return False on timeout."""
        end = time.monotonic() + timeout_seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run_jobs(self) -> None:
        opened = _Opened(self._open_resource)
        while (job := self._jobs.get()) is not None:
            job.run(opened)
            if not self._keeps_open:
                opened.close()
            with self._lock:
                self._unfinished_count -= 1
        opened.close()


class Job(Generic[R, T]):
    """A function to run, and its result as a future."""

    def __init__(self, work: Callable[[R], T]) -> None:
        self.future: Future[T] = Future()
        self._work = work
        self._resource: R | None = None  # while the function runs
        self._lock = Lock()

    def run(self, opened: _Opened[R]) -> None:
        """Run the function in this thread, unless the job was cancelled."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = opened.run(self._run_work)
        except BaseException as error:  # raised where the result is awaited  # noqa: BLE001
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    def _run_work(self, resource: R) -> T:
        with self._lock:
            self._resource = resource
        try:
            return self._work(resource)
        finally:
            with self._lock:
                self._resource = None

    def cancel(self) -> None:
        """Skip the job or, if it runs, interrupt its queries until it ends. No effect if it has ended."""
        if not self.future.done() and not self.future.cancel():
            Thread(target=self._interrupt, daemon=True).start()

    def _interrupt(self) -> None:
        while not self.future.done():
            with self._lock:
                if self._resource is not None:
                    self._resource.interrupt()
            time.sleep(INTERRUPT_SECONDS)


class AwaitedJob(Generic[T]):
    """A job that a coroutine waits for."""

    done: anyio.Event
    cancel_job: Callable[[], None]

    def __init__(self) -> None:
        import anyio.lowlevel  # the terminal UI does without it

        self.done = anyio.Event()
        self._token = anyio.lowlevel.current_token()
        self._future: Future[T] | None = None
        self._is_cancelled = False

    def result(self) -> T:
        """Return the result, or raise the error of the job."""
        assert self._future is not None
        return self._future.result()

    def cancel(self) -> None:
        """Stop waiting, and cancel the job if it has not ended."""
        self._is_cancelled = True
        self.cancel_job()

    def set_done(self, future: Future[T]) -> None:
        """Wake the coroutine, from the worker thread."""
        import anyio.from_thread

        self._future = future
        if not self._is_cancelled:  # `cancel` calls this in the event loop
            with suppress(RuntimeError):  # the event loop may have ended
                anyio.from_thread.run_sync(self.done.set, token=self._token)


class _Opened(Generic[R]):
    """The History of one thread. Opened again if the archive is replaced, and after an error."""

    def __init__(self, open_resource: Callable[[], R]) -> None:
        self._open_resource = open_resource
        self._resource: R | None = None
        self._file_id: tuple[int, int] | None = None

    def run(self, work: Callable[[R], T]) -> T:
        if self._resource is not None and self._file_id != _file_id(self._resource):
            self.close()  # another process has replaced the archive
        resource = self._resource or self._open_resource()
        self._resource = None
        with ExitStack() as on_error:
            on_error.push(resource)  # closes the archive and raises a readable error
            result = work(resource)
            on_error.pop_all()
        self._resource, self._file_id = resource, _file_id(resource)
        return result

    def close(self) -> None:
        if self._resource is not None:
            self._resource.close()
            self._resource = None


def _file_id(resource: Resource) -> tuple[int, int] | None:
    with suppress(OSError):
        stat = resource.archive_path.stat()
        return stat.st_dev, stat.st_ino
    return None
