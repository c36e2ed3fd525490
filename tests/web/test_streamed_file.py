"""A download starts before its file is complete."""

from collections.abc import Awaitable, Callable, Iterator
from threading import Event
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from backscroll.history.history import History
from backscroll.web.workers import StreamedFile, Workers
from tests.web.conftest import OpenHistory

Write = Callable[[History], Iterator[bytes]]


class Client:
    """An ASGI client that notes what it receives."""

    def __init__(self, open_history: OpenHistory, write: Write) -> None:
        self.sent: list[dict[str, Any]] = []
        self.on_body: Callable[[], None] = lambda: None
        self.is_gone = anyio.Event()
        self._workers = Workers(open_history)
        self._response = StreamedFile(self._workers, write, "text/plain", {"X-Name": "a"})

    async def receive(self) -> dict[str, Any]:
        await self.is_gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(dict(message))
        if message.get("body"):
            self.on_body()

    async def run(self) -> None:
        try:
            with anyio.fail_after(20):
                await self._response({"type": "http"}, self.receive, self.send)
        finally:
            self._workers.close()

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


def _run(check: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine in a thread of its own: Playwright has an event loop in this one."""
    with start_blocking_portal() as portal:
        portal.call(check)


def test_the_first_bytes_are_sent_before_the_last_are_written(demo_history: OpenHistory) -> None:
    has_arrived = Event()

    def write(history: History) -> Iterator[bytes]:
        yield b"first"
        assert has_arrived.wait(10)
        yield b" last"

    async def check() -> None:
        client = Client(demo_history, write)
        client.on_body = has_arrived.set
        await client.run()
        assert client.sent[0]["status"] == 200
        assert (b"x-name", b"a") in client.sent[0]["headers"]
        assert client.body == b"first last"
        assert client.sent[-1]["more_body"] is False

    _run(check)


def test_a_large_file_arrives_complete(demo_history: OpenHistory) -> None:
    parts = [bytes([number % 256]) * 100_000 for number in range(200)]

    async def check() -> None:
        client = Client(demo_history, lambda history: iter(parts))
        await client.run()
        assert client.body == b"".join(parts)

    _run(check)


@pytest.mark.parametrize("has_started", [False, True])
def test_an_error_is_raised_and_the_response_is_not_completed(
    demo_history: OpenHistory, has_started: bool
) -> None:
    def write(history: History) -> Iterator[bytes]:
        if has_started:
            yield b"first"
        raise ValueError("damaged")

    async def check() -> None:
        client = Client(demo_history, write)
        with pytest.raises(ValueError, match="damaged"):
            await client.run()
        assert not any(message.get("more_body") is False for message in client.sent)
        assert has_started or not client.sent

    _run(check)


def test_writing_stops_when_the_client_has_gone(demo_history: OpenHistory) -> None:
    has_stopped = Event()

    def write(history: History) -> Iterator[bytes]:
        try:
            while True:
                yield b"x" * 100_000
        finally:
            has_stopped.set()

    async def check() -> None:
        client = Client(demo_history, write)
        client.on_body = client.is_gone.set
        await client.run()
        assert has_stopped.wait(10)

    _run(check)
