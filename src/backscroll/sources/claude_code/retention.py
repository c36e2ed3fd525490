"""Claude Code deletes transcripts that nobody touched for thirty days, unless its settings say otherwise."""

from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from pathlib import Path
from typing import Any

import msgspec

from backscroll.model import Retention
from backscroll.readers import lenient
from backscroll.sources.claude_code.lines import integer
from backscroll.sources.claude_code.places import units

__all__ = ["retention"]

_DEFAULT_DAYS = 30
_LONG = 3650
_SOON = timedelta(days=7)
_KEY = "cleanupPeriodDays"


def retention(root: Path, now: datetime) -> Retention | None:
    """What the program will delete within a week, and the change of settings that would keep it."""
    path = root / "settings.json"
    before = _text(path)
    days = integer(_settings(before).get(_KEY))
    limit = now - timedelta(days=days if days is not None else _DEFAULT_DAYS) + _SOON
    expiring = [unit for unit in units(root) if unit.kind == "session" and _modified(unit.path) < limit]
    if not expiring:
        return None
    after = _changed(before)
    diff = unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), str(path), str(path), n=2
    )
    return Retention(
        days=days if days is not None else _DEFAULT_DAYS,
        is_default=days is None,
        settings=str(path),
        expiring=tuple(unit.session_id or unit.path for unit in expiring),
        diff="".join(line if line.endswith("\n") else f"{line}\n" for line in diff),
    )


def _modified(path: str) -> datetime:
    try:
        return datetime.fromtimestamp(Path(path).stat().st_mtime, UTC)
    except OSError:
        return datetime.max.replace(tzinfo=UTC)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _settings(text: str) -> dict[str, Any]:
    try:
        found = lenient.load(text)
    except lenient.FAILURES:
        return {}
    return found if isinstance(found, dict) else {}


def _changed(before: str) -> str:
    """The settings with a long period, everything else as it was."""
    settings = _settings(before) | {_KEY: _LONG}
    return msgspec.json.format(msgspec.json.encode(settings), indent=2).decode() + "\n"
