"""Hooks of Claude Code: the settings file that registers them, and the events that they report."""

from pathlib import Path

from backscroll.config import Machine
from backscroll.model.hooks import HookFile
from backscroll.sources.claude_code.locations import roots

__all__ = ["hook_file"]

# All known to version 1.0.69. Versions before 2.1 ignore the whole settings file, permissions included, if it
# contains an event that they do not know. PreToolUse is not registered: the transcript contains every call.
_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PostToolUse",
    "Notification",
    "Stop",
    "SubagentStop",
    "PreCompact",
)


def hook_file(machine: Machine, root: Path | None) -> HookFile:
    """Return the user's settings file, below the first root unless another one is given."""
    return HookFile(
        title="Claude Code",
        path=(root or roots(machine)[0]) / "settings.json",
        events=_EVENTS,
        entry={"type": "command", "timeout": 5},  # seconds; another type than a number voids the file
        is_grouped=True,
    )
