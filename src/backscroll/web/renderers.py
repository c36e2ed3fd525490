"""Processes that render pages, so that the server uses several processor cores.

Python executes one thread at a time, so threads do not help. The processes are forked before the server
starts threads. A system without fork renders all pages in threads.
"""

import os
import pickle
import signal
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from backscroll.errors import BackscrollError
from backscroll.history.history import History
from backscroll.lru_cache import LRUCache
from backscroll.model.session import SessionSummary
from backscroll.web.templating import PageFacts
from backscroll.web.workers import OpenedHistory

MAX_PROCESSES = 2  # each uses up to 200 MB


JOIN_SECONDS = 1.0


LOAD_DELAY_SECONDS = 1.0  # lets the first page be rendered first


_SCOPE_KEYS = ("type", "method", "scheme", "server", "root_path", "path", "path_params", "query_string")


# Renders the page of a name. An error is a page, too.
RenderPage = Callable[[str, OpenedHistory, Request], Response]


class _Job(NamedTuple):
    page: str
    scope: dict[str, Any]
    facts: PageFacts


class _Reply(NamedTuple):
    status_code: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class _Renderer(NamedTuple):
    """A process and the connection to it. It renders one page at a time."""

    process: BaseProcess
    connection: "Connection[_Job, _Reply]"

    def render(self, job: _Job) -> _Reply:
        """Send a job and wait for its reply. Raises `OSError` or `EOFError` if the process has ended."""
        self.connection.send(job)
        return self.connection.recv()


class _Waiting:
    """A request that waits for a process."""

    def __init__(self) -> None:
        self.is_done = anyio.Event()
        self.renderer: _Renderer | None = None  # stays None if all processes have ended


class Renderers:
    """The processes, seen from the server. Used in the event loop."""

    def __init__(self) -> None:
        self._started: list[_Renderer] = []
        self._running: list[_Renderer] = []
        self._idle: list[_Renderer] = []
        self._waiting: deque[_Waiting] = deque()

    def start(
        self,
        open_history: Callable[[], History],
        render_page: RenderPage,
        load_modules: Callable[[History], None],
    ) -> None:
        """Fork the processes. There are none if the system has one core or cannot fork safely."""
        can_fork = sys.platform == "linux" and threading.active_count() == 1
        cores = len(os.sched_getaffinity(0)) if can_fork else 1
        context = get_context("fork") if cores > 1 else None
        for _ in range(min(cores, MAX_PROCESSES) if context is not None else 0):
            assert context is not None
            ours, theirs = context.Pipe()
            inherited = [ours, *(other.connection for other in self._started)]
            arguments = theirs, inherited, OpenedHistory(open_history), render_page, load_modules
            process = context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self._started.append(_Renderer(process, ours))
        self._running, self._idle = list(self._started), list(self._started)

    async def render(self, page: str, request: Request, facts: PageFacts) -> Response | None:
        """Render a page. Return None if no process is left."""
        renderer = await self._take((request.url.path, request.url.query))
        if renderer is None:
            return None
        scope = {key: request.scope[key] for key in _SCOPE_KEYS} | {"headers": []}
        try:
            reply = await anyio.to_thread.run_sync(renderer.render, _Job(page, scope, facts))
        except (OSError, EOFError):  # the process has ended
            self._running.remove(renderer)
            if not self._running:
                self._pass_on(None)
            return None
        self._pass_on(renderer)
        response = Response(reply.body, reply.status_code)
        response.raw_headers = reply.headers
        return response

    async def _take(self, address: tuple[str, str]) -> _Renderer | None:
        """Wait for an idle process, if possible the one of this address. Return None if all have ended."""
        if not self._running:
            return None
        if not self._idle:
            waiting = _Waiting()
            self._waiting.append(waiting)
            try:
                await waiting.is_done.wait()
            except anyio.get_cancelled_exc_class():
                if waiting in self._waiting:
                    self._waiting.remove(waiting)
                elif waiting.renderer is not None:
                    self._pass_on(waiting.renderer)
                raise
            return waiting.renderer
        preferred = self._running[hash(address) % len(self._running)]
        renderer = preferred if preferred in self._idle else self._idle[0]
        self._idle.remove(renderer)
        return renderer

    def _pass_on(self, renderer: _Renderer | None) -> None:
        """Give a process to the request that has waited longest; None to all of them."""
        while self._waiting:
            waiting = self._waiting.popleft()
            waiting.renderer = renderer
            waiting.is_done.set()
            if renderer is not None:
                return
        if renderer is not None:
            self._idle.append(renderer)

    def close(self) -> None:
        """End the processes."""
        for renderer in self._started:
            renderer.connection.close()
        for renderer in self._started:
            renderer.process.join(JOIN_SECONDS)
            if renderer.process.is_alive():
                renderer.process.terminate()


def _serve(
    connection: "Connection[_Reply, _Job]",
    inherited: "Sequence[Connection[_Job, _Reply]]",
    opened: OpenedHistory,
    render_page: RenderPage,
    load_modules: Callable[[History], None],
) -> None:
    """Render pages until the server closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is sent to all processes; the server ends this one
    for other in inherited:
        other.close()
    with suppress(OSError, EOFError):
        if not connection.poll(LOAD_DELAY_SECONDS):
            with suppress(BackscrollError):  # a page will show it
                opened.run(load_modules)
        while True:
            job = connection.recv()
            response = render_page(job.page, opened, Request({**job.scope, "state": {"facts": job.facts}}))
            connection.send(_Reply(response.status_code, response.raw_headers, bytes(response.body)))
    opened.close()


T = TypeVar("T")


MAX_CACHE_BYTES = 8 * 1024 * 1024  # compressed to a sixth: about 300 pages


# A part can contain facts of other sessions, such as the title of the session that it was copied from.
MAX_AGE_SECONDS = 60.0


_COMPRESSION_LEVEL = 1


_Key = tuple[Hashable, Hashable]  # session, name


class _Part(Struct, frozen=True):
    version: str
    rendered_at: float
    compressed: bytes


class RenderedParts:
    """LRU cache. A part is valid for a minute, unless its session is read again."""

    def __init__(self, max_bytes: int = MAX_CACHE_BYTES, max_age_seconds: float = MAX_AGE_SECONDS) -> None:
        self._max_age_seconds = max_age_seconds
        self._parts = LRUCache[_Key, _Part](max_bytes, lambda part: len(part.compressed))
        self._lock = Lock()

    def of_session(self, history: History, summary: SessionSummary) -> "SessionParts":
        """Return the parts of a session in its current version."""
        session = str(history.archive_path), summary.parent_ref, summary.ref, summary.workspace_path
        return SessionParts(self, session, history.transcript.version(summary))

    def find(self, key: _Key, version: str) -> _Part | None:
        """Return a valid part; None if there is none."""
        with self._lock:
            part = self._parts.get(key)
            if part is None:
                return None
            if part.version != version or time.monotonic() - part.rendered_at > self._max_age_seconds:
                self._parts.discard(key)
                return None
            return part

    def put(self, key: _Key, part: _Part) -> None:
        """Add a part, then evict the least recently used ones."""
        with self._lock:
            self._parts.put(key, part)


class SessionParts:
    """The rendered parts of one version of a session."""

    def __init__(self, cache: RenderedParts, session: Hashable, version: str) -> None:
        self._cache = cache
        self._session = session
        self._version = version

    def get(self, name: Hashable, render: Callable[[], T]) -> T:
        """Return a part. It is rendered if it is not cached. The name includes all its parameters."""
        key = self._session, name
        part = self._cache.find(key, self._version)
        if part is not None:
            known: T = pickle.loads(zlib.decompress(part.compressed))
            return known
        started_at, value = time.monotonic(), render()
        compressed = zlib.compress(pickle.dumps(value), _COMPRESSION_LEVEL)
        self._cache.put(key, _Part(self._version, started_at, compressed))
        return value


RENDERED_PARTS = RenderedParts()
