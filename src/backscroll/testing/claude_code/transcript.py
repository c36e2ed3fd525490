"""One session's transcript with all that belongs to it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any, Self

from backscroll.testing.claude_code.blocks import text
from backscroll.testing.claude_code.events import Events
from backscroll.testing.claude_code.tool_calls import Call
from backscroll.testing.claude_code.versions import Layout

__all__ = ["Transcript"]

_PREVIEW = 2000


class Transcript(Events):
    """Write a session line by line, in the manner of a version.

    Every method writes and returns the transcript, so that calls can be joined;
    `write` puts it below a root. Keyword arguments that a method does not know
    become fields of the line.
    """

    @contextmanager
    def sidechain(self, prompt: str) -> Iterator[Self]:
        """A subagent inside the session's own file, as 1.0 wrote it; the session goes on afterwards."""
        before, self.leaf, self.is_sidechain = self.leaf, None, True
        self.wrapped(prompt)
        said = list(self.prompts), list(self.replies), list(self.tool_ids)
        yield self
        self.prompts, self.replies, self.tool_ids = said
        self.leaf, self.is_sidechain = before, False

    def subagent(
        self,
        prompt: str | None,
        *,
        agent_id: str | None = None,
        layout: Layout | None = None,
        under: str = "",
        meta: dict[str, Any] | None = None,
    ) -> "Transcript":
        """A subagent with a file of its own, written together with this session.

        ``under`` is a folder below ``subagents/``, such as ``workflows/wf_1``;
        ``meta`` becomes its sidecar. Without a prompt nothing is written yet.
        """
        id_ = agent_id or self.new_agent_id()
        flat = (layout or self.era.layout) == "flat"
        where = (
            f"projects/{self.key}" if flat else "/".join(filter(None, (f"{self.folder}/subagents", under)))
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
            place=f"{where}/agent-{id_}.jsonl",
        )
        if meta is not None:
            agent.files[f"{where}/agent-{id_}.meta.json"] = json.dumps(meta, separators=(",", ":")).encode()
        if prompt is not None:
            agent.wrapped(prompt)
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
        layout: Layout | None = None,
        nested: "Transcript | None" = None,
    ) -> Self:
        """Start a subagent, let it call tools and answer, and take its answer.

        Where it is written and how it is linked follow the version's habits.
        ``nested`` names the agent that gives the order instead of the session.
        """
        boss = nested or self
        layout = layout or self.era.layout
        put = {"description": description, "prompt": prompt, "subagent_type": agent_type}
        boss.assistant(tools=[Call(self.era.agent_tool, put)])
        tool_id = boss.tool_ids[-1]
        if layout == "inline":
            with boss.sidechain(prompt):
                _work(boss, calls, answer)
            boss.result(tool_id, [text(answer)], tool_use_result=_outcome(prompt, answer, len(calls), None))
            return self
        agent = self.subagent(prompt, layout=layout)
        agent.now = boss.now
        if layout == "nested":
            self._describe(agent, tool_id, description, agent_type, boss)
        if self.era.reached("2.1.0") and not self.era.reached("2.1.92"):
            boss.progress("agent_progress", parent_tool_id=tool_id, agentId=agent.agent_id, prompt=prompt)
        _work(agent, calls, answer)
        boss.now = agent.now
        rich = _outcome(prompt, answer, len(calls), agent.agent_id)
        boss.result(tool_id, [text(answer)], tool_use_result=rich)
        return self

    def fork_agent(self, order: str, answer: str) -> "Transcript":
        """A forked agent: a pointer to this session, its last response again, then its own work.

        Since 2.1.118.
        """
        leaf = self.last
        length = sum(isinstance(one, dict) and "uuid" in one for one in self.records)
        repeated = next(
            one for one in reversed(self.records) if isinstance(one, dict) and one.get("type") == "assistant"
        )
        agent = self.subagent(
            None, layout="nested", meta={"agentType": "fork", "isFork": True, "toolUseId": "toolu_fork"}
        )
        agent.fork_context(self.session_id, leaf, length=length)
        agent.chain(
            {"message": repeated["message"], "requestId": repeated["requestId"], "type": "assistant"}, {}
        )
        agent.wrapped(f"<fork-boilerplate>You are a fork.</fork-boilerplate>\n{order}")
        return agent.assistant(answer)

    def spill(
        self, call: Call, full: str, *, name: str | None = None, home: str = "/home/zoe/.claude"
    ) -> Self:
        """A tool result too long for its line, saved beside the session (2.1.2)."""
        id_ = call.id or self.new_id("toolu")
        file = f"{name or id_}.txt"
        self.files[f"{self.folder}/tool-results/{file}"] = full.encode()
        where = f"{home}/{self.folder}/tool-results/{file}"
        told = (
            f"<persisted-output>\nOutput too large ({len(full) / 1024:.1f}KB). "
            f"Full output saved to: {where}\n\n"
            f"Preview (first 2KB):\n{full[:_PREVIEW]}\n...\n</persisted-output>"
        )
        rich = call.rich
        if isinstance(rich, dict):
            rich = {
                **rich,
                "stdout": full[:_PREVIEW],
                "persistedOutputPath": where,
                "persistedOutputSize": len(full),
            }
        return self.run(replace(call, id=id_, content=told, rich=rich))

    def keep(self, path: str, content: bytes | None, *, version: int = 1) -> tuple[str | None, int]:
        """Keep a copy of a file before it is edited; gives what a snapshot says of it."""
        if content is None:
            return None, version
        name = f"{sha256(path.encode()).hexdigest()[:16]}@v{version}"
        self.files[f"file-history/{self.session_id}/{name}"] = content
        return name, version

    def new_agent_id(self) -> str:
        """Seven hex digits in 2.0, seventeen since 2.1."""
        digits = 16 if self.era.reached("2.1.0") else 6
        return f"a{self.random.getrandbits(digits * 4):0{digits}x}"

    def _describe(
        self, agent: "Transcript", tool_id: str, description: str, agent_type: str, boss: "Transcript"
    ) -> None:
        """The sidecar, which grew with the versions."""
        if not self.era.reached("2.1.63"):
            return
        meta: dict[str, Any] = {"agentType": agent_type}
        if self.era.reached("2.1.118"):
            meta["description"] = description
        if self.era.reached("2.1.207"):
            meta |= {"toolUseId": tool_id, "model": self.era.model, "spawnDepth": 1 if boss is self else 2}
        if self.era.reached("2.1.172") and boss is not self:
            meta["parentAgentId"] = boss.agent_id
        place = agent._place.removesuffix(".jsonl") + ".meta.json"
        agent.files[place] = json.dumps(meta, separators=(",", ":")).encode()


def _work(agent: Transcript, calls: Sequence[Call], answer: str) -> None:
    for call in calls:
        agent.run(call)
    agent.assistant(answer)


def _outcome(prompt: str, answer: str, calls: int, agent_id: str | None) -> dict[str, Any]:
    out: dict[str, Any] = {"status": "completed", "prompt": prompt}
    if agent_id is not None:
        out["agentId"] = agent_id
    out |= {
        "content": [text(answer)],
        "totalDurationMs": 4200,
        "totalTokens": 5120,
        "totalToolUseCount": calls,
    }
    return out | {"usage": {"input_tokens": 12, "output_tokens": 108}}
