"""Histories as the web app serves them: worker threads, live changes, sync, backups and cached results.

There are two: the user's history and, for browsers with a cookie, the demo.
"""

import json
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectSendStream
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request, cookie_parser
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from backscroll.errors import BackscrollError
from backscroll.history.demo import DemoArchive
from backscroll.history.history import History
from backscroll.history.sync_thread import SyncThread
from backscroll.model.backup import BackupProgress, BackupResult, BackupValidation
from backscroll.model.search import has_words
from backscroll.model.session import SessionChange
from backscroll.model.sync import SyncStatus
from backscroll.workers import WorkerPool

T = TypeVar("T")
MAX_THREADS = 4  # so that a slow page does not block the others; each has caches of about 80 MB
MAX_PATTERN_THREADS = 2  # a search for a pattern can read the whole history
CLOSE_SECONDS = 1.0
_CLIENT_GONE = 499  # "client closed request"; the response is never sent


class ServedHistory:
    """One history with its threads. With ``auto_sync``, it is kept up to date."""

    def __init__(
        self, open_history: Callable[[], History], *, auto_sync: bool, is_demo: bool = False
    ) -> None:
        self.is_demo = is_demo
        self.open_history = open_history
        self._pages = WorkerPool(open_history, MAX_THREADS)
        self._patterns = WorkerPool(open_history, MAX_PATTERN_THREADS)
        self.backup_job = BackupJob(open_history)
        self.feed = ChangeFeed(self.sync_status)
        self._sync: SyncThread | None = None
        if auto_sync:
            self._sync = SyncThread(
                open_history, "backscroll serve", self.feed.publish, self.feed.publish_sync
            )

    def sync_status(self) -> SyncStatus:
        """Return the progress of the first sync."""
        return self._sync.status if self._sync is not None else SyncStatus(is_complete=True)

    def start(self) -> None:
        """Start to sync. Called in the event loop."""
        self.feed.start()
        if self._sync is not None:
            self._sync.start()

    async def run(self, work: Callable[[History], T]) -> T:
        """Run a function in a worker thread."""
        return await self._pages.run(work)

    async def answer(self, request: Request, work: Callable[[History], Response]) -> Response:
        """Return the response that a worker thread makes. It stops when the client is gone.

        Searches for patterns have threads of their own, so that pages never wait for them.
        """
        pool = self._patterns if is_pattern_search(request) else self._pages
        response = Response(status_code=_CLIENT_GONE)
        error: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_gone, request, tasks.cancel_scope)
            try:
                response = await pool.run(work)
            except Exception as failure:  # noqa: BLE001 - raised below, without an exception group
                error = failure
            tasks.cancel_scope.cancel()
        if error is not None:
            raise error
        return response

    def close(self) -> None:
        """Stop all threads."""
        if self._sync is not None:
            self._sync.close()
        self.backup_job.close()
        for pool in (self._pages, self._patterns):
            pool.close()
            pool.join(CLOSE_SECONDS)


def is_pattern_search(request: Request) -> bool:
    """Return whether a request searches for a substring, such as punctuation, or a regular expression."""
    query = request.query_params
    if query.get("mode", "words") != "words":
        return True
    text = query.get("q") or query.get("find") or ""
    return bool(text.strip()) and not has_words(text)


async def _cancel_when_gone(request: Request, scope: anyio.CancelScope) -> None:
    """Cancel when the client has closed the connection. The request has no body that is read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


class Histories:
    """The user's history, and the demo if it was written."""

    def __init__(self, open_history: Callable[[], History], *, auto_sync: bool) -> None:
        self._open_history = open_history
        self._own = ServedHistory(open_history, auto_sync=auto_sync)
        self._demo: ServedHistory | None = None
        self._write_lock = Lock()

    def start(self) -> None:
        self._own.start()

    def close(self) -> None:
        self._own.close()
        if self._demo is not None:
            self._demo.close()

    def choose(self, *, is_demo: bool) -> ServedHistory:
        """Return the demo if it is wanted and was written, else the user's history. In the event loop."""
        if not is_demo:
            return self._own
        if self._demo is None:
            archive = self._demo_archive()
            if not archive.is_written:
                return self._own
            self._demo = ServedHistory(archive.open, auto_sync=False, is_demo=True)
            self._demo.start()
        return self._demo

    def write_demo(self) -> None:
        """Write the demo, unless it is there. In any thread. Raises `DestinationError`."""
        with self._write_lock:
            self._demo_archive().write()

    def _demo_archive(self) -> DemoArchive:
        return DemoArchive(self._open_history())


class HistorySelector:
    """ASGI middleware that sets the history of a request."""

    def __init__(self, app: ASGIApp, histories: Histories) -> None:
        self._app = app
        self._histories = histories

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            cookies = "; ".join(
                value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie"
            )
            is_demo = cookie_parser(cookies).get(demo_cookie(scope["server"][1])) == "1"
            scope.setdefault("state", {})["served"] = self._histories.choose(is_demo=is_demo)
        await self._app(scope, receive, send)


def served_history(request: Request) -> ServedHistory:
    """Return the history of a request."""
    served: ServedHistory = request.state.served
    return served


def demo_cookie(port: int) -> str:
    """Return the name of the cookie that chooses the demo. Servers on other ports share the cookies."""
    return f"backscroll-demo-{port}"


MAX_SUBSCRIBERS = 64
MAX_PENDING_EVENTS = 100  # of one subscriber; later ones are dropped, and the page reloads everything anyway
STATUS_SECONDS = 1.0
HEARTBEAT_SECONDS = 15.0


class ChangeFeed:
    """Passes changes from the sync thread to all open pages."""

    def __init__(self, status: Callable[[], SyncStatus]) -> None:
        self._status = status
        self._subscribers: set[MemoryObjectSendStream[str]] = set()
        self._token: anyio.lowlevel.EventLoopToken | None = None
        self._run = secrets.token_hex(4)
        self._change_count = 0

    @property
    def revision(self) -> str:
        """State of the history. It differs after every change and in every run of the server."""
        return f"{self._run}-{self._change_count}"

    def start(self) -> None:
        """Remember the event loop. Called in it."""
        self._token = anyio.lowlevel.current_token()

    def publish(self, change: SessionChange) -> None:
        """Send the change of a session to all subscribers, from the sync thread."""
        session = change.session
        document = {
            "ref": session.ref,
            "parent_ref": session.parent_ref,
            "message_count": session.message_count,
            "is_new": change.is_new,
            "has_vanished": change.has_vanished,
        }
        self._publish(_event("change", document))

    def publish_sync(self) -> None:
        """Send that any session may have changed to all subscribers, from the sync thread."""
        self._publish(_event("sync", self._status()._asdict()))

    def _publish(self, event: str) -> None:
        if self._token is not None:
            with suppress(RuntimeError):  # the event loop has ended
                anyio.from_thread.run_sync(self._send, event, token=self._token)

    def _send(self, event: str) -> None:
        self._change_count += 1
        for subscriber in self._subscribers:
            with suppress(anyio.WouldBlock, anyio.BrokenResourceError):
                subscriber.send_nowait(event)

    async def endpoint(self, request: Request) -> Response:
        """Return the stream of events since the revision that the page shows."""
        if len(self._subscribers) >= MAX_SUBSCRIBERS:
            return PlainTextResponse("Too many open pages.\n", 503)
        return StreamingResponse(
            self._events(request.query_params.get("since")),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store"},
        )

    async def _events(self, since: str | None) -> AsyncIterator[str]:
        sender, receiver = anyio.create_memory_object_stream[str](MAX_PENDING_EVENTS)
        self._subscribers.add(sender)
        silent_seconds = 0.0
        is_complete = True
        # A change before the page was connected has been sent to others only.
        yield _event("sync", self._status()._asdict()) if since != self.revision else ": connected\n\n"
        try:
            with sender, receiver:
                while True:
                    event = None
                    with anyio.move_on_after(STATUS_SECONDS):
                        event = await receiver.receive()
                    if event is not None:
                        yield event
                        silent_seconds = 0.0
                        continue
                    silent_seconds += STATUS_SECONDS
                    status = self._status()
                    if not status.is_complete or not is_complete:
                        yield _event("sync", status._asdict())
                        silent_seconds = 0.0
                    is_complete = status.is_complete
                    if silent_seconds >= HEARTBEAT_SECONDS:
                        yield ": still here\n\n"  # fails if the page is gone
                        silent_seconds = 0.0
        finally:
            self._subscribers.discard(sender)


def _event(name: str, document: object) -> str:
    return f"event: {name}\ndata: {json.dumps(document)}\n\n"


JOIN_SECONDS = 5.0


class BackupState(Struct, frozen=True):
    """The running backup, or the result of the last one."""

    is_running: bool = True
    phase: str = "Starting"
    percent: int | None = None  # of the phase; None if it is not known
    result: BackupResult | None = None
    validation: BackupValidation | None = None
    error: str | None = None


class _CancelledError(Exception):
    """The server shuts down."""


class BackupJob:
    """Creates and verifies one backup at a time. The state can be read from any thread."""

    def __init__(self, open_history: Callable[[], History]) -> None:
        self._open_history = open_history
        self._lock = Lock()
        self._is_cancelled = Event()
        self._thread: Thread | None = None
        self._state: BackupState | None = None

    @property
    def state(self) -> BackupState | None:
        """None before the first backup."""
        with self._lock:
            return self._state

    def start(self) -> bool:
        """Start a backup. Return False if one is running."""
        with self._lock:
            if self._state is not None and self._state.is_running:
                return False
            self._state = BackupState()
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.start()
        return True

    def close(self) -> None:
        """Cancel a running backup. Its incomplete file is deleted."""
        self._is_cancelled.set()
        if self._thread is not None:
            self._thread.join(timeout=JOIN_SECONDS)

    def _run(self) -> None:
        try:
            with self._open_history() as history:
                result = history.create_backup(progress=self._report)
                self._set(result=result, phase="Verifying", percent=None)
                validation = history.validate_backup(result.backup_path, self._report)
            self._set(is_running=False, validation=validation)
        except _CancelledError:
            self._set(is_running=False, error="Cancelled, because the server was stopped.")
        except BackscrollError as error:
            self._set(is_running=False, error=str(error))
        except Exception as error:  # noqa: BLE001 - without this, the page would show progress forever
            sys.stderr.write(f"backscroll serve: {type(error).__name__} while creating a backup\n")
            self._set(is_running=False, error=f"Internal error ({type(error).__name__}).")

    def _report(self, progress: BackupProgress) -> None:
        if self._is_cancelled.is_set():
            raise _CancelledError
        percent = min(100, 100 * progress.done // progress.total) if progress.total else None
        self._set(phase=progress.phase, percent=percent)

    def _set(self, **changes: object) -> None:
        with self._lock:
            self._state = replace(self._state or BackupState(), **changes)


K = TypeVar("K", bound=Hashable)
MAX_RESULTS = 64  # names contain parts of addresses


class ResultCache(Generic[K, T]):
    """The last result of each archive and name. Only one thread computes at a time.

    A result is valid until the archive or the local date changes. A result that is not older than ``max_age``
    can be used instead of waiting for a new one.
    """

    def __init__(self, compute: Callable[[History, K, datetime], T], max_age: timedelta) -> None:
        self._compute = compute
        self._max_age = max_age
        self._results: dict[tuple[str, K], tuple[object, datetime, T]] = {}
        self._lock = Lock()

    def get(self, history: History, name: K) -> T:
        """Return the result for the archive as it is."""
        now, key = datetime.now(UTC), (str(history.archive_path), name)
        state = (_archive_state(history), now.astimezone().date())
        known = self._results.get(key)
        if known is not None and known[0] == state:
            return known[2]
        with self._lock:
            known = self._results.get(key)  # computed by another thread in the meantime
            if known is None or known[0] != state:
                known = state, now, self._compute(history, name, now)
                self._results.pop(key, None)  # the order is that of computation
                self._results[key] = known
                while len(self._results) > MAX_RESULTS:
                    del self._results[next(iter(self._results))]
        return known[2]

    def get_recent(self, history: History, name: K) -> T:
        """Return a result that is not older than ``max_age``. It is computed if there is none."""
        found = self.find_recent(history, name)
        return self.get(history, name) if found is None else found

    def find_recent(self, history: History, name: K) -> T | None:
        """Return a result that is not older than ``max_age``; None if there is none. Never waits."""
        known = self._results.get((str(history.archive_path), name))
        is_recent = known is not None and datetime.now(UTC) - known[1] < self._max_age
        return known[2] if known is not None and is_recent else None


def _archive_state(history: History) -> tuple[tuple[int, int], ...]:
    """Return size and time of the archive's files. They change with every commit."""
    found = []
    for suffix in ("", "-wal"):
        path = history.archive_path.with_name(history.archive_path.name + suffix)
        try:
            stat = path.stat()
        except OSError:
            continue
        found.append((stat.st_mtime_ns, stat.st_size))
    return tuple(found)
