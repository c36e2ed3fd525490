"""Claude Code's settings files, looked at for one key; and the change of one that sets it.

Of the rest of a file nothing is told or shown: it may hold keys.
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Setting", "change", "find"]

_MANAGED = {
    "darwin": Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
    "win32": Path("C:/ProgramData/ClaudeCode/managed-settings.json"),
}
_MANAGED_ELSEWHERE = Path("/etc/claude-code/managed-settings.json")
_ABSENT = object()


class Setting(NamedTuple):
    """What one file says of the key."""

    path: Path
    value: Any = None
    is_said: bool = False
    error: str | None = None  # why it could not be understood


def find(root: Path, key: str) -> Setting:
    """The file that decides: the organisation's before the user's, and of the user's the local one first.

    When none says anything it is the user's, where it can be said.
    """
    user = root / "settings.json"
    managed = _MANAGED.get(sys.platform, _MANAGED_ELSEWHERE)
    found = [_read(path, key) for path in (managed, root / "settings.local.json", user)]
    return next((one for one in found if one.is_said), None) or found[-1]


def _read(path: Path, key: str) -> Setting:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return Setting(path)
    except OSError as error:
        return Setting(path, error=f"cannot be read: {error.strerror}")
    import json  # loaded by nobody who has no such file

    try:
        said = json.loads(text, strict=False) if text.strip() else {}
    except (ValueError, RecursionError):
        return Setting(path, error="is not JSON")
    if not isinstance(said, dict):
        return Setting(path, error="is not a JSON object")
    value = said.get(key, _ABSENT)
    return Setting(path) if value is _ABSENT else Setting(path, value, is_said=True)


def change(setting: Setting, key: str, value: int) -> str:
    """A diff that sets the key in this file, without a line of context; empty when nobody can say where."""
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
        # A line that holds nothing but the one setting.
        if setting.is_said and (match := re.fullmatch(rf'(\s*"{key}"\s*:\s*)[^"{{\[,]*(,?\s*)', line)):
            return f"{head}@@ -{number} +{number} @@\n-{line}\n+{match[1]}{value}{match[2]}\n"
    if not setting.is_said and lines[0].strip() == "{":
        comma = "" if "".join(lines[1:]).strip() == "}" else ","
        return f'{head}@@ -1,0 +2 @@\n+  "{key}": {value}{comma}\n'
    # All in one line: what else stands there is not shown.
    before = f'-  "{key}": {json.dumps(setting.value)}\n' if setting.is_said else ""
    return f'{head}{before}+  "{key}": {value}\n'
