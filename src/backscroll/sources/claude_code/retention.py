"""Claude Code deletes transcripts that nobody touched for thirty days, unless its settings say otherwise."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

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
    return Retention(
        days=days if days is not None else _DEFAULT_DAYS,
        is_default=days is None,
        settings=str(path),
        expiring=tuple(unit.session_id or unit.path for unit in expiring),
        diff=_change(path, days),
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


def _change(path: Path, days: int | None) -> str:
    """The one line to change. The rest of the file is nobody's business: it may hold keys."""
    lines = [f"--- {path}", f"+++ {path}"]
    if days is not None:
        lines.append(f'-  "{_KEY}": {days},')
    lines.append(f'+  "{_KEY}": {_LONG},')
    return "\n".join(lines) + "\n"
