"""What a scenario should leave behind, by session and subagent."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.judge.blocks import Block
from tests.judge.script import WARM_UP, Exchange
from tests.judge.stage import Stage

EDIT_TOOLS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
_PERSISTED = re.compile(r"<persisted-output>.*?saved to: (\S+)", re.DOTALL)
_REMINDERS = re.compile(r"(\s*<system-reminder>.*?</system-reminder>)+\s*$", re.DOTALL)


@dataclass
class Conversation:
    """Prompts and answers of one session, or of one subagent."""

    session_id: str
    prompts: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    partial_answers: list[str] = field(default_factory=list)
    agents: dict[str, "Conversation"] = field(default_factory=dict)  # by the key of their prompt
    call_id: str | None = None  # the call that started a subagent
    is_prompt_written: bool = True  # 2.0.58 does not write the prompts of subagents
    hidden: list[Exchange] = field(default_factory=list)  # of subagents that are not listed

    @property
    def texts(self) -> list[str]:
        words = [block["text"] for block in self._blocks("text") if block["text"]]
        return [*self.partial_answers, *words]

    @property
    def thoughts(self) -> list[str]:
        return [block["thinking"] for block in self._blocks("thinking") if block["thinking"]]

    @property
    def calls(self) -> list[Block]:
        return [call for exchange in self.exchanges for call in exchange.calls]

    @property
    def all_exchanges(self) -> list[Exchange]:
        """Exchanges of the conversation and its subagents."""
        return [
            *self.exchanges,
            *self.hidden,
            *(each for agent in self.agents.values() for each in agent.exchanges),
        ]

    @property
    def total_tokens(self) -> int:
        return sum(sum(exchange.usage.values()) for exchange in self.all_exchanges)

    def _blocks(self, kind: str) -> list[Block]:
        return [block for exchange in self.exchanges for block in exchange.blocks if block["type"] == kind]


@dataclass(frozen=True)
class ExpectedCall:
    """Result of a call as the model received it, unless the scenario says otherwise."""

    result: str | None
    status: str
    decision: str | None


def conversations(stage: Stage) -> dict[str, Conversation]:
    """Return the expected sessions by id.

    A prompt or an answer that no file of the tool contains cannot be read. It is left out.
    """
    found: dict[str, Conversation] = {}
    _expect_lower_bounds(stage)
    files = [path.read_text("utf-8") for path in stage.config.glob("projects/**/*.jsonl")]
    lines = [line for file in files for line in file.splitlines()]
    owners = _response_owners(stage)
    for run in stage.runs:
        if run.session_id is None:
            continue
        session = found.setdefault(run.session_id, Conversation(run.session_id))
        session.prompts += [prompt for prompt in run.prompts if _is_written(prompt, lines)]
        session.partial_answers += run.partial_answers
        for exchange in run.exchanges:
            if exchange.is_own or exchange.response_id not in owners:
                continue
            if exchange.agent is None:
                session.exchanges.append(exchange)
            elif exchange.agent == WARM_UP:  # of this session, or of one without a conversation
                session.hidden += [exchange] if run.session_id in owners[exchange.response_id] else []
            else:
                agent = session.agents.setdefault(exchange.agent, Conversation(run.session_id))
                agent.exchanges.append(exchange)
    for session in found.values():
        _link_agents(session)
        for agent in session.agents.values():
            agent.is_prompt_written = any(
                '"isSidechain":true' in line and '"type":"user"' in line and agent.prompts[0] in line
                for line in lines
            )
    return found


def _expect_lower_bounds(stage: Stage) -> None:
    """Expect the output tokens as the tool wrote them, if it never wrote those of the finished response."""
    if stage.version >= "2.1.97":
        return
    paths = stage.config.glob("projects/**/*.jsonl")
    messages = [record.get("message") for path in paths for record in _records(path)]
    for exchange in stage.script.exchanges:
        written = [
            each for each in messages if isinstance(each, dict) and each.get("id") == exchange.response_id
        ]
        if written and not any(each["stop_reason"] for each in written):
            exchange.usage["output_tokens"] = max(each["usage"]["output_tokens"] for each in written)
            exchange.is_at_least = True


def _is_written(prompt: str, lines: list[str]) -> bool:
    """Return whether one line contains all words of a prompt. A command is written with its words in tags."""
    words = re.findall(r"[A-Za-z]{3,}", prompt)
    return any(all(word in line for word in words) for line in lines)


def _response_owners(stage: Stage) -> dict[str, set[str]]:
    """Return the sessions that contain a response, by its id. A file belongs to its first session."""
    owners: dict[str, set[str]] = {}
    for path in stage.config.glob("projects/**/*.jsonl"):
        session_id = None
        for record in _records(path):
            session_id = session_id or record.get("sessionId")
            message = record.get("message")
            if isinstance(message, dict) and message.get("id"):
                owners.setdefault(message["id"], set()).add(session_id or path.stem)
    return owners


def _link_agents(session: Conversation) -> None:
    for exchange in session.all_exchanges:
        for call in exchange.calls:
            prompt = call["input"].get("prompt", "")
            for key, agent in session.agents.items():
                if key in prompt:
                    agent.prompts, agent.call_id = [prompt], call["id"]


def expected_call(stage: Stage, call: Block) -> ExpectedCall:
    """Return what is expected of a call."""
    result = stage.script.results.get(call["id"])
    status = "pending" if result is None else "failed" if result.get("is_error") else "completed"
    is_edit = call["name"] in EDIT_TOOLS
    values = {
        "result": None if result is None else result_text(result, stage.config / "projects"),
        "status": status,
        "decision": "accepted" if is_edit and status == "completed" else None,
    }
    return ExpectedCall(**values | stage.calls.get(call["id"], {}))


def result_text(result: Block, projects: Path | None = None) -> str:
    """Return the words of a tool_result block. A long result of a moved session is below ``projects``."""
    content = result.get("content") or ""
    if not isinstance(content, str):
        words = [
            block.get("text") or f"[tool {block['tool_name']}]" for block in content if _has_words(block)
        ]
        content = "\n".join(words)
    persisted = _PERSISTED.match(content)
    if persisted is None:
        return content
    path = Path(persisted[1])
    if not path.exists() and projects is not None:
        (path,) = projects.glob(f"*/*/tool-results/{path.name}")
    return path.read_text("utf-8")


def _has_words(block: Block) -> bool:
    return block.get("type") in ("text", "tool_reference")


def without_reminders(words: str) -> str:
    """Remove what the tool adds to a result when it sends it, but does not always write."""
    return _REMINDERS.sub("", words).strip()


def titles(stage: Stage) -> dict[str, str]:
    """Return the titles that the tool wrote, by session id."""
    found: dict[str, str] = {}
    records = [(path.stem, record) for path in stage.transcripts() for record in _records(path)]
    owners: dict[str, str] = {}
    for id_, record in records:  # oldest first: a copy of a session may have the same ids
        owners.setdefault(record.get("uuid"), id_)
    for id_, record in records:
        match record.get("type"):
            case "ai-title":
                found[id_] = record["aiTitle"]
            case "summary" if record.get("leafUuid") in owners:
                found[owners[record["leafUuid"]]] = record["summary"]
    for id_, record in records:
        if record.get("type") == "custom-title":
            found[id_] = record["customTitle"]
    return found


def _records(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8").splitlines():
        if line.strip():
            yield json.loads(line)
