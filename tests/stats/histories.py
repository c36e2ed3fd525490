"""Histories of Claude Code made of steps: talk, tools, subagents, and copies of whole sessions."""

from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st

from backscroll.testing.claude_code import Transcript, fork, resume, tool_calls

__all__ = ["HISTORIES", "Told", "write"]

VERSIONS = ("0.2.60", "1.0.40", "2.0.40", "2.1.80", "2.1.288")

Step = tuple[str, int]
Told = tuple[str, Sequence[Step], str]  # version, steps, how it is copied

_STEPS = st.tuples(
    st.sampled_from(["ask", "answer", "think", "run", "fail", "edit", "delegate", "fork agent", "wait"]),
    st.integers(0, 3),
)
HISTORIES: st.SearchStrategy[list[Told]] = st.lists(
    st.tuples(
        st.sampled_from(VERSIONS),
        st.lists(_STEPS, min_size=1, max_size=7),
        st.sampled_from(["", "", "resume", "resume in place", "fork", "fork again", "plain fork"]),
    ),
    min_size=1,
    max_size=3,
)


def write(root: Path, told: Sequence[Told]) -> None:
    """Write the sessions, and the copies of them, below a root."""
    for number, (version, steps, copied) in enumerate(told):
        session = Transcript(
            f"{number}0000000-0000-4000-8000-000000000000",
            version=version,
            seed=number,
            cwd=f"/home/zoe/p{number % 2}",
        )
        session.user(f"question {number}").assistant("yes", thinking="hm")
        _work(session, steps)
        session.write(root)
        _copy(session, copied, root)


def _work(session: Transcript, steps: Sequence[Step]) -> None:
    for what, many in steps:
        match what:
            case "ask":
                session.user(f"and {many}?")
            case "answer":
                session.assistant("so")
            case "think":
                session.assistant(
                    "so", thinking="let me see", tools=[tool_calls.ls("/home/zoe", ["a"])] * many
                )
                for id_ in session.tool_ids[len(session.tool_ids) - many :]:
                    session.result(id_, "a")
            case "run":
                session.run(*[tool_calls.bash("ls", "a")] * (many + 1))
            case "fail":
                session.run(tool_calls.bash("make").failed("no rule"))
            case "edit":
                session.run(tool_calls.edit("/home/zoe/a.py", "one", "two\nthree", original="one\n"))
            case "delegate":
                session.delegate("look", "found", calls=[tool_calls.bash("ls", "a")] * many)
            case "fork agent" if session.release.is_at_least("2.1.118"):
                session.fork_agent("go on", "done")
            case "wait":
                session.wait(many * 40_000)


def _copy(session: Transcript, copied: str, root: Path) -> None:
    match copied:
        case "resume":
            resume(session).user("later").assistant("yes").write(root)
        case "resume in place":
            resume(session, restamp=False).user("later").assistant("yes").write(root)
        case "fork":
            fork(session).user("otherwise").assistant("yes").write(root)
        case "plain fork":
            fork(session, remap=False).user("otherwise").assistant("yes").write(root)
        case "fork again":
            second = fork(session).user("otherwise").assistant("yes")
            second.write(root)
            fork(second, seed=2).user("once more").assistant("yes").write(root)
