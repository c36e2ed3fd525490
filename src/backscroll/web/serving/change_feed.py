"""Changes as server-sent events, so that open pages update themselves."""

import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectSendStream
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from backscroll.model.session import SessionChange
from backscroll.model.sync import SyncStatus

__all__ = ["ChangeFeed"]

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
        self._publish(_event("sync", vars(self._status())))

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
        yield _event("sync", vars(self._status())) if since != self.revision else ": connected\n\n"
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
                        yield _event("sync", vars(status))
                        silent_seconds = 0.0
                    is_complete = status.is_complete
                    if silent_seconds >= HEARTBEAT_SECONDS:
                        yield ": still here\n\n"  # fails if the page is gone
                        silent_seconds = 0.0
        finally:
            self._subscribers.discard(sender)


def _event(name: str, document: object) -> str:
    return f"event: {name}\ndata: {json.dumps(document)}\n\n"
