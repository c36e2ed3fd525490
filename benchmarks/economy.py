"""What it costs a model to answer a question from the history, in tokens of tool results.

A model that asks as the tools' descriptions say: recall first; when the answer is not in
that, the talk of the sessions that recall named, best first. A result counts as text or as
a document, whichever is longer, since clients pass on one of them. Tokens are estimated:
four ASCII characters each, any other character by itself.
"""

from collections.abc import Iterator
from typing import Any

import anyio
import msgspec
from mcp import Client
from msgspec import Struct

from backscroll.mcp.server import McpServer
from backscroll.render.token_estimate import estimate_tokens
from benchmarks.demo import demo_history, questions
from benchmarks.figures import Figure
from benchmarks.stage import Stage

__all__ = ["Asked", "asked", "figures"]

_WANTED = 1500  # tokens


class Asked(Struct, frozen=True):
    """A question, what answering it took, and whether the answer was found."""

    question: str
    calls: int
    tokens: int
    is_answered: bool


def figures(stage: Stage) -> Iterator[Figure]:
    """The dearest question and the middle one, and how many were answered."""
    every = asked()
    costs = sorted(one.tokens for one in every)
    answered = sum(one.is_answered for one in every)
    for key, what, value, wanted in (
        ("economy most", f"tokens of results for the dearest of {len(every)} questions", costs[-1], _WANTED),
        ("economy middle", "tokens of results for the middle one", costs[len(costs) // 2], None),
    ):
        yield Figure(key=key, what=what, value=value, unit="tokens", wanted=wanted)
    yield Figure(
        key="economy answered",
        what=f"of {len(every)} questions those whose answer was in the results",
        value=answered,
        unit="",
        wanted=len(every),
        more_is_better=True,
    )


def asked() -> list[Asked]:
    """Every question of the demo, asked through the tools."""
    with demo_history() as opened:
        desk = McpServer(opened)
        try:
            return anyio.run(_ask, desk, questions())
        finally:
            desk.workers.close()


async def _ask(desk: McpServer, questions: list[dict[str, Any]]) -> list[Asked]:
    async with Client(desk.server) as client:
        return [await _answer(client, one["question"], one["evidence"]) for one in questions]


async def _answer(client: Client, question: str, evidence: str) -> Asked:
    tokens, calls = 0, 0
    asking: list[tuple[str, dict[str, Any]]] = [("recall", {"task": question})]
    for tool, arguments in asking:
        result = await client.call_tool(tool, arguments)
        text = "".join(getattr(part, "text", "") for part in result.content)
        document = msgspec.json.encode(result.structured_content).decode()
        tokens += max(estimate_tokens(text), estimate_tokens(document))
        calls += 1
        if evidence in text:
            return Asked(question, calls, tokens, True)
        if tool == "recall":
            found = [one["session_ref"] for one in result.structured_content["data"][:3]]
            asking += [("get_session", {"ref": ref, "roles": ["user", "assistant"]}) for ref in found]
    return Asked(question, calls, tokens, False)


if __name__ == "__main__":
    for one in asked():
        print(f"{one.tokens:>6} {one.calls} {'yes' if one.is_answered else 'no ':<4} {one.question}")
