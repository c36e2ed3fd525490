"""The files beside the transcripts: prompts, indexes, settings, tasks, plans, running processes."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from backscroll.testing.claude_code.blocks import encode
from backscroll.testing.claude_code.lines import START, stamp
from backscroll.testing.claude_code.transcript import Transcript

__all__ = [
    "Prompt",
    "write_desktop",
    "write_index",
    "write_live",
    "write_plan",
    "write_prompts",
    "write_settings",
    "write_stub",
    "write_tasks",
    "write_todos",
    "write_workflow",
]


@dataclass(frozen=True)
class Prompt:
    """A line of ``history.jsonl``: what was typed, where and when."""

    display: str
    at: datetime = START
    project: str = "/home/zoe/ferry"
    session_id: str | None = None  # not written before 2.1
    pasted: dict[str, dict[str, Any]] = field(default_factory=dict)


def write_prompts(root: Path, prompts: Iterable[Prompt]) -> Path:
    """Append to ``history.jsonl``."""
    path = root / "history.jsonl"
    before = path.read_bytes() if path.exists() else b""
    return _put(path, before + b"".join(encode(_prompt(one)) + b"\n" for one in prompts), START)


def write_index(root: Path, sessions: Sequence[Transcript]) -> Path:
    """The cache of 2.1.0 to 2.1.29 for sessions of one project, which must have been written."""
    entries = [_entry(root, session) for session in sessions]
    index = {"version": 1, "originalPath": sessions[0].cwd, "entries": entries}
    return _put(root / "projects" / sessions[0].key / "sessions-index.json", encode(index), sessions[-1].now)


def write_live(
    root: Path, session: Transcript, pid: int, *, started: str = "20095994", status: str | None = "busy"
) -> Path:
    """The registry entry of a running process (2.1.139); an SDK session has no status."""
    at = int(session.now.timestamp() * 1000)
    entry: dict[str, Any] = {
        "pid": pid,
        "sessionId": session.session_id,
        "cwd": session.cwd,
        "startedAt": at - 5000,
        "procStart": started,
        "version": session.version,
        "kind": "interactive",
        "entrypoint": session.entrypoint,
        "name": session.cwd.rpartition("/")[2],
    }
    if status is not None:
        entry |= {"status": status, "statusUpdatedAt": at}
    return _put(root / "sessions" / f"{pid}.json", encode(entry), session.now)


def write_settings(root: Path, *, cleanup_days: int | None = None, **settings: Any) -> Path:
    """The user's settings, with the days after which Claude Code deletes."""
    if cleanup_days is not None:
        settings["cleanupPeriodDays"] = cleanup_days
    return _put(root / "settings.json", json.dumps(settings, indent=2).encode(), START)


def write_todos(
    root: Path, session: Transcript, todos: Sequence[tuple[str, str]], *, old: bool = False
) -> Path:
    """The todo list of before 2.1.16; ``old`` is the form with priority and id."""
    items = [
        {"content": what, "status": status, "priority": "medium", "id": str(number)}
        if old
        else {"content": what, "status": status, "activeForm": f"Doing: {what}"}
        for number, (what, status) in enumerate(todos, 1)
    ]
    name = f"{session.session_id}-agent-{session.session_id}.json"
    return _put(root / "todos" / name, json.dumps(items).encode(), session.now)


def write_tasks(root: Path, session: Transcript, tasks: Sequence[tuple[str, str]]) -> Path:
    """The tasks of 2.1.16 and later, one file each; returns their folder."""
    folder = root / "tasks" / session.session_id
    for number, (subject, status) in enumerate(tasks, 1):
        task = {
            "id": str(number),
            "subject": subject,
            "description": f"{subject}, in full",
            "activeForm": f"Doing: {subject}",
            "status": status,
            "blocks": [],
            "blockedBy": [],
        }
        _put(folder / f"{number}.json", encode(task), session.now)
    _put(folder / ".lock", b"", session.now)
    _put(folder / ".highwatermark", str(len(tasks)).encode(), session.now)
    return folder


def write_plan(root: Path, session: Transcript, plan: str) -> Path:
    return _put(root / "plans" / f"{session.slug}.md", plan.encode(), session.now)


def write_workflow(root: Path, session: Transcript, run_id: str, agents: Sequence[Transcript]) -> Path:
    """A workflow's run record and its journal, neither of which is a conversation; returns the record."""
    folder = root / session.folder
    journal = b"".join(
        encode({"type": kind, "key": f"step{number}", "agentId": agent.agent_id, **said}) + b"\n"
        for number, agent in enumerate(agents)
        for kind, said in (("started", {}), ("result", {"result": "done"}))
    )
    _put(folder / "subagents" / "workflows" / run_id / "journal.jsonl", journal, session.now)
    progress = [
        {"type": "workflow_agent", "agentId": agent.agent_id, "label": f"step {number}", "state": "completed"}
        for number, agent in enumerate(agents)
    ]
    run = {
        "runId": run_id,
        "taskId": f"task_{run_id}",
        "status": "completed",
        "workflowName": "audit",
        "timestamp": stamp(session.now),
        "durationMs": 61_000,
        "agentCount": len(agents),
        "totalTokens": 9000,
        "totalToolCalls": 4,
        "defaultModel": session.era.model,
        "script": "await agent('look')",
        "summary": "Looked everywhere",
        "phases": [],
        "workflowProgress": [{"type": "workflow_phase", "label": "look"}, *progress],
    }
    return _put(folder / "workflows" / f"{run_id}.json", encode(run), session.now)


def write_stub(root: Path, session: Transcript, *, cwd: str) -> Path:
    """An empty file of a session's name under another project: the session itself is elsewhere."""
    elsewhere = Transcript(session.session_id, cwd=cwd)
    return _put(elsewhere.path(root), b"", session.now)


def write_desktop(
    folder: Path,
    session: Transcript,
    *,
    title: str | None,
    place: str = "claude-code-sessions",
    **fields: Any,
) -> Path:
    """What the desktop application notes of a session: no transcript, only where it is.

    ``fields`` are laid over the note as they are.
    """
    at = int(session.now.timestamp() * 1000)
    entry: dict[str, Any] = {
        "sessionId": f"local_{session.session_id}",
        "cliSessionId": session.session_id,
        "cwd": session.cwd,
        "originCwd": session.cwd,
        "createdAt": at - 60_000,
        "lastActivityAt": at,
        "model": session.era.model,
        "title": title,
        "isArchived": False,
    }
    beside = folder / place / "account" / "organisation"
    return _put(beside / f"local_{session.session_id}.json", encode(entry | fields), session.now)


def _prompt(prompt: Prompt) -> dict[str, Any]:
    line = {
        "display": prompt.display,
        "pastedContents": prompt.pasted,
        "timestamp": int(prompt.at.timestamp() * 1000),
        "project": prompt.project,
    }
    return line if prompt.session_id is None else line | {"sessionId": prompt.session_id}


def _entry(root: Path, session: Transcript) -> dict[str, Any]:
    times = [one["timestamp"] for one in session.records if isinstance(one, dict) and "timestamp" in one]
    return {
        "sessionId": session.session_id,
        "fullPath": str(session.path(Path("/home/zoe/.claude"))),
        "fileMtime": int(session.path(root).stat().st_mtime * 1000),
        "firstPrompt": session.prompts[0] if session.prompts else "No prompt",
        "summary": "Ferry DST",
        "messageCount": len(session.prompts) + len(session.replies),
        "created": min(times, default=stamp(session.now)),
        "modified": max(times, default=stamp(session.now)),
        "gitBranch": session.branch,
        "projectPath": session.cwd,
        "isSidechain": False,
    }


def _put(path: Path, content: bytes, at: datetime) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path
