"""Events as the tools pass them to hooks. Tests write them to a spool."""

import json
import secrets
import time
from pathlib import Path
from typing import Any

CLAUDE_SESSION = "7308a023-9d8f-4c34-8da7-1c4f6a764609"
CURSOR_SESSION = "f4fc9a97-5b1c-4f0e-9a59-2f0c3d1e7b64"


def claude_event(name: str, session: str = CLAUDE_SESSION, **fields: Any) -> dict[str, Any]:
    """Return an event of Claude Code 2.1.325."""
    return {
        "session_id": session,
        "transcript_path": f"/home/zoe/.claude/projects/-home-zoe-tideline/{session}.jsonl",
        "cwd": "/home/zoe/tideline",
        "hook_event_name": name,
        **fields,
    }


def cursor_event(
    name: str, session: str = CURSOR_SESSION, generation: str = "23ca0cff", **fields: Any
) -> dict[str, Any]:
    """Return an event of Cursor, as documented in August 2026."""
    return {
        "conversation_id": session,
        "generation_id": generation,
        "model": "default",
        "hook_event_name": name,
        "cursor_version": "3.2.11",
        "workspace_roots": ["/home/zoe/website"],
        "user_email": "zoe@example.org",
        "transcript_path": None,
        **fields,
    }


def write_record(spool: Path, payload: dict[str, Any], *, at: int | None = None) -> None:
    """Append an event to a spool as the hook program does, but with a time of choice in milliseconds."""
    write_line(spool, json.dumps(payload).encode(), at=at)


def write_line(spool: Path, payload: bytes, *, at: int | None = None) -> None:
    """Append an event of which the payload may be anything."""
    spool.mkdir(parents=True, exist_ok=True)
    when = time.time_ns() // 1_000_000 if at is None else at
    with (spool / "events.jsonl").open("ab") as file:
        file.write(b'\n{"id":"%b","at":%d,"payload":%b}\n' % (secrets.token_hex(12).encode(), when, payload))
