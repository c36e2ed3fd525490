"""Work on background threads. Results are returned to the UI thread.

Each kind of work that must not wait for another kind has its own worker.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
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
from backscroll.workers import WorkerPool

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
        self._history_workers: dict[str, WorkerPool[History]] = {}
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
            self._history_workers[name] = WorkerPool(self._open_history)
        on_error = on_error or self.show_error
        # This runs in the worker, so the message follows all that `work` has posted.
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
        for worker in self._history_workers.values():
            worker.close()

    def wait_for_workers(self, timeout_seconds: float) -> bool:
        """Wait until all workers are closed. Return False on timeout."""
        end = time.monotonic() + timeout_seconds
        return all(worker.join(end - time.monotonic()) for worker in self._history_workers.values())

    @cached_property
    def sessions(self) -> SessionList:
        """The session list."""
        return self.query_one(SessionList)

    @cached_property
    def transcript(self) -> Transcript:
        """The transcript panel."""
        return self.query_one(Transcript)
