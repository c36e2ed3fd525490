"""Generated Claude Code histories: prompts, tool calls, subagents, and copies of whole sessions."""

from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st

from backscroll.testing.claude_code import Transcript, fork, resume, tool_calls

VERSIONS = ("0.2.60", "1.0.40", "2.0.40", "2.1.80", "2.1.288")

Step = tuple[str, int]
SessionPlan = tuple[str, Sequence[Step], str]  # version, steps, kind of copy

_STEPS = st.tuples(
    st.sampled_from(["ask", "answer", "think", "run", "fail", "edit", "delegate", "fork agent", "wait"]),
    st.integers(0, 3),
)
HISTORIES: st.SearchStrategy[list[SessionPlan]] = st.lists(
    st.tuples(
        st.sampled_from(VERSIONS),
        st.lists(_STEPS, min_size=1, max_size=7),
        st.sampled_from(["", "", "resume", "resume in place", "fork", "fork again", "plain fork"]),
    ),
    min_size=1,
    max_size=3,
)


def write_history(root: Path, plans: Sequence[SessionPlan]) -> None:
    """Write the sessions and their copies below a root."""
    for index, (version, steps, copy) in enumerate(plans):
        session = Transcript(
            f"{index}0000000-0000-4000-8000-000000000000",
            version=version,
            seed=index,
            cwd=f"/home/zoe/p{index % 2}",
        )
        session.user(f"question {index}").assistant("yes", thinking="hm")
        _add_steps(session, steps)
        session.write(root)
        _write_copy(session, copy, root)


def _add_steps(session: Transcript, steps: Sequence[Step]) -> None:
    for name, count in steps:
        match name:
            case "ask":
                session.user(f"and {count}?")
            case "answer":
                session.assistant("so")
            case "think":
                session.assistant(
                    "so", thinking="let me see", tools=[tool_calls.ls("/home/zoe", ["a"])] * count
                )
                for id_ in session.tool_ids[len(session.tool_ids) - count :]:
                    session.result(id_, "a")
            case "run":
                session.run(*[tool_calls.bash("ls", "a")] * (count + 1))
            case "fail":
                session.run(tool_calls.bash("make").failed("no rule"))
            case "edit":
                session.run(tool_calls.edit("/home/zoe/a.py", "one", "two\nthree", original="one\n"))
            case "delegate":
                session.delegate("look", "found", calls=[tool_calls.bash("ls", "a")] * count)
            case "fork agent" if session.release.is_at_least("2.1.118"):
                session.fork_agent("go on", "done")
            case "wait":
                session.wait(count * 40_000)


def _write_copy(session: Transcript, copy: str, root: Path) -> None:
    match copy:
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
