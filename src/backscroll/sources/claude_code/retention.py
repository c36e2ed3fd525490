"""deletes everything, as versions before 2.1.89 did. An invalid value means the default."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.sources.claude_code.folders import every_folder, remembered_sessions
from backscroll.sources.claude_code.settings import change, find

if TYPE_CHECKING:
    from backscroll.model import Retention

__all__ = ["retention"]

_DEFAULT_DAYS = 30
_RECOMMENDED_DAYS = 3650
_MAX_DAYS = 365_000  # days
_WARNING_PERIOD = timedelta(days=7)
_MAX_COUNT = 2**53
_KEY = "cleanupPeriodDays"


def retention(
    root: Path, now: datetime, fingerprints: Mapping[str, bytes | None] | None = None
) -> Retention | None:
    """Return what the tool will delete within a week, and the settings change that prevents it."""
    setting = find(root, _KEY)
    value = _days(setting.value) if setting.is_set else None
    days = value if value is not None else _DEFAULT_DAYS
    limit = int((now - timedelta(days=min(days, _MAX_DAYS)) + _WARNING_PERIOD).timestamp() * 1e9)
    if fingerprints is not None:
        expiring = list(remembered_sessions(str(root), fingerprints, limit))
    else:
        expiring = [session for folder in every_folder(str(root)) for session in folder.sessions(limit)]
    if not expiring:
        return None
    from backscroll.model import Retention

    return Retention(
        days=days,
        is_default=value is None,
        settings=str(setting.path),
        expiring=tuple(expiring),
        diff=change(setting, _KEY, _RECOMMENDED_DAYS),
        trouble=setting.error,
    )


def _days(value: object) -> int | None:
    """Return a setting as a number of days; None if it is not a count."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < _MAX_COUNT else None  # type: ignore[operator,call-overload]
