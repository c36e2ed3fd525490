"""Whoever writes an index does not run far ahead of the engine."""

import sys
import threading
from pathlib import Path

import pytest

from backscroll.index import Index, IndexSession
from backscroll.index.engine.documents import IndexMessage
from backscroll.index.engine.encode import encode_message
from backscroll.index.engine.throttle import wait_until_idle
from tests.index.making import found

MB = 1_000_000
LONG = " ".join(f"word{number}" for number in range(6_000))  # 50 KB
MANY = 2_000
WHOSE = IndexSession(session=1, source="claude-code", workspace_hash="unknown")

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which threads sleep")


def memory() -> int:
    """Bytes of this process that are no file's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the system does not say")


@needs_linux
def test_many_long_messages_do_not_pile_up_in_memory(index: Index) -> None:
    long = [encode_message(IndexMessage(position=0, role="tool", text=LONG))]
    before = most = memory()
    with index.writer() as writer:
        assert writer is not None
        for _ in range(MANY):  # 110 MB
            writer.add_session(WHOSE, long)
            most = max(most, memory())
        writer.commit(None)
    assert most - before < 75 * MB  # of which the engine may take 40
    assert found(index, "word5999") == [1]


@needs_linux
def test_an_engine_that_has_nothing_to_do_is_not_waited_for(index: Index) -> None:
    with index.writer() as writer:
        assert writer is not None
        writer.commit(None)
        waiting = threading.Thread(target=wait_until_idle)
        waiting.start()
        waiting.join(timeout=2)
        assert not waiting.is_alive()


def test_without_an_engine_nobody_waits() -> None:
    wait_until_idle()
