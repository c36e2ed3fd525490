"""Threads that answer calls, each with a history of its own: a database connection belongs to one thread."""

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
from backscroll.history import History
from backscroll.mcp.call import Call, CrashedError, StoppedError

__all__ = ["Crew"]

T = TypeVar("T")
Report = Callable[[float, float | None], Awaitable[None]]

_THREADS = 6  # a search through everything must not keep the others waiting
_PULSE = 0.25  # seconds between two reports of progress


class _Job:
    """Something to do, and what came of it."""

    def __init__(self, do: Callable[[Call], object]) -> None:
        self.do = do
        self.stop = Event()
        self.done = anyio.Event()
        self.token = anyio.lowlevel.current_token()
        self.progress: tuple[int, int] | None = None
        self._history: History | None = None  # while it is being done
        self._guard = Lock()
        self.result: object = None
        self.error: BaseException | None = None

    def begin(self, history: History) -> bool:
        """Whether it is still wanted, and then by whom it is done."""
        with self._guard:
            if not self.stop.is_set():
                self._history = history
            return self._history is not None

    def end(self) -> None:
        with self._guard:
            self._history = None

    def interrupt(self) -> None:
        """Not wanted any more: end what the archive is asked for it, at whichever step it is."""
        while True:
            with self._guard:
                if self._history is None:
                    return
                self._history.interrupt()
            time.sleep(_PULSE / 10)

    def note(self, done: int, total: int) -> None:
        self.progress = (done, total)


class Crew:
    """Answers calls in threads, which are started as they are needed."""

    def __init__(self, make: Callable[[], History], *, is_redacted: bool) -> None:
        self._make = make
        self.is_redacted = is_redacted
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._open = 0  # jobs that are waiting or being done
        self._counting = Lock()

    def close(self) -> None:
        """Let the threads end with what they are doing; whoever still waits is not waited for."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout=1.0)

    async def run(self, do: Callable[[Call], T], report: Report | None = None) -> T:
        """What ``do`` gives, done in a thread. When this is cancelled, so is the call."""
        with self._counting:
            self._open += 1
            is_short_handed = len(self._threads) < min(self._open, _THREADS)
        if is_short_handed:
            thread = Thread(target=self._work, daemon=True)
            self._threads.append(thread)
            thread.start()
        job = _Job(do)
        self._jobs.put(job)
        told: tuple[int, int] | None = None
        try:
            while not job.done.is_set():
                with anyio.move_on_after(_PULSE):
                    await job.done.wait()
                if report is not None and job.progress is not None and job.progress != told:
                    told = job.progress
                    await report(told[0], told[1] or None)
        finally:
            job.stop.set()
            if not job.done.is_set():
                Thread(target=job.interrupt, daemon=True).start()
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[return-value]  # it is what ``do`` gave

    def _work(self) -> None:
        history = self._make()
        while True:
            job = self._jobs.get()
            if job is None:
                return
            if job.begin(history):
                self._answer(history, job)
                job.end()
            with self._counting:
                self._open -= 1
            with suppress(RuntimeError):  # the loop that waited may be gone
                anyio.from_thread.run_sync(job.done.set, token=job.token)

    def _answer(self, history: History, job: _Job) -> None:
        try:
            # Opened for each call: what another process has put in its place is then what is read.
            with history:
                job.result = job.do(
                    Call(history, is_redacted=self.is_redacted, stop=job.stop, report=job.note)
                )
        except StoppedError as error:
            job.error = error
        except (BackscrollError, OSError) as error:
            job.error = StoppedError() if job.stop.is_set() else error
        except BaseException as error:  # whatever it is, whoever waits is told  # noqa: BLE001
            job.error = CrashedError(f"something went wrong that should not ({type(error).__name__})")
            job.error.__cause__ = error
            # Its words may be history's, and clients keep what is written here.
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{last.name}, line {last.lineno} of {last.filename}"
            sys.stderr.write(f"backscroll mcp: {type(error).__name__} in {where}\n")
