"""Files next to the transcripts: prompts, indexes, settings, tasks, plans, running processes."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from backscroll.testing.claude_code.blocks import encode
from backscroll.testing.claude_code.lines import START, format_time
from backscroll.testing.claude_code.transcript import Transcript


@dataclass(frozen=True)
class Prompt:
    """Line of ``history.jsonl``: a typed prompt with its time and project."""

    display: str
    at: datetime = START
    project: str = "/home/zoe/ferry"
    session_id: str | None = None  # versions before 2.1 do not store it
    pasted: dict[str, dict[str, Any]] = field(default_factory=dict)


def write_prompts(root: Path, prompts: Iterable[Prompt]) -> Path:
    """Append prompts to ``history.jsonl``."""
    path = root / "history.jsonl"
    before = path.read_bytes() if path.exists() else b""
    return _write_file(
        path, before + b"".join(encode(_prompt_line(prompt)) + b"\n" for prompt in prompts), START
    )


def write_session_index(root: Path, sessions: Sequence[Transcript]) -> Path:
    """Write the session index of a project (2.1.0 to 2.1.29). The transcripts must exist."""
    entries = [_index_entry(root, session) for session in sessions]
    index = {"version": 1, "originalPath": sessions[0].cwd, "entries": entries}
    return _write_file(
        root / "projects" / sessions[0].key / "sessions-index.json", encode(index), sessions[-1].now
    )


def write_running_process(
    root: Path, session: Transcript, pid: int, *, started: str = "20095994", status: str | None = "busy"
) -> Path:
    """Write the registry entry of a running process (2.1.139). An SDK session has no status."""
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
    return _write_file(root / "sessions" / f"{pid}.json", encode(entry), session.now)


def write_settings(root: Path, *, cleanup_days: int | None = None, **settings: Any) -> Path:
    """Write the user settings. Claude Code deletes sessions older than ``cleanup_days``."""
    if cleanup_days is not None:
        settings["cleanupPeriodDays"] = cleanup_days
    return _write_file(root / "settings.json", json.dumps(settings, indent=2).encode(), START)


def write_todos(
    root: Path, session: Transcript, todos: Sequence[tuple[str, str]], *, old: bool = False
) -> Path:
    """Write the todo list as versions before 2.1.16 did. ``old`` adds priority and id."""
    items = [
        {"content": content, "status": status, "priority": "medium", "id": str(number)}
        if old
        else {"content": content, "status": status, "activeForm": f"Doing: {content}"}
        for number, (content, status) in enumerate(todos, 1)
    ]
    name = f"{session.session_id}-agent-{session.session_id}.json"
    return _write_file(root / "todos" / name, json.dumps(items).encode(), session.now)


def write_tasks(root: Path, session: Transcript, tasks: Sequence[tuple[str, str]]) -> Path:
    """Write the tasks as 2.1.16 and later do, one file per task. Return their folder."""
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
        _write_file(folder / f"{number}.json", encode(task), session.now)
    _write_file(folder / ".lock", b"", session.now)
    _write_file(folder / ".highwatermark", str(len(tasks)).encode(), session.now)
    return folder


def write_plan(root: Path, session: Transcript, plan: str) -> Path:
    return _write_file(root / "plans" / f"{session.slug}.md", plan.encode(), session.now)


def write_workflow(root: Path, session: Transcript, run_id: str, agents: Sequence[Transcript]) -> Path:
    """Write the journal and the run record of a workflow. Return the path of the run record."""
    folder = root / session.folder
    journal = b"".join(
        encode({"type": kind, "key": f"step{number}", "agentId": agent.agent_id, **fields}) + b"\n"
        for number, agent in enumerate(agents)
        for kind, fields in (("started", {}), ("result", {"result": "done"}))
    )
    _write_file(folder / "subagents" / "workflows" / run_id / "journal.jsonl", journal, session.now)
    progress = [
        {"type": "workflow_agent", "agentId": agent.agent_id, "label": f"step {number}", "state": "completed"}
        for number, agent in enumerate(agents)
    ]
    run = {
        "runId": run_id,
        "taskId": f"task_{run_id}",
        "status": "completed",
        "workflowName": "audit",
        "timestamp": format_time(session.now),
        "durationMs": 61_000,
        "agentCount": len(agents),
        "totalTokens": 9000,
        "totalToolCalls": 4,
        "defaultModel": session.release.model,
        "script": "await agent('look')",
        "summary": "Looked everywhere",
        "phases": [],
        "workflowProgress": [{"type": "workflow_phase", "label": "look"}, *progress],
    }
    return _write_file(folder / "workflows" / f"{run_id}.json", encode(run), session.now)


def write_empty_stub(root: Path, session: Transcript, *, cwd: str) -> Path:
    """Write an empty file with the session's name in another project."""
    stub = Transcript(session.session_id, cwd=cwd)
    return _write_file(stub.path(root), b"", session.now)


def write_desktop_entry(
    folder: Path,
    session: Transcript,
    *,
    title: str | None,
    subfolder: str = "claude-code-sessions",
    **fields: Any,
) -> Path:
    """Write the desktop application's entry for a session. It does not contain the transcript.

    ``fields`` override the fields of the entry.
    """
    at = int(session.now.timestamp() * 1000)
    entry: dict[str, Any] = {
        "sessionId": f"local_{session.session_id}",
        "cliSessionId": session.session_id,
        "cwd": session.cwd,
        "originCwd": session.cwd,
        "createdAt": at - 60_000,
        "lastActivityAt": at,
        "model": session.release.model,
        "title": title,
        "isArchived": False,
    }
    account_folder = folder / subfolder / "account" / "organisation"
    return _write_file(
        account_folder / f"local_{session.session_id}.json", encode(entry | fields), session.now
    )


def _prompt_line(prompt: Prompt) -> dict[str, Any]:
    line = {
        "display": prompt.display,
        "pastedContents": prompt.pasted,
        "timestamp": int(prompt.at.timestamp() * 1000),
        "project": prompt.project,
    }
    return line if prompt.session_id is None else line | {"sessionId": prompt.session_id}


def _index_entry(root: Path, session: Transcript) -> dict[str, Any]:
    records = [record for record in session.records if isinstance(record, dict)]
    times = [record["timestamp"] for record in records if "timestamp" in record]
    return {
        "sessionId": session.session_id,
        "fullPath": str(session.path(Path("/home/zoe/.claude"))),
        "fileMtime": int(session.path(root).stat().st_mtime * 1000),
        "firstPrompt": session.prompts[0] if session.prompts else "No prompt",
        "summary": "Ferry DST",
        "messageCount": len(session.prompts) + len(session.replies),
        "created": min(times, default=format_time(session.now)),
        "modified": max(times, default=format_time(session.now)),
        "gitBranch": session.branch,
        "projectPath": session.cwd,
        "isSidechain": False,
    }


def _write_file(path: Path, content: bytes, at: datetime) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path
