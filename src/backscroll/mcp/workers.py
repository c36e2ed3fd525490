"""Threads of the server: workers for calls, and the background sync.

Each worker has its own History, because an SQLite connection belongs to one thread.
"""

import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel

from backscroll.errors import BackscrollError
from backscroll.history.history import History
from backscroll.history.sync_thread import SyncThread
from backscroll.mcp.call import Call, CallCancelledError, InternalError, ServerOptions
from backscroll.mcp.tools.plans import PlanStore

T = TypeVar("T")
Report = Callable[[float, float | None], Awaitable[None]]
MAX_THREADS = 6  # so that a slow search does not block other calls
PROGRESS_SECONDS = 0.25  # between two progress reports
# Between the last progress report and the result. Claude Code 2.1.105 disconnects if it reads both at once:
# its SDK handles the result first and then the progress of an unknown call.
RESULT_DELAY_SECONDS = 0.05
INTERRUPT_SECONDS = PROGRESS_SECONDS / 10  # between two interrupts of a cancelled call
_NOTE = "The first sync is still running{done}. Results may be incomplete."
LONGEST_NOTE = _NOTE.format(done=", 100 % done")


class _Job:
    """A call and its result."""

    def __init__(self, function: Callable[[Call], object], client: str | None) -> None:
        self.function = function
        self.client = client
        self.cancelled = Event()
        self.done = anyio.Event()
        self.token = anyio.lowlevel.current_token()
        self.progress: tuple[int, int] | None = None
        self._history: History | None = None  # while it runs
        self._lock = Lock()
        self.result: object = None
        self.error: BaseException | None = None

    def start(self, history: History) -> bool:
        """Start the job. Return False if it was cancelled before."""
        with self._lock:
            if not self.cancelled.is_set():
                self._history = history
            return self._history is not None

    def end(self) -> None:
        with self._lock:
            self._history = None

    def interrupt(self) -> None:
        """Interrupt running queries until the job ends: each may be followed by another."""
        while True:
            with self._lock:
                if self._history is None:
                    return
                self._history.interrupt()
            time.sleep(INTERRUPT_SECONDS)

    def report(self, done: int, total: int) -> None:
        self.progress = (done, total)


class WorkerPool:
    """Thread pool for calls. Threads start on demand."""

    def __init__(
        self, open_history: Callable[[], History], options: ServerOptions, plans: PlanStore | None = None
    ) -> None:
        self._open_history = open_history
        self._options = options
        self._plans = plans or PlanStore()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._unfinished_count = 0  # waiting or running jobs
        self._count_lock = Lock()

    def close(self) -> None:
        """Stop the threads. Wait at most a second for each."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout=1.0)

    async def run(
        self, function: Callable[[Call], T], report: Report | None = None, client: str | None = None
    ) -> T:
        """Run a function in a worker thread. Cancelling this coroutine cancels the call."""
        with self._count_lock:
            self._unfinished_count += 1
            needs_thread = len(self._threads) < min(self._unfinished_count, MAX_THREADS)
        if needs_thread:
            thread = Thread(target=self._work, daemon=True)
            self._threads.append(thread)
            thread.start()
        job = _Job(function, client)
        self._jobs.put(job)
        reported: tuple[int, int] | None = None
        reported_at = -RESULT_DELAY_SECONDS
        try:
            while not job.done.is_set():
                with anyio.move_on_after(PROGRESS_SECONDS):
                    await job.done.wait()
                    break
                if report is not None and job.progress is not None and job.progress != reported:
                    reported = job.progress
                    await report(reported[0], reported[1] or None)
                    reported_at = time.monotonic()
            await anyio.sleep(max(0.0, reported_at + RESULT_DELAY_SECONDS - time.monotonic()))
        finally:
            job.cancelled.set()
            if not job.done.is_set():
                Thread(target=job.interrupt, daemon=True).start()
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[return-value]  # the result of `function`

    def _work(self) -> None:
        history = self._open_history()
        while True:
            job = self._jobs.get()
            if job is None:
                return
            if job.start(history):
                self._execute(history, job)
                job.end()
            with self._count_lock:
                self._unfinished_count -= 1
            with suppress(RuntimeError):  # the event loop may have ended
                anyio.from_thread.run_sync(job.done.set, token=job.token)

    def _execute(self, history: History, job: _Job) -> None:
        try:
            # Reopened for each call, because another process may have replaced the archive.
            with history:
                call = Call(
                    history,
                    options=self._options,
                    plans=self._plans,
                    client=job.client,
                    cancelled=job.cancelled,
                    report=job.report,
                )
                job.result = job.function(call)
        except CallCancelledError as error:
            job.error = error
        except (BackscrollError, OSError) as error:
            job.error = CallCancelledError() if job.cancelled.is_set() else error
        except BaseException as error:  # reported to the caller  # noqa: BLE001
            job.error = InternalError(f"internal error ({type(error).__name__})")
            job.error.__cause__ = error
            # The message may contain history, and clients log stderr. Print only the location.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            location = f"{frame.name}, line {frame.lineno} of {frame.filename}"
            sys.stderr.write(f"backscroll mcp: {type(error).__name__} in {location}\n")


class BackgroundSync(SyncThread):
    """Sync thread with a note for the model. Calls never wait for it."""

    def __init__(self, open_history: Callable[[], History]) -> None:
        super().__init__(open_history, "backscroll mcp")

    @property
    def note(self) -> str | None:
        """A sentence for the model while results are incomplete; None otherwise."""
        status = self.status
        if status.is_complete:
            return None
        done = f", {status.percent} % done" if status.percent is not None else ""
        return _NOTE.format(done=done)
