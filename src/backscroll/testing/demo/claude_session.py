"""A session held in Claude Code."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from backscroll.testing.claude_code import Call, Prompt, Transcript, blocks, tool_calls
from backscroll.testing.claude_code.versions import SubagentLayout
from backscroll.testing.demo.project import Repository
from backscroll.testing.demo.session import Scene

__all__ = ["ClaudeScene", "Order"]

_CHARACTERS_PER_TOKEN = 3.6
_BEFORE = (
    24_000  # tokens that every session begins with: instructions, tools, what the project says of itself
)


@dataclass(frozen=True)
class Order:
    """Work given to a subagent: what it is told, what it does, what it answers."""

    description: str
    prompt: str
    answer: str
    steps: Sequence[Call] = ()
    kind: str = "Explore"
    model: str = "claude-haiku-4-5"


class ClaudeScene(Scene):
    """Thinking and notes wait for the next tool call or answer, as blocks of one response.

    ``transcript`` takes whatever happens only in Claude Code.
    """

    def __init__(
        self,
        name: str,
        title: str,
        repository: Repository,
        *,
        at: datetime,
        version: str,
        model: str,
        transcript: Transcript | None = None,
        folder: str | None = None,
    ) -> None:
        super().__init__(name, title, repository, folder=folder)
        self.model = model
        self.transcript = transcript or Transcript(
            self.id, version=version, cwd=self.folder, branch=repository.branch, start=at
        )
        self.id = self.transcript.session_id
        self.typed: list[Prompt] = []
        self._thought: str | None = None
        self._noted: str | None = None
        self._context = _BEFORE + self.random.randrange(18_000)
        self._unread = 0  # characters that the model has not been shown yet
        self._versions: dict[str, int] = {}
        self._asked = ""
        self._turn_began = self.now

    @property
    def now(self) -> datetime:
        return self.transcript.now

    def pause(self, *, minutes: float = 0, seconds: float = 0) -> None:
        self.transcript.wait(minutes * 60 + seconds)

    def say(self, text: str, *, picture: bytes | None = None, mode: str = "default") -> None:
        self.pause(seconds=self.random.uniform(20, 160))
        content: str | list[Any] = text
        if picture is not None:
            content = [blocks.image(picture), blocks.text(text)]
        self.transcript.user(content, mode=mode)
        self._asked, self._turn_began = self.transcript.last_uuid, self.now
        self._unread += len(text)
        self.typed.append(Prompt(text, self.now, self.folder, self.id))
        if self.transcript.release.is_at_least("2.0.0"):
            self.transcript.snapshot(self._asked, {}, update=False)

    def queue(self, text: str) -> None:
        """The person types while the assistant is still working."""
        self.transcript.queued(text)
        self.typed.append(Prompt(text, self.now, self.folder, self.id))

    def think(self, text: str) -> None:
        self._thought = text

    def note(self, text: str) -> None:
        self._noted = text

    def reply(self, text: str) -> None:
        self.pause(seconds=self.random.uniform(4, 14) + len(text) / 90)
        self.transcript.assistant(text, **self._response(text))
        if self.transcript.release.is_at_least("2.1.0"):
            took = int((self.now - self._turn_began).total_seconds() * 1000)
            self.transcript.system(
                "turn_duration", durationMs=took, messageCount=len(self.transcript.records)
            )

    def run(self, *called: Call, seconds: float = 0) -> None:
        """The assistant calls tools, several of them at once."""
        self.pause(seconds=self.random.uniform(3, 11))
        noted, self._noted = self._noted, None
        self.transcript.run(*called, text=noted, **self._response(*(str(call.input) for call in called)))
        self._unread += sum(len(str(call.content)) for call in called)
        self.pause(seconds=seconds)

    def shell(self, command: str, output: str = "", *, code: int = 0) -> None:
        call = tool_calls.bash(command, output)
        if code:
            told = f"Exit code {code}\n{output}"
            call = Call("Bash", {"command": command}, told, f"Error: {told}", is_error=True)
        self.run(call, seconds=2)

    def grep(self, pattern: str, *found: str) -> None:
        self.run(tool_calls.grep(pattern, self._shown_paths(found), content="\n".join(found)))

    def todo(self, *items: tuple[str, str]) -> None:
        self.run(tool_calls.todos(items))

    def reject_edit(self, path: str, old: str, new: str) -> None:
        """The assistant proposes an edit, and the person does not let it through."""
        put = {"file_path": f"{self.folder}/{path}", "old_string": old, "new_string": new}
        noted, self._noted = self._noted, None
        self.transcript.assistant(noted, tools=[Call("Edit", put)], **self._response(old + new))
        self.pause(seconds=12)
        self.transcript.reject(self.transcript.tool_ids[-1])

    def delegate(self, *orders: Order, layout: SubagentLayout | None = None) -> None:
        """Start subagents, all at once, and take what they answer."""
        self.subagents += len(orders)
        boss = self.transcript
        layout = layout or boss.release.subagent_layout
        asked = [
            Call(
                boss.release.agent_tool,
                {"description": one.description, "prompt": one.prompt, "subagent_type": one.kind},
            )
            for one in orders
        ]
        noted, self._noted = self._noted, None
        boss.assistant(noted, tools=asked, **self._response(*(one.prompt for one in orders)))
        ids = boss.tool_ids[-len(orders) :]
        began = boss.now
        ended = [began]
        outcomes: list[dict[str, Any]] = []
        for one, tool_id in zip(orders, ids, strict=True):
            boss.now = began
            outcomes.append(self._work(one, tool_id, layout))
            ended.append(boss.now)
        boss.now = max(ended)
        for one, tool_id, outcome in zip(orders, ids, outcomes, strict=True):
            boss.result(tool_id, [blocks.text(one.answer)], tool_use_result=outcome)
            self._unread += len(one.answer)

    def _work(self, order: Order, tool_id: str, layout: SubagentLayout) -> dict[str, Any]:
        """Let a subagent do its work; gives what its boss writes down of it."""
        boss, began = self.transcript, self.transcript.now
        if layout == "inline":
            with boss.sidechain(order.prompt) as agent:
                spent = self._labour(agent, order)
            named: dict[str, Any] = {}
        else:
            meta: dict[str, Any] | None = None
            if layout == "nested":
                meta = {"agentType": order.kind, "description": order.description, "toolUseId": tool_id}
                meta |= {"model": order.model, "spawnDepth": 1}
            agent = boss.subagent(order.prompt, layout=layout, meta=meta)
            spent = self._labour(agent, order)
            boss.now = agent.now
            named = {"agentId": agent.agent_id}
        took = int((boss.now - began).total_seconds() * 1000)
        return {"status": "completed", "prompt": order.prompt, **named} | {
            "content": [blocks.text(order.answer)],
            "totalDurationMs": took,
            "totalTokens": sum(spent.values()),
            "totalToolUseCount": len(order.steps),
            "usage": spent,
        }

    def _labour(self, agent: Transcript, order: Order) -> dict[str, int]:
        """The subagent's own responses; gives the tokens of the last one."""
        context = 9_000 + self.random.randrange(3000)
        spent: dict[str, int] = {}
        for step in order.steps:
            agent.wait(self.random.uniform(2, 9))
            spent = _tokens(context, 400, len(str(step.input)), self.random.randrange(3, 9))
            agent.run(step, usage=spent, model=order.model)
            context += 400 + int(len(str(step.content)) / _CHARACTERS_PER_TOKEN)
        agent.wait(self.random.uniform(4, 12))
        spent = _tokens(context, 300, len(order.answer), 4)
        agent.assistant(order.answer, usage=spent, model=order.model)
        return spent

    def close(self) -> None:
        if self.transcript.release.is_at_least("2.1.80"):
            self.transcript.ai_title(self.title).last_prompt(leaf=self.transcript.last_uuid)
        else:
            self.transcript.summary(self.title, self.transcript.last_uuid)

    def _show_read(self, path: str, text: str) -> None:
        self.run(tool_calls.read(path, text.removesuffix("\n")))

    def _show_edit(self, path: str, old: str, new: str, before: str) -> None:
        self._keep(path, before)
        self.run(tool_calls.edit(path, old, new, original=before))

    def _show_write(self, path: str, text: str, before: str | None) -> None:
        self._keep(path, before)
        self.run(tool_calls.write(path, text, original=before))

    def _keep(self, path: str, before: str | None) -> None:
        """Claude Code keeps a copy of every file it is about to change."""
        if not self.transcript.release.is_at_least("2.0.0"):
            return
        short = path.removeprefix(f"{self.folder}/")
        version = self._versions[short] = self._versions.get(short, 0) + 1
        name, _ = self.transcript.back_up_file(
            short, None if before is None else before.encode(), version=version
        )
        if self.transcript.release.is_at_least("2.1.208"):
            self.transcript.delta(self._asked, short, name, version, snapshot_id=self._asked)
        else:
            self.transcript.snapshot(self._asked, {short: (name, version)})

    def _response(self, *said: str) -> dict[str, Any]:
        """The model, its thinking and what it cost, for a response that says this much."""
        thought, self._thought = self._thought, None
        size = sum(map(len, said)) + len(thought or "")
        created = 60 + int(self._unread / _CHARACTERS_PER_TOKEN)
        usage = _tokens(self._context, created, size, self.random.randrange(3, 12))
        self._context += created + usage["output_tokens"]
        self._unread = 0
        return {"usage": usage, "model": self.model, "thinking": thought}


def _tokens(context: int, created: int, characters: int, fresh: int) -> dict[str, int]:
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": created,
        "cache_read_input_tokens": context,
        "output_tokens": 24 + int(characters / _CHARACTERS_PER_TOKEN),
    }
