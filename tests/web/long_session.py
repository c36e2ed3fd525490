"""A session that is long enough for a minimap, with edits, failures and a compaction at known places."""

from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.web.conftest import OpenHistory

LONG_ID = "10000000-0000-4000-8000-000000000002"
LONG_URL = f"/sessions/claude-code:{LONG_ID}"
TURNS = 120
EDIT_TURN = 30
FAILURE_TURN = 60
COMPACTION_TURN = 90
AGENT_CALLS = 150

BEFORE = """import zones


def board(quay):
    utc = True
    return zones.read(quay, utc)
"""
AFTER = """import zones


def board(quay, day):
    utc = False
    late = day in zones.LATE
    return zones.read(quay, utc)
"""


def write_long_history(folder: Path) -> OpenHistory:
    """Write and sync a history with the session."""
    long = Transcript(LONG_ID, seed=3, cwd="/home/zoe/ferry")
    for turn in range(TURNS):
        long.user(f"Prompt {turn}")
        call = tool_calls.bash(f"echo {turn}", f"{turn}\n" * 30)
        if turn == EDIT_TURN:
            call = tool_calls.edit("/home/zoe/ferry/board.py", BEFORE, AFTER, original=BEFORE)
        if turn == FAILURE_TURN:
            call = call.failed("exit code 1")
        long.run(call, text=f"Answer {turn}")
        if turn == 1:
            long.assistant("So:\n\n```python\nzone = 1\n```\n")
        if turn == 0:
            calls = [tool_calls.bash(f"count {number}", str(number)) for number in range(AGENT_CALLS)]
            long.delegate("Count.", "Counted.", description="Count", calls=calls)
        if turn == COMPACTION_TURN:
            long.compact("So far, every departure was late.")
    long.write(folder / "claude")
    roots = [NamedRoot("claude-code", folder / "claude")]

    def open_history() -> History:
        return History(roots=roots, home=folder / "home")

    with open_history() as history:
        history.sync()
    return open_history
