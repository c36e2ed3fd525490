"""Answers of the scripted model, and a record of every exchange."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.judge.blocks import Block, text, use

WARM_UP = "Warmup"  # prompt of a subagent that 2.0 starts to fill its cache

_SUMMARY_REQUESTS = ("create a detailed summary", "detailed summary of")
# Requests that the tool makes for itself. No transcript contains them.
_OWN_REQUESTS = ("[SUGGESTION MODE", "quota")


@dataclass(frozen=True)
class Reply:
    """An answer, and how it is streamed."""

    blocks: Sequence[Block]
    usage: dict[str, int] = field(default_factory=dict)  # replaces parts of the default
    stop_reason: str | None = None  # by default what the blocks imply
    delay_seconds: float = 0.0
    chunk_chars: int = 20_000  # of one text event
    chunk_delay_seconds: float = 0.0
    cut_after_chars: int | None = None  # the connection ends there


@dataclass(frozen=True)
class Failure:
    """An HTTP error; the next answer of the sequence follows after so many of them."""

    status: int
    kind: str
    message: str
    times: int | None = None  # None: always
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class WaitForTool:
    """Calls that take a second, until the tool offers one with this name. Then the next answer follows."""

    name: str

    def is_offered(self, request: dict[str, Any]) -> bool:
        """Return whether a request contains the name, as a definition or in a list of names."""
        return self.name in json.dumps([request.get(part) for part in ("tools", "system", "messages")])


Answer = WaitForTool | Reply | Failure | Sequence[Block] | Callable[[dict[str, Any]], Reply | Sequence[Block]]


@dataclass
class _Sequence:
    """Answers to one prompt: the first to its words, each other one to the results of the calls before it."""

    key: str
    agent: str | None  # key of the prompt of a subagent; None in the main conversation
    answers: list[Answer]
    failures: int = 0
    calls: dict[str, int] = field(default_factory=dict)  # id of a call: number of the answer to its result


@dataclass
class Exchange:
    """One request of the tool and the answer to it."""

    response_id: str
    model: str
    blocks: list[Block]
    usage: dict[str, int]
    stop_reason: str
    agent: str | None
    request: dict[str, Any]
    is_own: bool = False  # a request of the tool for itself
    is_sent: bool = False  # the whole answer was sent
    is_at_least: bool = False  # the tool wrote its tokens before it was finished

    @property
    def calls(self) -> list[Block]:
        return [block for block in self.blocks if block["type"] in ("tool_use", "server_tool_use")]


class Script:
    """The scripted model. Thread-safe: subagents ask at the same time."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.results: dict[str, Block] = {}  # tool_use_id: the first tool_result sent to the model
        self.summary = "SUMMARY of the conversation."
        self.title = "Title by the model"
        self._sequences = [_Sequence(WARM_UP, WARM_UP, [[text("I am ready.")]])]
        self._lock = threading.Lock()

    def on(self, key: str, *answers: Answer) -> None:
        """Answer a prompt that contains the key. Each other answer follows the results of the last calls."""
        self._sequences.append(_Sequence(key, None, list(answers)))

    def on_agent(self, key: str, *answers: Answer) -> None:
        """Answer the prompt of a subagent that contains the key."""
        self._sequences.append(_Sequence(key, key, list(answers)))

    def wait_for(self, key: str, timeout_seconds: float = 60.0) -> None:
        """Wait until a request contains the key in its last user message."""
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            with self._lock:
                if any(key in json.dumps(_last_blocks(each.request)) for each in self.exchanges):
                    return
            time.sleep(0.05)
        raise TimeoutError(f"no request contained {key!r} within {timeout_seconds} seconds")

    def answer(self, request: dict[str, Any]) -> tuple[Exchange, Reply] | Failure:
        """Return the answer to a request, and record both."""
        with self._lock:
            return self._answer(request)

    def _answer(self, request: dict[str, Any]) -> tuple[Exchange, Reply] | Failure:
        blocks = _last_blocks(request)
        for message in request.get("messages", []):
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block.get("type") == "tool_result":
                    self.results.setdefault(block["tool_use_id"], block)
        is_own = _is_summary_request(blocks) or _is_own_request(request, blocks)
        sequence, number = (None, 0) if is_own else self._find(request, blocks)
        answer: Answer = [text("Understood.")]
        if _is_summary_request(blocks):
            answer = [text(f"<analysis>x</analysis>\n<summary>\n{self.summary}\n</summary>")]
        elif is_own:
            answer = [text(self._title(request))]
        elif sequence is not None and number < len(sequence.answers):
            answer = sequence.answers[number]
        is_waiting = False
        if isinstance(answer, WaitForTool):
            assert sequence is not None
            is_waiting = not answer.is_offered(request)
            number += not is_waiting
            answer = (
                [use("Bash", command="sleep 1", description="wait")]
                if is_waiting
                else sequence.answers[number]
            )
        if isinstance(answer, Failure):
            assert sequence is not None
            if answer.times is None or sequence.failures < answer.times:
                sequence.failures += 1
                return answer
            number += 1
            following = sequence.answers[number]
            assert not isinstance(following, Failure | WaitForTool)
            answer = following
        assert not isinstance(answer, WaitForTool)
        given = answer(request) if callable(answer) else answer
        reply = given if isinstance(given, Reply) else Reply(given)
        exchange = self._record(
            request, reply, sequence.agent if sequence else self._agent_of(request), is_own
        )
        if sequence is not None:
            next_number = number if is_waiting else number + 1
            sequence.calls.update(dict.fromkeys((call["id"] for call in exchange.calls), next_number))
        return exchange, reply

    def _record(self, request: dict[str, Any], reply: Reply, agent: str | None, is_own: bool) -> Exchange:
        number = len(self.exchanges) + 1
        blocks = [dict(block) for block in reply.blocks]
        calls = bool(blocks) and blocks[-1]["type"] == "tool_use"
        exchange = Exchange(
            response_id=f"msg_judge_{number:04d}",
            model=request.get("model", ""),
            blocks=blocks,
            usage={
                "input_tokens": 100 + number,  # different for each response
                "cache_creation_input_tokens": 20,
                "cache_read_input_tokens": 300,
                "output_tokens": 40 + number,
            }
            | reply.usage,
            stop_reason=reply.stop_reason or ("tool_use" if calls else "end_turn"),
            agent=agent,
            request=request,
            is_own=is_own,
        )
        self.exchanges.append(exchange)
        return exchange

    def _find(self, request: dict[str, Any], blocks: list[Block]) -> tuple[_Sequence | None, int]:
        """Return the sequence that a request continues, and the number of its next answer."""
        first = json.dumps(request["messages"][:1])  # a report to the main conversation names the subagent
        possible = [each for each in self._sequences if each.agent is None or each.agent in first]
        for block in reversed(blocks):
            if block.get("type") == "tool_result":
                for sequence in possible:
                    if block["tool_use_id"] in sequence.calls:
                        return sequence, sequence.calls[block["tool_use_id"]]
            words = block.get("text", "")
            found = [(words.rfind(each.key), each) for each in possible if each.key in words]
            if found:
                return max(found, key=lambda hit: hit[0])[1], 0
        return None, 0

    def _title(self, request: dict[str, Any]) -> str:
        """Return the answer to a request for a title, as JSON if the tool asks for it."""
        is_json = (
            request.get("output_config") or request.get("output_format") or "JSON" in json.dumps(request)
        )
        return json.dumps({"title": self.title, "isNewTopic": True}) if is_json else self.title

    def _agent_of(self, request: dict[str, Any]) -> str | None:
        """Return the key of the subagent that asks, by the first message of its conversation."""
        words = json.dumps(request["messages"][:1])
        return next((each.agent for each in self._sequences if each.agent and each.agent in words), None)


def _last_blocks(request: dict[str, Any]) -> list[Block]:
    """Return the content of the last user message."""
    messages = [message for message in request.get("messages", []) if message.get("role") == "user"]
    content = messages[-1]["content"] if messages else []
    return [text(content)] if isinstance(content, str) else content


def _is_summary_request(blocks: list[Block]) -> bool:
    return any(sign in block.get("text", "") for block in blocks for sign in _SUMMARY_REQUESTS)


def _is_own_request(request: dict[str, Any], blocks: list[Block]) -> bool:
    words = next((block["text"] for block in reversed(blocks) if block.get("type") == "text"), "")
    if words == WARM_UP:
        return False
    return not request.get("tools") or words.startswith(_OWN_REQUESTS)
