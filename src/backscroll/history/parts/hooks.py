"""Hooks of assistants and of git."""

from pathlib import Path

from backscroll import sources
from backscroll.config.settings_file import SettingsChange
from backscroll.errors import UsageError
from backscroll.history.stores import Stores
from backscroll.hooks.command_line import hook_command
from backscroll.hooks.tool_settings import hook_status, plan_install, plan_uninstall
from backscroll.model.hooks import HookFile, HookStatus
from backscroll.sources.protocols import HookSettings

__all__ = ["Hooks"]


class Hooks:
    """Commands that the tools and git run at certain events, so that Backscroll learns about them."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    @staticmethod
    def tools() -> tuple[str, ...]:
        """Return the names of the sources that have hooks."""
        return tuple(name for name in sources.names() if isinstance(sources.named(name), HookSettings))

    def title(self, tool: str) -> str:
        """Return the name of a tool for users."""
        return self._file(tool).title

    def plan_install(self, tool: str) -> SettingsChange:
        """Return the change of a tool's settings that registers the hooks.

        Raises `UsageError` if the settings cannot be parsed, or on Windows.
        """
        if self._stores.machine.system == "win32":
            raise UsageError(
                "Hooks of assistants are not supported on Windows. Every sync reads the same sessions without"
                " them."
            )
        return plan_install(self._file(tool), self._command)

    def plan_uninstall(self, tool: str) -> SettingsChange:
        """Return the change of a tool's settings that removes the hooks."""
        return plan_uninstall(self._file(tool))

    def status(self) -> list[HookStatus]:
        """Return the state of the hooks of every tool."""
        return [hook_status(tool, self._file(tool), self._command) for tool in self.tools()]

    @property
    def _command(self) -> str:
        return hook_command(self._stores.spool_path)

    def _file(self, tool: str) -> HookFile:
        source = sources.named(tool)
        if not isinstance(source, HookSettings):
            raise UsageError(f"{tool} has no hooks. The tools with hooks are {', '.join(self.tools())}.")
        return source.hook_file(self._stores.machine, self._given_root(tool))

    def _given_root(self, tool: str) -> Path | None:
        return next((root.path for root in self._stores.named_roots if root.source == tool), None)
