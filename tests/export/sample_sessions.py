"""Sessions for export tests: one with every kind of message, one with hostile text."""

from pathlib import Path

from backscroll.testing.claude_code import Transcript, tool_calls

HOSTILE = (
    "\x1b]0;owned\x07\x1b[31mred\x1b[0m <script>alert(1)</script> </script></pre></details> \u202eevil\u200b "
    "[x](javascript:alert(1)) ![x](data:image/png;base64,AAAA) <!-- ``` &amp;\n```\nnever closed </summary>"
)


def write_plain(root: Path) -> str:
    """Write a session with thinking, calls, an edit, code, a failure and a subagent. Return its id."""
    id_ = "5e551011-0000-4000-8000-0000000000aa"
    session = Transcript(id_, seed=4, cwd="/home/zoe/ferry")
    session.user("Why is the timetable off by one hour?\nThe board says 09:40.\n\n- North Sound\n- every day")
    session.run(tool_calls.bash("grep -n utc board.py", "3: utc = True\n"), thinking="The zone is assumed.")
    session.delegate("Where are zones read?", "In `zones.py`.", description="Find the zones")
    before = "import zones\nutc = True\n"
    session.run(
        tool_calls.edit("/home/zoe/ferry/board.py", "utc = True", "utc = False", original=before),
        text="It takes local times for UTC.",
    )
    session.run(tool_calls.bash("pytest -q", "1 failed").failed("exit code 1"))
    session.assistant(
        "Fixed:\n\n```python\nutc = False  # <quay>\n```\n\n| zone | offset |\n|---|---|\n| Oslo | +1 |"
    )
    session.user("Good.").assistant("Committed as `4f2a`.")
    session.write(root)
    return id_


def write_hostile(root: Path) -> str:
    """Write a session with hostile text in every field. Return its id."""
    id_ = "5e551011-0000-4000-8000-0000000000bb"
    session = Transcript(id_, seed=5, cwd="/home/zoe/ferry")
    session.user(HOSTILE)
    session.run(tool_calls.bash(HOSTILE, HOSTILE), thinking=HOSTILE, text=HOSTILE)
    session.delegate(HOSTILE, HOSTILE, description=HOSTILE)
    session.run(tool_calls.edit("/home/zoe/ferry/a.py", HOSTILE, HOSTILE, original=HOSTILE))
    session.assistant(HOSTILE)
    session.write(root)
    return id_
