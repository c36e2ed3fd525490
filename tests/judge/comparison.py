"""Differences between what was scripted and what Backscroll returns."""

from collections.abc import Iterator, Sequence
from typing import Any

from backscroll import History
from backscroll.model.message import Message, TokenUsage
from backscroll.model.session import Filter, SessionSummary
from backscroll.render.turns import SubagentStart
from tests.judge.expectation import (
    EDIT_TOOLS,
    Conversation,
    conversations,
    expected_call,
    titles,
    without_reminders,
)
from tests.judge.script import Exchange
from tests.judge.stage import Stage


def assert_agrees(stage: Stage) -> None:
    """Fail if Backscroll returns anything else than what was scripted."""
    scripted = conversations(stage).values()
    assert any(each.prompts or each.all_exchanges for each in scripted), "the tool wrote no session"
    found = list(differences(stage))
    assert not found, f"{len(found)} differences\n" + "\n".join(found)


def differences(stage: Stage) -> Iterator[str]:
    """Yield one line for each difference."""
    expected = conversations(stage)
    with stage.history() as history:
        yield from _problems(history)
        summaries = {summary.id: summary for summary in history.all_sessions()}
        is_optional = {id_ for id_, each in expected.items() if not each.prompts and not each.all_exchanges}
        yield from _list_difference(
            "session", sorted(expected.keys() - is_optional), sorted(summaries.keys() - is_optional)
        )
        for id_, conversation in expected.items():
            if id_ in summaries:
                for line in _session(stage, history, summaries[id_], conversation):
                    yield f"{id_[:8]} {line}"
        yield from _totals(stage, history, list(expected.values()))


def _problems(history: History) -> Iterator[str]:
    """Yield what could not be parsed, and unknown record types."""
    audit = history.source_files.audit()
    for problem in audit.problems:
        if problem.code != "unknown-type":
            yield f"problem: {problem.code} {problem.origin} {problem.reason}"
    for place in audit.places:
        for kind, count in place.unknown.items():
            yield f"unknown: {kind} ({count})"


def _session(
    stage: Stage, history: History, summary: SessionSummary, expected: Conversation
) -> Iterator[str]:
    messages = history.get_session(summary.ref).messages
    own = [each for each in messages if each.copied_from is None and each.agent_id is None]
    yield from _conversation(stage, own, expected)
    yield from _difference("prompts counted", len(expected.prompts), summary.interaction_count)
    yield from _difference("tokens", expected.total_tokens, summary.total_tokens or 0)
    candidates = _title(stage, messages, expected)
    if not _is_title(summary.title, candidates):
        yield f"title: expected {candidates}, got {summary.title!r}"
    models = {exchange.model for exchange in expected.exchanges}
    models |= {each.model for each in messages if each.copied_from is not None and each.model is not None}
    branch = stage.branches.get(expected.session_id, stage.branch)
    if stage.version >= "1.0.69" or any(
        "gitBranch" in each.read_text("utf-8") for each in stage.transcripts()
    ):
        yield from _difference("branch", branch, summary.git_branch)
    yield from _difference("models", sorted(models), sorted(summary.models))
    yield from _agents(stage, history, summary, expected)


def _title(stage: Stage, messages: Sequence[Message], expected: Conversation) -> list[str | None]:
    """Return the title of the scenario, else the one that the tool wrote, else the first prompt.

    The first prompt of a copy is the first one copied, or the first of its own.
    """
    if expected.session_id in stage.titles:
        return [stage.titles[expected.session_id]]
    written = titles(stage).get(expected.session_id)
    if written is not None:
        return [written]
    copied = [each.content for each in messages if each.role == "user" and each.copied_from is not None]
    return [*copied[:1], *expected.prompts[:1]] or [None]


def _is_title(title: str | None, candidates: Sequence[str | None]) -> bool:
    """Return whether a title is one of the candidates, in one line and shortened."""
    if title is None:
        return None in candidates
    lines = [" ".join(each.split()) for each in candidates if each is not None]
    return any(line == title or (title.endswith("…") and line.startswith(title[:-1])) for line in lines)


def _conversation(stage: Stage, messages: Sequence[Message], expected: Conversation) -> Iterator[str]:
    def contents(role: str) -> list[str]:
        words = [each.content.strip() for each in messages if each.role == role]
        return [each for each in words if each]

    prompts = [each.strip() for each in expected.prompts if each.strip()]  # without those that are an image
    prompts = prompts if expected.is_prompt_written else []
    yield from _list_difference("prompt", prompts, contents("user"))
    yield from _list_difference("text", [each.strip() for each in expected.texts], contents("assistant"))
    yield from _list_difference("thought", expected.thoughts, contents("thinking"))
    tools = [each.tool for each in messages if each.tool is not None]
    yield from _list_difference(
        "call", [call["id"] for call in expected.calls], [tool.id or "" for tool in tools]
    )
    by_id = {tool.id: tool for tool in tools}
    for call in expected.calls:
        tool = by_id.get(call["id"])
        if tool is None:
            continue
        name = f"{call['name']} {call['id']}"
        wanted = expected_call(stage, call)
        yield from _difference(f"{name} name", call["name"], tool.name)
        params = {key: tool.params.get(key) for key in call["input"]}  # the tool adds others
        yield from _difference(f"{name} params", call["input"], params)
        result = without_reminders(tool.result or "")
        yield from _difference(f"{name} result", without_reminders(wanted.result or ""), result)
        yield from _difference(f"{name} status", wanted.status, tool.status)
        yield from _difference(f"{name} decision", wanted.decision, tool.decision)
    for exchange in expected.exchanges:
        yield from _response(
            exchange, [each for each in messages if each.response_id == exchange.response_id]
        )


def _response(exchange: Exchange, messages: Sequence[Message]) -> Iterator[str]:
    """Compare tokens and model of one response."""
    name = f"response {exchange.response_id}"
    used = TokenUsage()
    for message in messages:
        used = used.merged(message.usage) if message.usage is not None else used
        yield from _difference(f"{name} model", exchange.model, message.model)
        if message.timestamp is None:
            yield f"{name}: no time"
    if messages:
        yield from _difference(
            f"{name} usage", exchange.usage, {key: getattr(used, key) or 0 for key in exchange.usage}
        )
        is_at_least = any(each.usage.is_at_least for each in messages if each.usage is not None)
        if exchange.is_at_least and not is_at_least:
            yield f"{name}: tokens are not marked as a lower bound"


def _agents(stage: Stage, history: History, summary: SessionSummary, expected: Conversation) -> Iterator[str]:
    calls = dict(_agent_calls(history, summary))
    agents = [history.get_agent_session(f"{summary.source}:{id_}") for id_ in summary.agent_ids]
    yield from _list_difference(
        "agent",
        sorted(agent.prompts[0] for agent in expected.agents.values()),
        sorted(agent.prompt or "" for agent in agents),
    )
    for key, conversation in expected.agents.items():
        for agent in agents:
            if key not in (agent.prompt or ""):
                continue
            for line in _conversation(stage, agent.messages, conversation):
                yield f"agent {key} {line}"
            yield from _difference(f"agent {key} tokens", conversation.total_tokens, agent.total_tokens)
            yield from _difference(f"agent {key} model", conversation.exchanges[0].model, agent.model)
            yield from _difference(f"agent {key} calls", len(conversation.calls), agent.total_tool_use_count)
            yield from _difference(f"agent {key} started by", conversation.call_id, calls.get(agent.agent_id))


def _agent_calls(history: History, summary: SessionSummary) -> Iterator[tuple[str, str | None]]:
    """Yield each subagent with the call that started it: the last one before it in reading order."""
    call = None
    for item in history.transcript.read(summary, everything=True):
        if isinstance(item, SubagentStart):
            yield item.summary.id, call
        else:
            message = getattr(item, "message", None)
            call = message.tool.id if message is not None and message.tool is not None else call


def _totals(stage: Stage, history: History, expected: Sequence[Conversation]) -> Iterator[str]:
    """Compare the statistics over all sessions."""
    total = history.statistics.report(Filter()).total
    calls = [call for each in expected for exchange in each.all_exchanges for call in exchange.calls]
    wanted = [expected_call(stage, call) for call in calls]
    yield from _difference("total prompts", sum(len(each.prompts) for each in expected), total.prompts)
    yield from _difference(
        "total responses", sum(len(each.all_exchanges) for each in expected), total.responses
    )
    tokens = total.tokens.total if total.tokens is not None else 0
    yield from _difference("total tokens", sum(each.total_tokens for each in expected), tokens)
    yield from _difference("total calls", len(calls), total.tool_calls)
    failures = sum(each.status == "failed" for each in wanted)
    yield from _difference("total failures", failures, total.tool_failures)
    edits = [each for call, each in zip(calls, wanted, strict=True) if call["name"] in EDIT_TOOLS]
    decided = sum(each.decision is not None for each in edits)
    yield from _difference("edits decided", decided, total.edits_decided)


def _difference(name: str, expected: Any, actual: Any) -> Iterator[str]:
    if expected != actual:
        yield f"{name}: expected {_short(expected)}, got {_short(actual)}"


def _list_difference(name: str, expected: Sequence[str], actual: Sequence[str]) -> Iterator[str]:
    """Yield what is missing, what is too much, or that the order differs."""
    rest = list(actual)
    for value in expected:
        if value in rest:
            rest.remove(value)
        else:
            yield f"{name} is missing: {_short(value)}"
    for value in rest:
        yield f"{name} was not scripted: {_short(value)}"
    if not rest and sorted(expected) == sorted(actual) and list(expected) != list(actual):
        yield f"{name} in another order: expected {_short(list(expected))}, got {_short(list(actual))}"


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 300 else f"{shown[:200]} … {shown[-100:]}"
