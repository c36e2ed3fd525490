"""Recall: any text is a task, and secrets are redacted."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.config import NamedRoot
from backscroll.errors import WorkspaceNotFoundError
from backscroll.history.history import History
from backscroll.redact import Redactor
from backscroll.render.search import recall_lines
from backscroll.render.token_estimate import estimate_tokens, truncate_to_tokens
from backscroll.testing.claude_code import Transcript, tool_calls

KEY = "sk-ant-api03-" + "Qm7xT2vLk9RbWz4pNc8s" * 4 + "-AAAA"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    folder: Path = tmp_path_factory.mktemp("recall")
    for number, cwd in enumerate(("/home/zoe/x/ferry", "/srv/x/ferry", "/home/zoe/web")):
        one = Transcript(f"{number}0000000-0000-4000-8000-000000000000", seed=number, cwd=cwd)
        one.user(f"why is the harbour clock wrong in {cwd}")
        one.run(tool_calls.bash("cat harbour.py", "the harbour clock reads the wrong zone\n" * 400))
        one.assistant("It reads the wrong zone.")
        one.assistant("Fixed: the harbour clock reads UTC now.")
        one.user("and the lighthouse?").assistant(f"The lighthouse needs the key {KEY} to talk.")
        one.write(folder / "claude")
    with History(roots=[NamedRoot("claude-code", folder / "claude")], home=folder / "home") as history:
        history.sync()
        yield history


@given(st.text(max_size=40) | st.lists(st.sampled_from(
    ["harbour", "-clock", '"', "OR", "role:", "since:2026", "a.py", "latest()", "中文", "\ud800", "\x1b[31m"]
), max_size=12).map(" ".join))  # fmt: skip
def test_any_text_is_a_task(history: History, task: str) -> None:
    list(recall_lines(history.recall(task)))


def test_a_task_has_no_syntax(history: History) -> None:
    assert history.recall("role:tool harbour clock -wrong since:2031").sessions


def test_prose_comes_before_tool_results(history: History) -> None:
    for session in history.recall("harbour clock reads the wrong zone").sessions:
        assert session.excerpts[0].role != "tool"


def test_an_excerpt_has_prompt_text_and_outcome(history: History) -> None:
    excerpt = history.recall("why is the harbour clock wrong", token_budget=3000).sessions[0].excerpts[0]
    assert (excerpt.role, excerpt.text) == ("assistant", "It reads the wrong zone.")
    assert excerpt.asked is not None and excerpt.asked.startswith("why is the harbour clock wrong in")
    assert excerpt.outcome == "Fixed: the harbour clock reads UTC now."


def test_secrets_are_redacted_on_request(history: History) -> None:
    plain = "\n".join(recall_lines(history.recall("lighthouse needs the key", token_budget=3000)))
    clean = history.recall("lighthouse needs the key", token_budget=3000, redactor=Redactor())
    assert KEY in plain
    text = "\n".join(recall_lines(clean))
    assert "[redacted: " in text
    assert KEY[:20] not in text


def test_an_ambiguous_workspace_is_an_error(history: History) -> None:
    with pytest.raises(WorkspaceNotFoundError, match="/srv/x/ferry"):
        history.recall("harbour", workspace="x/ferry")


@given(st.text(max_size=300), st.integers(2, 80))
def test_a_truncated_text_stays_within_its_tokens(text: str, tokens: int) -> None:
    kept = truncate_to_tokens(text, tokens)
    assert estimate_tokens(kept) <= tokens
    assert kept == text or text.startswith(kept.removesuffix("…"))
