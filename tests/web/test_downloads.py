"""A download starts before its file is complete."""

from collections.abc import Callable, Iterator
from threading import Event

import httpx2
import pytest

from backscroll.errors import DataNotFoundError
from backscroll.export import Exports
from backscroll.web.app import create_app
from tests.web.browser import run_server
from tests.web.conftest import CLOCKS, TOKEN, OpenHistory

TIMEOUT_SECONDS = 20
Write = Callable[[], Iterator[str]]


@pytest.fixture
def address(demo_history: OpenHistory) -> Iterator[str]:
    with run_server(lambda: create_app(demo_history, TOKEN, auto_sync=False)) as address:
        yield address


@pytest.fixture
def export(monkeypatch: pytest.MonkeyPatch) -> Callable[[Write], str]:
    """Replace the content of exports. Return the path of one."""

    def replace(write: Write) -> str:
        monkeypatch.setattr(Exports, "stream", lambda *_, **__: write())
        return f"/sessions/{CLOCKS}/export.txt"

    return replace


def test_the_first_bytes_are_sent_before_the_last_are_written(
    address: str, export: Callable[[Write], str]
) -> None:
    has_arrived = Event()

    def write() -> Iterator[str]:
        yield "first"
        assert has_arrived.wait(TIMEOUT_SECONDS)
        yield " last"

    with httpx2.stream("GET", address + export(write), timeout=TIMEOUT_SECONDS) as response:
        chunks = response.iter_raw()
        assert next(chunks) == b"first"
        has_arrived.set()
        assert b"".join(chunks) == b" last"
    assert response.headers["content-disposition"].endswith(".txt")


def test_a_large_file_arrives_complete(address: str, export: Callable[[Write], str]) -> None:
    texts = [str(number % 10) * 100_000 for number in range(200)]
    response = httpx2.get(address + export(lambda: iter(texts)), timeout=TIMEOUT_SECONDS)
    assert response.text == "".join(texts)


def test_an_error_before_the_first_byte_is_a_page(address: str, export: Callable[[Write], str]) -> None:
    def write() -> Iterator[str]:
        raise DataNotFoundError("The archive has no such record.", "x")
        yield ""

    assert httpx2.get(address + export(write), timeout=TIMEOUT_SECONDS).status_code == 404


def test_a_later_error_leaves_the_response_incomplete(address: str, export: Callable[[Write], str]) -> None:
    def write() -> Iterator[str]:
        yield "first"
        raise DataNotFoundError("The archive has no such record.", "x")

    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(address + export(write), timeout=TIMEOUT_SECONDS)


def test_writing_stops_when_the_client_has_gone(address: str, export: Callable[[Write], str]) -> None:
    has_stopped = Event()

    def write() -> Iterator[str]:
        try:
            while True:
                yield "x" * 100_000
        finally:
            has_stopped.set()

    with httpx2.stream("GET", address + export(write), timeout=TIMEOUT_SECONDS) as response:
        next(response.iter_raw())
    assert has_stopped.wait(TIMEOUT_SECONDS)


def test_a_slow_client_does_not_block_pages(address: str, export: Callable[[Write], str]) -> None:
    def write() -> Iterator[str]:
        for _ in range(1000):
            yield "x" * 100_000

    path = export(write)
    with (
        httpx2.Client(base_url=address, timeout=TIMEOUT_SECONDS) as one,
        httpx2.Client(base_url=address, timeout=TIMEOUT_SECONDS) as other,
    ):
        streams = [one.stream("GET", path) for _ in range(6)]
        for stream in streams:
            stream.__enter__()  # reads the headers only
        assert other.get("/sessions").status_code == 200
        for stream in streams:
            stream.__exit__(None, None, None)
