"""Predict which sessions Claude Code deletes, from the setting ``cleanupPeriodDays``.

The default is 30 days after the last write. 0 means that everything is deleted, as in versions before 2.1.89.
An invalid value means the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from backscroll.model.sync import Retention
from backscroll.sources.claude_code.folders import find_old_sessions, list_all_folders, project_rows
from backscroll.sources.claude_code.settings import find_setting, make_diff

__all__ = ["retention", "retention_days"]

_DEFAULT_DAYS = 30
_RECOMMENDED_DAYS = 3650
_MAX_DAYS = 365_000  # larger values would overflow the date
_WARNING_PERIOD = timedelta(days=7)
_MAX_COUNT = 2**53
_KEY = "cleanupPeriodDays"


def retention(
    root: Path, now: datetime, fingerprints: Mapping[str, bytes | None] | None = None
) -> Retention | None:
    """Return the sessions that the tool deletes within a week, and the settings change that prevents it."""
    setting = find_setting(root, _KEY)
    value = _as_days(setting.value) if setting.is_set else None
    days = value if value is not None else _DEFAULT_DAYS
    limit_ns = int((now - timedelta(days=min(days, _MAX_DAYS)) + _WARNING_PERIOD).timestamp() * 1e9)
    if fingerprints is not None:
        rows = project_rows(str(root), fingerprints)
    else:
        rows = (folder.session_rows for folder in list_all_folders(str(root)))
    expiring = find_old_sessions(rows, limit_ns)
    if not expiring:
        return None
    return Retention(
        days=days,
        is_default=value is None,
        settings=str(setting.path),
        expiring=expiring,
        diff=make_diff(setting, _KEY, _RECOMMENDED_DAYS),
        trouble=setting.error,
    )


def retention_days(root: Path) -> int:
    """Return the age in days at which the tool deletes a file."""
    setting = find_setting(root, _KEY)
    value = _as_days(setting.value) if setting.is_set else None
    return _DEFAULT_DAYS if value is None else min(value, _MAX_DAYS)


def _as_days(value: object) -> int | None:
    """Return a setting as a number of days; None if it is not a count."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < _MAX_COUNT else None  # type: ignore[operator,call-overload]
