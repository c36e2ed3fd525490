"""Hooks of Cursor: the settings file that registers them, and the events that they report."""

from backscroll.config import Machine
from backscroll.model.hooks import HookFile

__all__ = ["hook_file"]

# All known to version 1.7, the first with hooks. The command line ignores the whole file if it contains an
# event that it does not know.
_EVENTS = ("beforeSubmitPrompt", "afterFileEdit", "stop")


def hook_file(machine: Machine) -> HookFile:
    """Return the user's hooks file. The editor and the command line share it."""
    return HookFile(
        title="Cursor",
        path=machine.home / ".cursor" / "hooks.json",
        events=_EVENTS,
        entry={"timeout": 5},
        fields={"version": 1},  # without it, version 3 loads no hook
    )
