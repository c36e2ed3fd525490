"""Read one key from Claude Code's settings files, and build a diff that sets it.

No other part of a file is returned or shown, because it can contain secrets.
"""

import sys
from pathlib import Path
from typing import Any

from backscroll.model.value import Value

__all__ = ["Setting", "find_setting", "make_diff"]

_MANAGED_PATHS = {
    "darwin": Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
    "win32": Path("C:/ProgramData/ClaudeCode/managed-settings.json"),
}
_DEFAULT_MANAGED_PATH = Path("/etc/claude-code/managed-settings.json")
_MISSING = object()


class Setting(Value):
    """Value of the key in one file."""

    path: Path
    value: Any = None
    is_set: bool = False
    error: str | None = None  # why the file could not be parsed


def find_setting(root: Path, key: str) -> Setting:
    """Return the setting from the file that takes precedence: managed, then local, then user settings.

    If no file has the key, return the user's settings file without a value.
    """
    user = root / "settings.json"
    managed = _MANAGED_PATHS.get(sys.platform, _DEFAULT_MANAGED_PATH)
    found = [_read(path, key) for path in (managed, root / "settings.local.json", user)]
    return next((setting for setting in found if setting.is_set), None) or found[-1]


def _read(path: Path, key: str) -> Setting:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return Setting(path)
    except OSError as error:
        return Setting(path, error=f"cannot be read: {error.strerror}")
    import json  # start-up time: most users have no such file

    try:
        document = json.loads(text, strict=False) if text.strip() else {}
    except (ValueError, RecursionError):
        return Setting(path, error="is not JSON")
    if not isinstance(document, dict):
        return Setting(path, error="is not a JSON object")
    value = document.get(key, _MISSING)
    return Setting(path) if value is _MISSING else Setting(path, value, is_set=True)


def make_diff(setting: Setting, key: str, value: int) -> str:
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
