"""Transcript of one session with its subagents and side files."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any, Self

from backscroll.testing.claude_code.blocks import text
from backscroll.testing.claude_code.events import EventLines, task_notification
from backscroll.testing.claude_code.tool_calls import Call
from backscroll.testing.claude_code.versions import SubagentLayout

_PREVIEW_CHARS = 2000


class Transcript(EventLines):
    """Builder for the transcript of one session, in the format of one version.

    Most methods add lines and return the transcript, so that calls can be chained.
    `write` writes the files. Unknown keyword arguments become fields of the line.
    """

    @contextmanager
    def sidechain(self, prompt: str) -> Iterator[Self]:
        """Add a subagent inside the session's own file, as 1.0 did. The session continues afterwards."""
        parent, self.leaf, self.is_sidechain = self.leaf, None, True
        self.user_line(prompt)
        lists = list(self.prompts), list(self.replies), list(self.tool_ids)
        yield self
        self.prompts, self.replies, self.tool_ids = lists
        self.leaf, self.is_sidechain = parent, False

    def subagent(
        self,
        prompt: str | None,
        *,
        agent_id: str | None = None,
        layout: SubagentLayout | None = None,
        under: str = "",
        meta: dict[str, Any] | None = None,
    ) -> "Transcript":
        """Return a subagent with its own file, which is written with this session.

        ``under`` is a folder below ``subagents/``, such as ``workflows/wf_1``. ``meta`` is
        the content of its metadata file. Without a prompt, the subagent has no lines yet.
        """
        id_ = agent_id or self.new_agent_id()
        is_flat = (layout or self.release.subagent_layout) == "flat"
        folder = (
            f"projects/{self.key}" if is_flat else "/".join(filter(None, (f"{self.folder}/subagents", under)))
        )
        agent = Transcript(
            self.session_id,
            version=self.version,
            cwd=self.cwd,
            branch=self.branch,
            start=self.now,
            seed=self.random.randrange(1 << 30),
            entrypoint=self.entrypoint,
            key=self.key,
            agent_id=id_,
            relative_path=f"{folder}/agent-{id_}.jsonl",
        )
        if meta is not None:
            agent.files[f"{folder}/agent-{id_}.meta.json"] = json.dumps(meta, separators=(",", ":")).encode()
        if prompt is not None:
            agent.user_line(prompt)
        self.agents.append(agent)
        return agent

    def delegate(
        self,
        prompt: str,
        answer: str,
        *,
        description: str = "Look it up",
        calls: Sequence[Call] = (),
        agent_type: str = "general-purpose",
        layout: SubagentLayout | None = None,
        nested: "Transcript | None" = None,
    ) -> Self:
        """Add a subagent that calls tools and answers, and its result in the session.

        Its location and its links have the format of the version. ``nested`` is the
        subagent that starts it, instead of the session.
        """
        caller = nested or self
        layout = layout or self.release.subagent_layout
        arguments = {"description": description, "prompt": prompt, "subagent_type": agent_type}
        caller.assistant(tools=[Call(self.release.agent_tool, arguments)])
        tool_id = caller.tool_ids[-1]
        if layout == "inline":
            with caller.sidechain(prompt):
                _add_work(caller, calls, answer)
            caller.result(tool_id, [text(answer)], tool_use_result=_outcome(prompt, answer, len(calls), None))
            return self
        agent = self.subagent(prompt, layout=layout)
        agent.now = caller.now
        if layout == "nested":
            self._add_meta_file(agent, tool_id, description, agent_type, caller)
        if self.release.is_at_least("2.1.0") and not self.release.is_at_least("2.1.92"):
            caller.progress("agent_progress", parent_tool_id=tool_id, agentId=agent.agent_id, prompt=prompt)
        _add_work(agent, calls, answer)
        caller.now = agent.now
        outcome = _outcome(prompt, answer, len(calls), agent.agent_id)
        caller.result(tool_id, [text(answer)], tool_use_result=outcome)
        return self

    def delegate_with_progress(
        self,
        prompt: str,
        answer: str,
        calls: Sequence[Call],
        *,
        description: str = "Look it up",
        with_file: bool = False,
    ) -> Self:
        """Add a subagent whose prompt and calls are repeated in progress lines (2.1.10 to 2.1.83).

        Its file is missing, as in a copied history, unless ``with_file`` is set.
        """
        arguments = {"description": description, "prompt": prompt, "subagent_type": "general-purpose"}
        self.assistant(tools=[Call(self.release.agent_tool, arguments)])
        tool_id = self.tool_ids[-1]
        agent = self.subagent(prompt)
        agent.now = self.now
        _add_work(agent, calls, answer)
        if not with_file:
            self.agents.remove(agent)
        for record in agent.records[:-1]:  # without the answer
            assert isinstance(record, dict)
            line = {name: record[name] for name in ("type", "message", "uuid", "timestamp")}
            self.progress(
                "agent_progress",
                parent_tool_id=tool_id,
                message=line,
                normalizedMessages=[],
                prompt=prompt,
                agentId=agent.agent_id,
            )
        self.now = max(self.now, agent.now)
        outcome = _outcome(prompt, answer, len(calls), agent.agent_id)
        return self.result(tool_id, [text(answer)], tool_use_result=outcome)

    def delegate_in_background(self, prompt: str, answer: str, *, description: str = "Look it up") -> Self:
        """Add a subagent that runs in the background and reports later, as an attachment.

        All subagents run in the background since 2.1.212.
        """
        arguments = {"description": description, "prompt": prompt, "subagent_type": "general-purpose"}
        self.assistant(tools=[Call(self.release.agent_tool, arguments)])
        tool_id = self.tool_ids[-1]
        agent = self.subagent(prompt, layout="nested")
        self._add_meta_file(agent, tool_id, description, "general-purpose", self)
        launched = {
            "isAsync": True,
            "status": "async_launched",
            "agentId": agent.agent_id,
            "description": description,
            "resolvedModel": f"{self.release.model}[1m]",
            "prompt": prompt,
        }
        note = f"Async agent launched successfully.\nagentId: {agent.agent_id}"
        self.result(tool_id, [text(note)], tool_use_result=launched)
        _add_work(agent, (), answer)
        report = task_notification(
            str(agent.agent_id), tool_id, f'Agent "{description}" finished', result=answer
        )
        self.queue("enqueue", report).queue("remove", report)
        return self.attachment(
            "queued_command", prompt=report, commandMode="task-notification", timestamp=self.tick()
        )

    def fork_agent(self, prompt: str, answer: str) -> "Transcript":
        """Add a forked agent (since 2.1.118).

        Its file contains a reference to this session, a copy of the last response and the
        agent's own lines.
        """
        leaf = self.last_uuid
        records = [record for record in self.records if isinstance(record, dict)]
        length = sum("uuid" in record for record in records)
        repeated = next(record for record in reversed(records) if record.get("type") == "assistant")
        agent = self.subagent(
            None, layout="nested", meta={"agentType": "fork", "isFork": True, "toolUseId": "toolu_fork"}
        )
        agent.fork_context(self.session_id, leaf, length=length)
        agent.linked_line(
            {"message": repeated["message"], "requestId": repeated["requestId"], "type": "assistant"}, {}
        )
        agent.user_line(f"<fork-boilerplate>You are a fork.</fork-boilerplate>\n{prompt}")
        return agent.assistant(answer)

    def spill(
        self, call: Call, full: str, *, name: str | None = None, home: str = "/home/zoe/.claude"
    ) -> Self:
        """Add a tool result that is too long for its line and is stored in a side file (2.1.2)."""
        id_ = call.id or self.new_id("toolu")
        file = f"{name or id_}.txt"
        self.files[f"{self.folder}/tool-results/{file}"] = full.encode()
        path = f"{home}/{self.folder}/tool-results/{file}"
        content = (
            f"<persisted-output>\nOutput too large ({len(full) / 1024:.1f}KB). "
            f"Full output saved to: {path}\n\n"
            f"Preview (first 2KB):\n{full[:_PREVIEW_CHARS]}\n...\n</persisted-output>"
        )
        structured = call.tool_use_result
        if isinstance(structured, dict):
            structured = {
                **structured,
                "stdout": full[:_PREVIEW_CHARS],
                "persistedOutputPath": path,
                "persistedOutputSize": len(full),
            }
        return self.run(replace(call, id=id_, content=content, tool_use_result=structured))

    def back_up_file(self, path: str, content: bytes | None, *, version: int = 1) -> tuple[str | None, int]:
        """Store a backup of a file before an edit. Return its name and version, for `snapshot`."""
        if content is None:
            return None, version
        name = f"{sha256(path.encode()).hexdigest()[:16]}@v{version}"
        self.files[f"file-history/{self.session_id}/{name}"] = content
        return name, version

    def new_agent_id(self) -> str:
        """Return an agent id: seven hex digits in 2.0, seventeen since 2.1."""
        digits = 16 if self.release.is_at_least("2.1.0") else 6
        return f"a{self.random.getrandbits(digits * 4):0{digits}x}"

    def _add_meta_file(
        self, agent: "Transcript", tool_id: str, description: str, agent_type: str, caller: "Transcript"
    ) -> None:
        """Add the metadata file of a subagent. Later versions write more fields."""
        if not self.release.is_at_least("2.1.63"):
            return
        meta: dict[str, Any] = {"agentType": agent_type}
        if self.release.is_at_least("2.1.118"):
            meta["description"] = description
        if self.release.is_at_least("2.1.207"):
            meta |= {
                "toolUseId": tool_id,
                "model": self.release.model,
                "spawnDepth": 1 if caller is self else 2,
            }
        if self.release.is_at_least("2.1.172") and caller is not self:
            meta["parentAgentId"] = caller.agent_id
        path = agent._relative_path.removesuffix(".jsonl") + ".meta.json"
        agent.files[path] = json.dumps(meta, separators=(",", ":")).encode()


def _add_work(agent: Transcript, calls: Sequence[Call], answer: str) -> None:
    for call in calls:
        agent.run(call)
    agent.assistant(answer)


def _outcome(prompt: str, answer: str, call_count: int, agent_id: str | None) -> dict[str, Any]:
    out: dict[str, Any] = {"status": "completed", "prompt": prompt}
    if agent_id is not None:
        out["agentId"] = agent_id
    out |= {
        "content": [text(answer)],
        "totalDurationMs": 4200,
        "totalTokens": 5120,
        "totalToolUseCount": call_count,
    }
    return out | {"usage": {"input_tokens": 12, "output_tokens": 108}}
