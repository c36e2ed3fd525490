"""Find text in one session and its subagents."""

from collections.abc import Iterator
from typing import Literal

import pytest

from backscroll.config import NamedRoot
from backscroll.history import History, Redactor
from backscroll.model import SessionSummary
from backscroll.model.export import SecretLocation
from backscroll.testing.claude_code import Transcript, tool_calls

PASSWORD = "tide" + "Table77"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    """A session with a subagent that starts another one, and a second session."""
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
    other.user("herring").assistant("herring").write(folder / "claude")
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
