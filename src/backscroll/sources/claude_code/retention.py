"""Predict which sessions Claude Code deletes, from the setting ``cleanupPeriodDays``.

The default is 30 days after the last write. 0 means that everything is deleted, as in versions before 2.1.89.
An invalid value means the default. No other part of a settings file is returned or shown, because it can
contain secrets.
"""

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from backscroll.model.retention import WARNING_DAYS, Retention
from backscroll.sources.claude_code.locations import find_old_sessions, list_all_folders, project_rows

_DEFAULT_DAYS = 30
_RECOMMENDED_DAYS = 3650
_MAX_DAYS = 365_000  # larger values would overflow the date
_WARNING_PERIOD = timedelta(days=WARNING_DAYS)
_MAX_COUNT = 2**53
_KEY = "cleanupPeriodDays"

_MANAGED_PATHS = {
    "darwin": Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
    "win32": Path("C:/ProgramData/ClaudeCode/managed-settings.json"),
}
_DEFAULT_MANAGED_PATH = Path("/etc/claude-code/managed-settings.json")
_MISSING = object()


def retention(
    root: Path, now: datetime, fingerprints: Mapping[str, bytes | None] | None = None
) -> Retention | None:
    """Return the sessions that the tool deletes within `WARNING_DAYS`, and the change that prevents it."""
    setting = _find_setting(root, _KEY)
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
        diff=_make_diff(setting, _KEY, _RECOMMENDED_DAYS),
        trouble=setting.error,
    )


def retention_days(root: Path) -> int:
    """Return the age in days at which the tool deletes a file."""
    setting = _find_setting(root, _KEY)
    value = _as_days(setting.value) if setting.is_set else None
    return _DEFAULT_DAYS if value is None else min(value, _MAX_DAYS)


def _as_days(value: object) -> int | None:
    """Return a setting as a number of days; None if it is not a count."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < _MAX_COUNT else None  # type: ignore[operator,call-overload]


# Settings files


class _Setting(NamedTuple):
    """Value of the key in one file."""

    path: Path
    value: Any = None
    is_set: bool = False
    error: str | None = None  # why the file could not be parsed


def _find_setting(root: Path, key: str) -> _Setting:
    """Return the setting from the file that takes precedence: managed, then local, then user settings.

    If no file has the key, return the user's settings file without a value.
    """
    user = root / "settings.json"
    managed = _MANAGED_PATHS.get(sys.platform, _DEFAULT_MANAGED_PATH)
    found = [_read_setting(path, key) for path in (managed, root / "settings.local.json", user)]
    return next((setting for setting in found if setting.is_set), None) or found[-1]


def _read_setting(path: Path, key: str) -> _Setting:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return _Setting(path)
    except OSError as error:
        return _Setting(path, error=f"cannot be read: {error.strerror}")
    import json  # start-up time: most users have no such file

    try:
        document = json.loads(text, strict=False) if text.strip() else {}
    except (ValueError, RecursionError):
        return _Setting(path, error="is not JSON")
    if not isinstance(document, dict):
        return _Setting(path, error="is not a JSON object")
    value = document.get(key, _MISSING)
    return _Setting(path) if value is _MISSING else _Setting(path, value, is_set=True)


def _make_diff(setting: _Setting, key: str, value: int) -> str:
    """Return a diff without context lines that sets the key; empty if the file could not be parsed."""
    path = setting.path
    if setting.error is not None:
        return ""
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    if not text.strip():
        head = f"--- {path if path.exists() else '/dev/null'}\n+++ {path}\n@@ -0,0 +1,3 @@\n"
        return f'{head}+{{\n+  "{key}": {value}\n+}}\n'
    import json
    import re

    head = f"--- {path}\n+++ {path}\n"
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        if setting.is_set and (match := re.fullmatch(rf'(\s*"{key}"\s*:\s*)[^"{{\[,]*(,?\s*)', line)):
            return f"{head}@@ -{number} +{number} @@\n-{line}\n+{match[1]}{value}{match[2]}\n"
    if not setting.is_set and lines[0].strip() == "{":
        comma = "" if "".join(lines[1:]).strip() == "}" else ","
        return f'{head}@@ -1,0 +2 @@\n+  "{key}": {value}{comma}\n'
    # The key shares its line with other settings, which must not be shown.
    before = f'-  "{key}": {json.dumps(setting.value)}\n' if setting.is_set else ""
    return f'{head}{before}+  "{key}": {value}\n'
