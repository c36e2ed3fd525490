"""The throttle limits the text that waits in the queue of the writer."""

import sys
import threading
from pathlib import Path

import pytest

from backscroll.index.documents import IndexMessage, IndexSession, encode_message
from backscroll.index.store import Index
from backscroll.index.writer import wait_until_idle
from tests.index.documents import found

MB = 1_000_000
LONG_TEXT = " ".join(f"word{number}" for number in range(6_000))  # 50 KB
MESSAGE_COUNT = 2_000
SESSION = IndexSession(session=1, source="claude-code", workspace_hash="unknown")

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows which threads sleep")


def memory() -> int:
    """Return the anonymous memory of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon in /proc/self/status")


@pytest.mark.soak
@needs_linux
def test_many_long_messages_do_not_accumulate_in_memory(index: Index) -> None:
    long = [encode_message(IndexMessage(position=0, role="tool", text=LONG_TEXT))]
    before = peak = memory()
    with index.writer() as writer:
        assert writer is not None
        for _ in range(MESSAGE_COUNT):  # 110 MB
            writer.add_session(SESSION, long)
            peak = max(peak, memory())
        writer.commit(None)
    assert peak - before < 75 * MB  # Tantivy itself may take 40
    assert found(index, "word5999") == [1]


@needs_linux
def test_waiting_for_an_idle_writer_returns_at_once(index: Index) -> None:
    with index.writer() as writer:
        assert writer is not None
        writer.commit(None)
        waiting = threading.Thread(target=wait_until_idle)
        waiting.start()
        waiting.join(timeout=2)
        assert not waiting.is_alive()


def test_waiting_without_a_writer_returns_at_once() -> None:
    wait_until_idle()
