"""Find text in one session and its subagents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from backscroll.config import NamedRoot
from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.model.export import SecretLocation
from backscroll.model.session import SessionSummary
from backscroll.redact import Redactor
from backscroll.testing.claude_code import Transcript, tool_calls

PASSWORD = "tide" + "Table77"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    """A session with a subagent that starts another one, and two other sessions."""
    folder = tmp_path_factory.mktemp("find")
    session = Transcript("10000000-0000-4000-8000-000000000011", seed=5)
    session.user(f"Look for herring. The password: {PASSWORD}")
    session.delegate("Search for herring", "No herring.", calls=[tool_calls.bash(f"login {PASSWORD}", "ok")])
    first_agent = session.agents[0]
    assert isinstance(first_agent, Transcript)
    session.delegate("Count the mackerel", "Seven.", nested=first_agent)
    session.delegate("Search for herring again", "None.")
    session.write(folder / "claude")
    other = Transcript("10000000-0000-4000-8000-000000000012", seed=6)
    other.user("herring").assistant("herring").user("herring").write(folder / "claude")
    signs = Transcript("10000000-0000-4000-8000-000000000013", seed=7)
    signs.user("Where?").assistant("quay 7 ==> north").user("quay 8 🎉").assistant("go() to sea")
    signs.write(folder / "claude")
    with History(roots=[NamedRoot("claude-code", folder / "claude")], home=folder / "home") as history:
        history.sync()
        yield history


def _agent(history: History, prompt: str) -> SessionSummary:
    session = history.find("10000000-0000-4000-8000-000000000011")
    found = [
        agent for agent in history.transcript.subagents(session) if agent.first_message_preview == prompt
    ]
    return found[0]


def test_a_session_finds_text_in_itself_and_its_subagents(history: History) -> None:
    session = history.find("10000000-0000-4000-8000-000000000011")
    refs = {ref for ref, _ in history.find_in_session(session, "herring")}
    assert refs == {
        session.ref,
        _agent(history, "Search for herring").ref,
        _agent(history, "Search for herring again").ref,
    }


def test_a_subagent_finds_text_in_itself(history: History) -> None:
    agent = _agent(history, "Search for herring")
    found = history.find_in_session(agent, "herring")
    assert found
    assert {ref for ref, _ in found} == {agent.ref}
    messages = list(history.transcript.messages(agent))
    assert all("herring" in messages[position].content for _, position in found)


def test_a_subagent_finds_text_in_the_subagents_that_it_started(history: History) -> None:
    nested = _agent(history, "Count the mackerel")
    found = history.find_in_session(_agent(history, "Search for herring"), "mackerel")
    assert nested.ref in {ref for ref, _ in found}
    assert not history.find_in_session(_agent(history, "Search for herring again"), "mackerel")


def test_a_secret_that_the_session_names_is_replaced_in_a_subagent(history: History) -> None:
    redactor = Redactor()
    agent = _agent(history, "Search for herring")
    history.learn_secrets(redactor, agent)
    text = redactor.redact_text(f"login {PASSWORD}", SecretLocation(agent.ref, 0))
    assert PASSWORD not in text


@pytest.mark.parametrize("pattern", ["words", "exact"])
def test_a_search_replaces_a_secret_of_the_session_in_a_subagent(
    history: History, pattern: Literal["words", "exact"]
) -> None:
    result = history.search_sessions("login", pattern=pattern, redactor=Redactor())
    assert result.data
    assert PASSWORD not in " ".join(match.match for match in result.data)


def test_an_export_of_a_subagent_replaces_a_secret_that_the_session_names(history: History) -> None:
    agent = _agent(history, "Search for herring")
    assert PASSWORD in "".join(history.exports.stream(agent))
    assert PASSWORD not in "".join(history.exports.stream(agent, redactor=Redactor()))


def _positions(history: History, query: str, **options: Any) -> list[int]:
    session = history.find("10000000-0000-4000-8000-000000000013")
    found = history.transcript.find_matches(session, query, **options)
    assert found.is_complete
    return [position for _, position in found.positions]


def test_punctuation_and_emoji_are_found_as_exact_text(history: History) -> None:
    assert _positions(history, "==>") == [1]
    assert _positions(history, "🎉") == [2]
    assert _positions(history, "()") == [3]
    assert _positions(history, "%%%") == []


def test_blank_text_matches_nothing(history: History) -> None:
    assert _positions(history, "") == _positions(history, " ") == []


def test_a_pattern_is_found_in_one_session(history: History) -> None:
    assert _positions(history, "GO() TO", pattern="exact") == [3]
    assert _positions(history, "go to", pattern="exact") == []
    assert _positions(history, r"quay \d", pattern="regex") == [1, 2]
    assert _positions(history, r"quay \d", pattern="regex", filter_query="role:user") == [2]


def test_an_invalid_regular_expression_is_an_error(history: History) -> None:
    with pytest.raises(UsageError):
        _positions(history, "(", pattern="regex")


def test_more_matches_than_the_limit_are_marked_as_incomplete(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backscroll.search.search.MAX_MATCHES", 2)
    session = history.find("10000000-0000-4000-8000-000000000012")
    found = history.transcript.find_matches(session, "herring")
    assert (len(found.positions), found.is_complete) == (2, False)


@pytest.mark.soak
def test_a_session_finds_more_than_10_000_messages(tmp_path: Path) -> None:
    session = Transcript("10000000-0000-4000-8000-000000000014", seed=8)
    for _ in range(5_100):
        session.user("herring").assistant("herring")
    session.write(tmp_path / "claude")
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home") as history:
        history.sync()
        found = history.transcript.find_matches(history.find("10000000"), "herring")
        assert (len(found.positions), found.is_complete) == (10_200, True)
        matching = history.transcript.find_matches(history.find("10000000"), "e", pattern="exact")
        assert (len(matching.positions), matching.is_complete) == (10_200, True)
