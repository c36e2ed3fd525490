"""Parse state lines: title, working folder, tracked files and cost of a session.

They are not part of the conversation. Types are repeated in a file; the last line of a type is valid.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from backscroll.model.stream import ReportedState, ReportedTotals, TrackedFile
from backscroll.readers import timestamps
from backscroll.sources.claude_code.transcript.line_structs import (
    ForkedFrom,
    Line,
    as_cost,
    as_count,
    as_text,
)

_MAX_COST_STATES = 1000
_MAX_ROUNDING_USD = 1e-6


class CostState(Struct, array_like=True):
    """Usage of a session up to one line, as the tool reports it."""

    started_at: datetime | None
    at: datetime | None  # of the last line with a time before it
    models: dict[str, tuple[int, float]]  # tokens and dollars; "" for dollars without a model


class Facts(Struct):
    """Facts about a session from the lines of one file. Encoded by name in checkpoints."""

    custom_title: str | None = None
    ai_title: str | None = None
    agent_name: str | None = None
    tag: str | None = None
    last_prompt: str | None = None
    mode: str | None = None
    permission_mode: str | None = None
    agent_setting: str | None = None
    relocated_cwd: str | None = None
    worktree: dict[str, str] | None = None
    cost: dict[str, Any] | None = None
    cost_states: list[CostState] = field(default_factory=list)
    continued_in: str | None = None
    ended_by_model: bool = False
    forked_from: str | None = None
    fork_parent: str | None = None
    fork_point: str | None = None
    teleported_from: str | None = None
    pull_requests: dict[str, str] = field(default_factory=dict)
    frames: dict[str, str] = field(default_factory=dict)
    files: dict[str, TrackedFile] = field(default_factory=dict)
    cwds: dict[str, None] = field(default_factory=dict)  # in order of appearance
    last_cwd: str | None = None
    branch: str | None = None
    version: str | None = None
    last_version: str | None = None
    entrypoint: str | None = None
    session_kind: str | None = None
    slug: str | None = None
    session_ids: dict[str, int | None] = field(default_factory=dict)  # a dict as an ordered set
    first_at: datetime | None = None
    last_at: datetime | None = None
    compactions: int = 0

    def update(self, value: Line) -> None:
        """Store the session id, version, folder, branch and similar fields of a line."""
        session_id = value.session_id
        if isinstance(session_id, str) and session_id not in self.session_ids:
            self.session_ids[session_id] = None
        cwd = value.cwd
        if cwd != self.last_cwd and isinstance(cwd, str) and cwd:
            self.last_cwd = cwd
            if cwd not in self.cwds:
                self.cwds[cwd] = None
        version = value.version
        if version != self.last_version and isinstance(version, str):
            self.last_version = version
            if self.version is None:
                self.version = version
        if self.branch is None and value.git_branch is not None:
            self.branch = branch_name(value.git_branch)
        if value.entrypoint is not None and self.entrypoint is None:
            self.entrypoint = as_text(value.entrypoint)
        if value.slug is not None and self.slug is None:
            self.slug = as_text(value.slug)
        if value.session_kind is not None and self.session_kind is None:
            self.session_kind = as_text(value.session_kind)
        forked_from = value.forked_from
        if forked_from is not None and self.forked_from is None and isinstance(forked_from, ForkedFrom):
            self.forked_from = as_text(forked_from.session_id)

    @property
    def title(self) -> tuple[str | None, str | None]:
        """Return the title of the session, and the type of the line that contains it."""
        if self.custom_title:
            return self.custom_title, "custom-title"
        if self.ai_title:
            return self.ai_title, "ai-title"
        if self.agent_name:
            return self.agent_name, "agent-name"
        return None, None

    def metadata(self) -> dict[str, Any]:
        """Return the facts that are set and have no field in the model."""
        found = {
            "tag": self.tag or None,
            "mode": self.mode,
            "permission_mode": self.permission_mode,
            "agent_setting": self.agent_setting,
            "worktree": self.worktree,
            "reported_cost": self.cost,
            "continued_in": self.continued_in,
            "ended_by_model": self.ended_by_model or None,
            "forked_from": self.forked_from or self.fork_parent,
            "fork_point": self.fork_point,
            "teleported_from": self.teleported_from,
            "pull_requests": list(self.pull_requests) or None,
            "frames": self.frames or None,
            "entrypoint": self.entrypoint,
            "session_kind": self.session_kind,
            "slug": self.slug,
            "last_version": self.last_version if self.last_version != self.version else None,
            "compactions": self.compactions or None,
            "last_prompt": self.last_prompt,
        }
        return {name: value for name, value in found.items() if value is not None}


def reported_totals(facts: Facts) -> ReportedTotals:
    """Return the totals that the tool reports."""
    return ReportedTotals(
        tuple(
            ReportedState(
                state.started_at, state.at, {name or None: counts for name, counts in state.models.items()}
            )
            for state in facts.cost_states
        )
    )


def branch_name(value: Any) -> str | None:
    """Return the branch of a line. Since 2.1.105, "HEAD" means no repository or a detached head."""
    return as_text(value) if value != "HEAD" else None


def _text_setter(attribute: str, key: str) -> Callable[[Facts, dict[str, Any]], None]:
    """Return a handler that copies a text field of the record to an attribute."""

    def set_text(facts: Facts, record: dict[str, Any]) -> None:
        value = record.get(key)
        if isinstance(value, str):
            setattr(facts, attribute, value)

    return set_text


def _add_pull_request(facts: Facts, record: dict[str, Any]) -> None:
    if url := as_text(record.get("prUrl")):
        facts.pull_requests[url] = as_text(record.get("prRepository")) or ""


def _add_frame(facts: Facts, record: dict[str, Any]) -> None:
    if url := as_text(record.get("frameUrl")):
        facts.frames[url] = as_text(record.get("title")) or ""


def _set_worktree(facts: Facts, record: dict[str, Any]) -> None:
    session = record.get("worktreeSession")
    names = ("originalCwd", "worktreePath", "worktreeName", "worktreeBranch", "originalBranch")
    if isinstance(session, dict):
        facts.worktree = {name: session[name] for name in names if isinstance(session.get(name), str)}
    elif session is None:
        facts.worktree = None


def _set_cost(facts: Facts, record: dict[str, Any]) -> None:
    names = ("totalCostUSD", "totalDuration", "totalLinesAdded", "totalLinesRemoved", "hasUnknownModelCost")
    facts.cost = {name: record[name] for name in names if isinstance(record.get(name), float | bool)}
    counts = {name: as_count(record.get(name)) for name in names if name not in facts.cost}
    facts.cost |= {name: count for name, count in counts.items() if count is not None}
    _add_cost_state(facts, record)


def _add_cost_state(facts: Facts, record: dict[str, Any]) -> None:
    """Add the totals of a line, unless they are unchanged."""
    usage = record.get("modelUsage")
    models = {
        name: (_reported_tokens(entry), as_cost(entry.get("costUSD")) or 0.0)
        for name, entry in (usage.items() if isinstance(usage, dict) else ())
        if name and isinstance(entry, dict)
    }
    total = as_cost(record.get("totalCostUSD"))
    if total is None:
        return
    rest = total - sum(usd for _, usd in models.values())
    if not models or abs(rest) > _MAX_ROUNDING_USD:
        models[""] = (0, rest)
    states = facts.cost_states
    started_at = timestamps.from_value(record.get("startTime"))
    if states and states[-1].models == models and states[-1].started_at == started_at:
        return
    if len(states) == _MAX_COST_STATES:
        del states[1]  # the first one shows what a fork started with, the last one is the total
    states.append(CostState(started_at, facts.last_at, models))


def _reported_tokens(entry: dict[str, Any]) -> int:
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return sum(as_count(entry.get(name)) or 0 for name in names)


def _set_fork(facts: Facts, record: dict[str, Any]) -> None:
    facts.fork_parent = as_text(record.get("parentSessionId"))
    facts.fork_point = as_text(record.get("parentLastUuid"))


def _apply_snapshot(facts: Facts, record: dict[str, Any]) -> None:
    snapshot = record.get("snapshot")
    files = snapshot.get("trackedFileBackups") if isinstance(snapshot, dict) else None
    for path, backup in files.items() if isinstance(files, dict) else ():
        _track_file(facts, path, backup)


def _apply_delta(facts: Facts, record: dict[str, Any]) -> None:
    if path := as_text(record.get("trackingPath")):
        _track_file(facts, path, record.get("backup"))


def _track_file(facts: Facts, path: str, backup: Any) -> None:
    if not isinstance(backup, dict):
        return
    version = as_count(backup.get("version"))
    known = facts.files.get(path)
    if known is not None and (known.version or 0) > (version or 0):
        return
    facts.files[path] = TrackedFile(
        path, version, as_text(backup.get("backupFileName")), timestamps.from_value(backup.get("backupTime"))
    )


def _set_ended(facts: Facts, record: dict[str, Any]) -> None:
    facts.ended_by_model = True


STATE_HANDLERS: dict[str, Callable[[Facts, dict[str, Any]], None]] = {
    "custom-title": _text_setter("custom_title", "customTitle"),
    "ai-title": _text_setter("ai_title", "aiTitle"),
    "agent-name": _text_setter("agent_name", "agentName"),
    "agent-color": lambda facts, record: None,
    "agent-setting": _text_setter("agent_setting", "agentSetting"),
    "tag": _text_setter("tag", "tag"),
    "last-prompt": _text_setter("last_prompt", "lastPrompt"),
    "mode": _text_setter("mode", "mode"),
    "permission-mode": _text_setter("permission_mode", "permissionMode"),
    "relocated": _text_setter("relocated_cwd", "relocatedCwd"),
    "continued-in": _text_setter("continued_in", "continuedInSessionId"),
    "teleported-from": _text_setter("teleported_from", "remoteSessionId"),
    "file-history-snapshot": _apply_snapshot,
    "file-history-delta": _apply_delta,
    "pr-link": _add_pull_request,
    "frame-link": _add_frame,
    "worktree-state": _set_worktree,
    "cost-state": _set_cost,
    "fork-context-ref": _set_fork,
    "ended-by-model": _set_ended,
}


def apply_state_line(facts: Facts, kind: str, record: dict[str, Any]) -> bool:
    """Store the content of a state line. Return False if the type is unknown."""
    handle = STATE_HANDLERS.get(kind)
    if handle is not None:
        handle(facts, record)
    return handle is not None
