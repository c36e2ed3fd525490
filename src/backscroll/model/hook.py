"""Hooks: commands that a tool or git runs at certain events."""

from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field


class HookEvent(Struct, frozen=True, kw_only=True):
    """An event that a hook recorded, without large and private fields."""

    id: str
    at: datetime  # when the hook ran
    name: str  # as given by the tool
    payload: dict[str, Any]
    edits: tuple[dict[str, Any], ...] = ()  # path, kind, added and removed lines


class HookRecord(Struct, frozen=True, kw_only=True):
    """A record of the spool, before it is parsed."""

    id: str
    at: int  # milliseconds since 1970
    name: str  # of the event; "unreadable" if the record could not be parsed
    body: bytes  # JSON
    source: str | None = None
    platform: str | None = None
    session_id: str | None = None


class HookCommit(Struct, frozen=True, kw_only=True):
    """A commit that the git hook reported, or that a sync found."""

    repository: str  # path of the git folder that all worktrees share
    sha: str
    at: int  # milliseconds since 1970
    folder: str  # the worktree
    event: str  # "post-commit", "post-rewrite" or "found"
    session_id: str | None = None  # the session that made the commit, if its tool says so


class HookFile(Struct, frozen=True, kw_only=True):
    """Settings file in which a tool looks for hooks."""

    title: str  # of the tool
    path: Path
    events: tuple[str, ...]  # known to every version of the tool that has hooks
    entry: dict[str, Any]  # fields of an entry besides the command
    is_grouped: bool = False  # an event has groups of entries: [{"hooks": [entry]}]
    fields: dict[str, Any] = field(default_factory=dict)  # required in the file besides the hooks


class HookStatus(Struct, frozen=True, kw_only=True):
    """State of the hooks in one place."""

    target: str  # "claude-code", "cursor" or "git"
    path: str  # of the settings file, hooks folder or git configuration
    events: tuple[str, ...] = ()  # that run a command of Backscroll
    missing_events: tuple[str, ...] = ()  # that an installation would add
    command: str | None = None
    problems: tuple[str, ...] = ()  # why the hooks do not work as installed

    @property
    def is_installed(self) -> bool:
        return bool(self.events)


class SpoolStatus(Struct, frozen=True, kw_only=True):
    """Events that hooks have recorded."""

    path: str
    pending_bytes: int  # not ingested yet
    event_count: int = 0  # in the archive
    commit_count: int = 0  # reported by the git hook, or found by a sync
    unreadable_count: int = 0
    last_event_at: datetime | None = None
