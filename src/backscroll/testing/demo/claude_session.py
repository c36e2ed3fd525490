"""Session in Claude Code."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from backscroll.testing.claude_code import Call, Prompt, Transcript, blocks, tool_calls
from backscroll.testing.claude_code.versions import SubagentLayout
from backscroll.testing.demo.project import Repository
from backscroll.testing.demo.session import DemoSession

_CHARS_PER_TOKEN = 3.6
_INITIAL_CONTEXT_TOKENS = 24_000  # instructions, tools and project description


@dataclass(frozen=True)
class SubagentTask:
    """Task of a subagent: prompt, tool calls and answer."""

    description: str
    prompt: str
    answer: str
    steps: Sequence[Call] = ()
    kind: str = "Explore"
    model: str = "claude-haiku-4-5"


class ClaudeSession(DemoSession):
    """Session in Claude Code. Thinking and notes become blocks of the next response.

    Use ``transcript`` for lines that only Claude Code has.
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
        self.typed_prompts: list[Prompt] = []
        self._thinking: str | None = None
        self._note: str | None = None
        self._context_tokens = _INITIAL_CONTEXT_TOKENS + self.random.randrange(18_000)
        self._new_chars = 0  # characters since the last response
        self._versions: dict[str, int] = {}
        self._prompt_uuid = ""
        self._turn_start = self.now

    @property
    def now(self) -> datetime:
        return self.transcript.now

    def pause(self, *, minutes: float = 0, seconds: float = 0) -> None:
        self.transcript.wait(minutes * 60 + seconds)

    def prompt(self, text: str, *, image: bytes | None = None, mode: str = "default") -> None:
        self.pause(seconds=self.random.uniform(20, 160))
        content: str | list[Any] = text
        if image is not None:
            content = [blocks.image(image), blocks.text(text)]
        self.transcript.user(content, mode=mode)
        self._prompt_uuid, self._turn_start = self.transcript.last_uuid, self.now
        self._new_chars += len(text)
        self.typed_prompts.append(Prompt(text, self.now, self.folder, self.id))
        if self.transcript.release.is_at_least("2.0.0"):
            self.transcript.snapshot(self._prompt_uuid, {}, update=False)

    def queue(self, text: str) -> None:
        """Add a prompt that the user types while the assistant is working."""
        self.transcript.queued(text)
        self.typed_prompts.append(Prompt(text, self.now, self.folder, self.id))

    def think(self, text: str) -> None:
        self._thinking = text

    def note(self, text: str) -> None:
        self._note = text

    def reply(self, text: str) -> None:
        self.pause(seconds=self.random.uniform(4, 14) + len(text) / 90)
        self.transcript.assistant(text, **self._response(text))
        if self.transcript.release.is_at_least("2.1.0"):
            duration_ms = int((self.now - self._turn_start).total_seconds() * 1000)
            self.transcript.system(
                "turn_duration", durationMs=duration_ms, messageCount=len(self.transcript.records)
            )

    def run(self, *calls: Call, seconds: float = 0) -> None:
        """Call tools in parallel."""
        self.pause(seconds=self.random.uniform(3, 11))
        note, self._note = self._note, None
        self.transcript.run(*calls, text=note, **self._response(*(str(call.input) for call in calls)))
        self._new_chars += sum(len(str(call.content)) for call in calls)
        self.pause(seconds=seconds)

    def shell(self, command: str, output: str = "", *, code: int = 0) -> None:
        call = tool_calls.bash(command, output)
        if code:
            content = f"Exit code {code}\n{output}"
            call = Call("Bash", {"command": command}, content, f"Error: {content}", is_error=True)
        self.run(call, seconds=2)

    def grep(self, pattern: str, *found: str) -> None:
        self.run(tool_calls.grep(pattern, self._matched_paths(found), content="\n".join(found)))

    def todo(self, *items: tuple[str, str]) -> None:
        self.run(tool_calls.todos(items))

    def reject_edit(self, path: str, old: str, new: str) -> None:
        """Propose an edit that the user rejects."""
        arguments = {"file_path": f"{self.folder}/{path}", "old_string": old, "new_string": new}
        note, self._note = self._note, None
        self.transcript.assistant(note, tools=[Call("Edit", arguments)], **self._response(old + new))
        self.pause(seconds=12)
        self.transcript.reject(self.transcript.tool_ids[-1])

    def delegate(self, *tasks: SubagentTask, layout: SubagentLayout | None = None) -> None:
        """Start subagents in parallel and add their results."""
        self.subagents += len(tasks)
        caller = self.transcript
        layout = layout or caller.release.subagent_layout
        calls = [
            Call(
                caller.release.agent_tool,
                {"description": task.description, "prompt": task.prompt, "subagent_type": task.kind},
            )
            for task in tasks
        ]
        note, self._note = self._note, None
        caller.assistant(note, tools=calls, **self._response(*(task.prompt for task in tasks)))
        ids = caller.tool_ids[-len(tasks) :]
        start = caller.now
        end_times = [start]
        outcomes: list[dict[str, Any]] = []
        for task, tool_id in zip(tasks, ids, strict=True):
            caller.now = start
            outcomes.append(self._run_subagent(task, tool_id, layout))
            end_times.append(caller.now)
        caller.now = max(end_times)
        for task, tool_id, outcome in zip(tasks, ids, outcomes, strict=True):
            caller.result(tool_id, [blocks.text(task.answer)], tool_use_result=outcome)
            self._new_chars += len(task.answer)

    def _run_subagent(self, task: SubagentTask, tool_id: str, layout: SubagentLayout) -> dict[str, Any]:
        """Add the lines of a subagent. Return the ``toolUseResult`` of its call."""
        caller, start = self.transcript, self.transcript.now
        if layout == "inline":
            with caller.sidechain(task.prompt) as agent:
                usage = self._add_subagent_responses(agent, task)
            agent_field: dict[str, Any] = {}
        else:
            meta: dict[str, Any] | None = None
            if layout == "nested":
                meta = {"agentType": task.kind, "description": task.description, "toolUseId": tool_id}
                meta |= {"model": task.model, "spawnDepth": 1}
            agent = caller.subagent(task.prompt, layout=layout, meta=meta)
            usage = self._add_subagent_responses(agent, task)
            caller.now = agent.now
            agent_field = {"agentId": agent.agent_id}
        duration_ms = int((caller.now - start).total_seconds() * 1000)
        return {"status": "completed", "prompt": task.prompt, **agent_field} | {
            "content": [blocks.text(task.answer)],
            "totalDurationMs": duration_ms,
            "totalTokens": sum(usage.values()),
            "totalToolUseCount": len(task.steps),
            "usage": usage,
        }

    def _add_subagent_responses(self, agent: Transcript, task: SubagentTask) -> dict[str, int]:
        """Add the responses of a subagent. Return the token counts of the last one."""
        context = 9_000 + self.random.randrange(3000)
        usage: dict[str, int] = {}
        for step in task.steps:
            agent.wait(self.random.uniform(2, 9))
            usage = _token_counts(context, 400, len(str(step.input)), self.random.randrange(3, 9))
            agent.run(step, usage=usage, model=task.model)
            context += 400 + int(len(str(step.content)) / _CHARS_PER_TOKEN)
        agent.wait(self.random.uniform(4, 12))
        usage = _token_counts(context, 300, len(task.answer), 4)
        agent.assistant(task.answer, usage=usage, model=task.model)
        return usage

    def close(self) -> None:
        if self.transcript.release.is_at_least("2.1.80"):
            self.transcript.ai_title(self.title).last_prompt(leaf=self.transcript.last_uuid)
        else:
            self.transcript.summary(self.title, self.transcript.last_uuid)

    def _add_read(self, path: str, text: str) -> None:
        self.run(tool_calls.read(path, text.removesuffix("\n")))

    def _add_edit(self, path: str, old: str, new: str, before: str) -> None:
        self._back_up(path, before)
        self.run(tool_calls.edit(path, old, new, original=before))

    def _add_write(self, path: str, text: str, before: str | None) -> None:
        self._back_up(path, before)
        self.run(tool_calls.write(path, text, original=before))

    def _back_up(self, path: str, before: str | None) -> None:
        """Add a backup of a file before it changes, as Claude Code does."""
        if not self.transcript.release.is_at_least("2.0.0"):
            return
        relative_path = path.removeprefix(f"{self.folder}/")
        version = self._versions[relative_path] = self._versions.get(relative_path, 0) + 1
        name, _ = self.transcript.back_up_file(
            relative_path, None if before is None else before.encode(), version=version
        )
        if self.transcript.release.is_at_least("2.1.208"):
            self.transcript.delta(
                self._prompt_uuid, relative_path, name, version, snapshot_id=self._prompt_uuid
            )
        else:
            self.transcript.snapshot(self._prompt_uuid, {relative_path: (name, version)})

    def _response(self, *texts: str) -> dict[str, Any]:
        """Return the model, thinking and token counts of a response with these texts."""
        thinking, self._thinking = self._thinking, None
        char_count = sum(map(len, texts)) + len(thinking or "")
        created = 60 + int(self._new_chars / _CHARS_PER_TOKEN)
        usage = _token_counts(self._context_tokens, created, char_count, self.random.randrange(3, 12))
        self._context_tokens += created + usage["output_tokens"]
        self._new_chars = 0
        return {"usage": usage, "model": self.model, "thinking": thinking}


def _token_counts(context: int, created: int, char_count: int, fresh: int) -> dict[str, int]:
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": created,
        "cache_read_input_tokens": context,
        "output_tokens": 24 + int(char_count / _CHARS_PER_TOKEN),
    }
