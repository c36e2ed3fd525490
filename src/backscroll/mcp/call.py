"""Calls of tools: what a tool gets, and the worker threads that run it. The sync beside them."""

import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from threading import Event
from typing import TypeVar

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from backscroll.errors import BackscrollError, UsageError
from backscroll.filters import make_filter
from backscroll.history import Redactor
from backscroll.history.history import History
from backscroll.history.sync_thread import SyncThread
from backscroll.mcp.tools.plans import PlanStore
from backscroll.model.export import SecretLocation
from backscroll.model.message import Message
from backscroll.model.session import Filter, SessionSummary
from backscroll.workers import WorkerPool

T = TypeVar("T")


class ServerOptions(Struct, frozen=True, kw_only=True):
    """Options that apply to all calls."""

    is_redacted: bool = True  # replace secrets in results
    is_structured: bool = False  # results have documents
    allow_writes: bool = False  # offer the tools that change files
    command: tuple[str, ...] = ("backscroll",)  # starts the command line with the same archive and roots


class CallCancelledError(Exception):
    """The client cancelled the call."""


class InternalError(Exception):
    """An unexpected exception. Its message may contain history and is not passed on."""


class Call:
    """History, redaction, cancellation and progress of one call."""

    def __init__(
        self,
        history: History,
        *,
        options: ServerOptions,
        plans: PlanStore,
        client: str | None,
        cancelled: Event,
        report: Callable[[int, int], None],
    ) -> None:
        self.history = history
        self.options = options
        self.plans = plans
        self.client = client  # name of the program that calls, if it says so
        self.redactor = Redactor() if options.is_redacted else None
        self._cancelled = cancelled
        self._report = report

    def filter(self, arguments: Struct) -> Filter:
        """Return the filters among the arguments of a tool.

        Raises `WorkspaceNotFoundError` for an unknown workspace, because an empty result would mislead.
        """
        values = asdict(arguments)
        filter_ = make_filter(values)
        if filter_.workspace is not None:
            self.history.find_workspace(filter_.workspace)
        if filter_.since and filter_.until and filter_.since >= filter_.until:
            raise UsageError(f"since ({values['since']}) is not before until ({values['until']})")
        return filter_

    def report_progress(self, done: int, total: int) -> None:
        """Report progress. Raise `CallCancelledError` if the call was cancelled."""
        if self._cancelled.is_set():
            raise CallCancelledError
        self._report(done, total)

    def learn_secrets(self, summary: SessionSummary) -> None:
        """Collect the named secrets of a session, so that they are redacted everywhere in it."""
        if self.redactor is not None:
            self.history.learn_secrets(self.redactor, summary)

    def redact_summary(self, summary: SessionSummary) -> SessionSummary:
        return summary if self.redactor is None else self.redactor.redact_summary(summary)

    def redact_message(self, message: Message, ref: str, position: int) -> Message:
        return message if self.redactor is None else self.redactor.redact_message(message, ref, position)

    def redact_value(self, value: T, ref: str) -> T:
        """Redact all strings in a struct."""
        if self.redactor is None:
            return value
        redacted = self.redactor.redact_value(msgspec.to_builtins(value), SecretLocation(ref, None))
        return msgspec.convert(redacted, type(value))

    def redact_text(self, text: str, ref: str, position: int | None = None) -> str:
        return (
            text if self.redactor is None else self.redactor.redact_text(text, SecretLocation(ref, position))
        )


Report = Callable[[float, float | None], Awaitable[None]]
MAX_THREADS = 6  # so that a slow search does not block other calls
JOIN_SECONDS = 1.0
PROGRESS_SECONDS = 0.25  # between two progress reports
# Between the last progress report and the result. Claude Code 2.1.105 disconnects if it reads both at once:
# its SDK handles the result first and then the progress of an unknown call.
RESULT_DELAY_SECONDS = 0.05
_NOTE = "The first sync is still running{done}. Results may be incomplete."
LONGEST_NOTE = _NOTE.format(done=", 100 % done")


class CallWorkers:
    """Runs calls in threads. A thread closes its History after each call: most servers are idle."""

    def __init__(
        self, open_history: Callable[[], History], options: ServerOptions, plans: PlanStore | None = None
    ) -> None:
        self._options = options
        self._plans = plans or PlanStore()
        self._pool = WorkerPool(open_history, MAX_THREADS, keeps_open=False)

    def close(self) -> None:
        """Stop the threads. Wait at most a second for them."""
        self._pool.close()
        self._pool.join(JOIN_SECONDS)

    async def run(
        self, function: Callable[[Call], T], report: Report | None = None, client: str | None = None
    ) -> T:
        """Run a function in a worker thread. Cancelling this coroutine cancels the call."""
        cancelled = Event()
        progress: tuple[int, int] | None = None  # not reported yet

        def set_progress(done: int, total: int) -> None:
            nonlocal progress
            progress = done, total

        def work(history: History) -> T:
            call = Call(
                history,
                options=self._options,
                plans=self._plans,
                client=client,
                cancelled=cancelled,
                report=set_progress,
            )
            return function(call)

        job = self._pool.start(work)
        reported_at = -RESULT_DELAY_SECONDS
        try:
            while not job.done.is_set():
                with anyio.move_on_after(PROGRESS_SECONDS):
                    await job.done.wait()
                    break
                if report is not None and progress is not None:
                    (done, total), progress = progress, None
                    await report(done, total or None)
                    reported_at = time.monotonic()
            await anyio.sleep(max(0.0, reported_at + RESULT_DELAY_SECONDS - time.monotonic()))
            return job.result()
        except (BackscrollError, OSError, CallCancelledError):
            raise
        except Exception as error:
            # The message may contain history, and clients log stderr. Print only the location.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            location = f"{frame.name}, line {frame.lineno} of {frame.filename}"
            sys.stderr.write(f"backscroll mcp: {type(error).__name__} in {location}\n")
            raise InternalError(f"internal error ({type(error).__name__})") from error
        finally:
            cancelled.set()
            job.cancel()


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
