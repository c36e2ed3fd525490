"""Tokens of tool definitions, and of tool results that a model reads to answer a question from the history.

The simulated model follows the tool descriptions. It calls `recall` first. If the result has no answer, the
model reads the prompts and replies of the sessions that `recall` returned, best first. The token count is
an estimate: four ASCII characters per token, one token for each other character.
"""

import re
from collections.abc import Iterator
from typing import Any

import anyio
import msgspec
from mcp import Client
from msgspec import Struct

from backscroll.mcp.call import ServerOptions
from backscroll.mcp.server import McpServer, tool_list
from backscroll.render.token_estimate import estimate_tokens
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.demo_history import load_questions, synced_demo
from benchmarks.result_table import Result

_TARGET_TOKENS = 1500
_MAX_SESSIONS_READ = 3
_RECALLED_REF = re.compile(r"^\d+\. .* · ([\w-]+:[\w-]+)$", re.MULTILINE)


class Answer(Struct, frozen=True):
    """Cost of one question, and whether the tool results contained the answer."""

    question: str
    calls: int
    tokens: int
    is_answered: bool


def measure(context: BenchmarkContext) -> Iterator[Result]:
    answers = answer_all()
    total = len(answers)
    costs = sorted(answer.tokens for answer in answers)
    yield Result(
        key="token cost maximum",
        label=f"Tool-result tokens per question, maximum of {total}",
        value=costs[-1],
        unit="tokens",
        target=_TARGET_TOKENS,
    )
    yield Result(
        key="token cost median",
        label="Tool-result tokens per question, median",
        value=costs[len(costs) // 2],
        unit="tokens",
    )
    for key, label, options in (
        ("token cost definitions", "Tokens of the tool definitions", ServerOptions()),
        (
            "token cost definitions with writes",
            "Tokens of the tool definitions with --allow-writes",
            ServerOptions(allow_writes=True),
        ),
    ):
        yield Result(key=key, label=label, value=_definition_tokens(options), unit="tokens")
    yield Result(
        key="questions answered",
        label=f"Questions answered by tool results, of {total}",
        value=sum(answer.is_answered for answer in answers),
        unit="",
        target=total,
        higher_is_better=True,
    )


def _definition_tokens(options: ServerOptions) -> int:
    """Return the tokens of what clients pass to a model: names, descriptions and schemas of the arguments."""
    definitions = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in tool_list(options)
    ]
    return estimate_tokens(msgspec.json.encode(definitions).decode())


def answer_all() -> list[Answer]:
    """Ask every question of the demo through the MCP tools."""
    with synced_demo() as open_demo:
        server = McpServer(open_demo)
        try:
            return anyio.run(_answer_questions, server, load_questions())
        finally:
            server.workers.close()


async def _answer_questions(server: McpServer, questions: list[dict[str, Any]]) -> list[Answer]:
    async with Client(server.server) as client:
        return [
            await _answer_question(client, question["question"], question["evidence"])
            for question in questions
        ]


async def _answer_question(client: Client, question: str, evidence: str) -> Answer:
    tokens, call_count = 0, 0
    calls: list[tuple[str, dict[str, Any]]] = [("recall", {"task": question})]
    for tool, arguments in calls:
        result = await client.call_tool(tool, arguments)
        text = "".join(getattr(part, "text", "") for part in result.content)
        tokens += estimate_tokens(text)
        call_count += 1
        if evidence in text:
            return Answer(question, call_count, tokens, True)
        if tool == "recall":
            refs = _RECALLED_REF.findall(text)[:_MAX_SESSIONS_READ]
            calls += [("get_session", {"ref": ref, "roles": ["user", "assistant"]}) for ref in refs]
    return Answer(question, call_count, tokens, False)


if __name__ == "__main__":
    for answer in answer_all():
        print(
            f"{answer.tokens:>6} {answer.calls} {'yes' if answer.is_answered else 'no ':<4} {answer.question}"
        )
