"""Work on background threads. Results are returned to the UI thread.

An archive connection belongs to the thread that opened it. Each kind of work that must not wait for
another kind has its own worker.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import cached_property
from threading import Event
from typing import Any, TypeVar

from textual import on
from textual.app import App
from textual.message import Message

from backscroll.errors import BackscrollError
from backscroll.history.history import History
from backscroll.model.text import sanitize
from backscroll.tui.session_list import SessionList
from backscroll.tui.transcript import Transcript

OpenHistory = Callable[[], History]
T = TypeVar("T")
OnError = Callable[[BackscrollError | OSError], None]
MIN_NOTICE_SECONDS = 5.0
READ_CHARS_PER_SECOND = 15.0


class JobDone(Message):
    """A worker has finished a job."""

    def __init__(self, future: "Future[Any]", on_result: Callable[[Any], None], on_error: OnError) -> None:
        super().__init__()
        self.future, self.on_result, self.on_error = future, on_result, on_error


class CallRequested(Message):
    """A worker requests a call on the UI thread."""

    def __init__(self, callback: Callable[[], None]) -> None:
        super().__init__()
        self.callback = callback


class WorkerApp(App[None]):
    """An app that accesses the history only in workers, so that the screen never blocks."""

    def __init__(self, open_history: OpenHistory) -> None:
        super().__init__()
        self._open_history = open_history
        self._history_workers: dict[str, HistoryWorker] = {}
        self._closed_workers: list[Future[None]] = []
        self.closing = Event()

    def run_in_worker(
        self,
        name: str,
        work: Callable[[History], T],
        on_result: Callable[[T], None],
        *,
        on_error: OnError | None = None,
    ) -> None:
        """Run `work` in the named worker, then `on_result` on the UI thread.

        An error is passed to `on_error`, by default `show_error`.
        """
        if self.closing.is_set():
            return  # a timer fired during shutdown
        if name not in self._history_workers:
            self._history_workers[name] = HistoryWorker(name, self._open_history)
        on_error = on_error or self.show_error
        self._history_workers[name].submit(
            work, lambda future: self._post(JobDone(future, on_result, on_error))
        )

    def call_on_ui_thread(self, callback: Callable[[], None]) -> None:
        """Call a function on the UI thread, without waiting for it. Used in workers."""
        self._post(CallRequested(callback))

    def _post(self, message: Message) -> None:
        if not self.closing.is_set():
            self.post_message(message)

    @on(JobDone)
    def _job_done(self, event: JobDone) -> None:
        try:
            result = event.future.result()
        except (BackscrollError, OSError) as error:
            event.on_error(error)
            return
        event.on_result(result)

    @on(CallRequested)
    def _call_requested(self, event: CallRequested) -> None:
        event.callback()

    def show_error(self, error: BackscrollError | OSError) -> None:
        """Show an error of a job as a notice."""
        self.show_notice(str(error), is_warning=True)

    def show_notice(self, text: str, *, is_warning: bool = False) -> None:
        """Show a text for as long as it takes to read it."""
        self.notify(
            sanitize(text),
            markup=False,
            severity="warning" if is_warning else "information",
            timeout=max(MIN_NOTICE_SECONDS, len(text) / READ_CHARS_PER_SECOND),
        )

    def on_unmount(self) -> None:
        self.closing.set()
        self._closed_workers = [worker.close() for worker in self._history_workers.values()]

    def wait_for_workers(self, timeout_seconds: float) -> bool:
        """Wait until all workers are closed. Return False on timeout."""
        return not wait(self._closed_workers, timeout=timeout_seconds).not_done

    @cached_property
    def sessions(self) -> SessionList:
        """The session list."""
        return self.query_one(SessionList)

    @cached_property
    def transcript(self) -> Transcript:
        """The transcript panel."""
        return self.query_one(Transcript)


class HistoryWorker:
    """Thread with its own `History`. Runs jobs in order; starts with the first job."""

    def __init__(self, name: str, open_history: OpenHistory) -> None:
        self._open_history = open_history
        self._history: History | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    def submit(self, work: Callable[[History], T], on_done: Callable[[Future[T]], object]) -> None:
        """Run `work` after all earlier jobs, then call `on_done` with its future.

        `on_done` runs on the same thread, so it follows every message that `work` has posted.
        """
        self._thread.submit(on_done, self._thread.submit(self._run, work))

    def close(self) -> Future[None]:
        """Close the history after all submitted jobs."""
        closed = self._thread.submit(self._close)
        self._thread.shutdown(wait=False)
        return closed

    def _run(self, work: Callable[[History], T]) -> T:
        if self._history is None:
            self._history = self._open_history()
        with ExitStack() as on_error:
            on_error.push(self._history)  # closes the archive and raises a readable error
            result = work(self._history)
            on_error.pop_all()
            return result

    def _close(self) -> None:
        if self._history is not None:
            self._history.close()
