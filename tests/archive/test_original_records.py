"""Original records of messages."""

import gc
import tracemalloc
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript, tool_calls


def test_reading_records_leaves_nothing_for_the_garbage_collector(tmp_path: Path) -> None:
    session = Transcript("10000000-0000-4000-8000-000000000021", seed=4)
    for number in range(300):
        session.user(f"Prompt {number} " + "x" * 500).run(tool_calls.bash("ls", f"{number}" * 300))
    session.write(tmp_path / "claude")
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home") as history:
        history.sync()
        summary = history.find("10000000")
        message = history.transcript.message_at(summary, 1)
        assert message is not None

        def read_once() -> None:
            records = history.transcript.records(summary)
            assert records.of(message) is not None
            assert records.result_of(message) is not None

        read_once()
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for _ in range(5):
                read_once()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            gc.enable()
    assert after - before < 100_000  # the decoded file has more than 300,000 bytes
