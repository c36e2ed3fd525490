"""Add the server to a client's settings, or remove it."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from backscroll.config import Machine
from backscroll.errors import DestinationError, UsageError
from backscroll.mcp.jsonc import NotJsonError, parse, with_member, without_member

__all__ = ["CLIENTS", "Client", "SettingsChange", "plan_install", "plan_uninstall", "server_entry"]

_SERVERS_KEY = "mcpServers"
_SERVER_NAME = "backscroll"


class Client(Struct, frozen=True):
    """An MCP client and its settings file."""

    title: str
    settings: Callable[[Machine], Path]
    extra_fields: Mapping[str, str] = {}  # besides command and args


def _claude_code(machine: Machine) -> Path:
    return machine.folder("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"


def _cursor(machine: Machine) -> Path:
    return machine.home / ".cursor" / "mcp.json"


def _claude_desktop(machine: Machine) -> Path:
    if machine.system == "darwin":
        folder = machine.home / "Library" / "Application Support"
    elif machine.system == "win32":
        folder = machine.folder("APPDATA", machine.home / "AppData" / "Roaming")
    else:
        folder = machine.folder("XDG_CONFIG_HOME", machine.home / ".config")
    return folder / "Claude" / "claude_desktop_config.json"


CLIENTS = {
    "claude-code": Client("Claude Code", _claude_code, {"type": "stdio"}),
    "cursor": Client("Cursor", _cursor),
    "claude-desktop": Client("Claude Desktop", _claude_desktop),
}


class SettingsChange(Struct, frozen=True):
    """A change to a settings file."""

    path: Path
    before: bytes | None  # None if the file does not exist
    after: bytes
    lines: tuple[str, ...]  # added and removed lines, to show to the user

    @property
    def is_needed(self) -> bool:
        return (self.before or b"") != self.after

    def apply(self, now: datetime | None = None) -> Path | None:
        """Write the file atomically. Return the path of the backup, if there was a file before.

        Raise `DestinationError` if the file has changed in the meantime or cannot be written.
        """
        path = self.path.resolve()  # a link stays a link
        try:
            if _read(path) != self.before:
                raise DestinationError(f"{path} was changed by another program. Try again", path)
            path.parent.mkdir(parents=True, exist_ok=True)
            backup = None
            mode = 0o600
            if self.before is not None:
                mode = path.stat().st_mode & 0o777
                if not mode & 0o200:
                    raise DestinationError(f"{path} is write-protected and was not changed", path)
                stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%S.%fZ")
                backup = path.with_name(f"{path.name}.before-backscroll-{stamp}")
                _write(backup, self.before, mode)
            temporary = path.with_name(f"{path.name}.backscroll-{os.getpid()}")
            _write(temporary, self.after, mode)
            temporary.replace(path)
        except OSError as error:
            raise DestinationError(f"Cannot write {path}: {error}", path) from error
        return backup


def server_entry(client: Client, command: Sequence[str]) -> dict[str, Any]:
    """Return the server's entry in a client's settings."""
    program, *arguments = command
    return {**client.extra_fields, "command": program, "args": arguments}


def plan_install(client: Client, machine: Machine, command: Sequence[str]) -> SettingsChange:
    """Return the change that adds the server to a client's settings."""
    entry = server_entry(client, command)
    return _plan(client, machine, lambda text: with_member(text, _SERVERS_KEY, _SERVER_NAME, entry))


def plan_uninstall(client: Client, machine: Machine) -> SettingsChange:
    """Return the change that removes the server from a client's settings."""
    return _plan(client, machine, lambda text: without_member(text, _SERVERS_KEY, _SERVER_NAME))


def _plan(client: Client, machine: Machine, edit: Callable[[str], str]) -> SettingsChange:
    path = client.settings(machine)
    try:
        before = _read(path)
        text = (before or b"").decode("utf-8")
        after = edit(text)
        # The new text is parsed, so that an invalid file is never written.
        lines = _changed_lines(_server_fields(text), _server_fields(after))
    except (NotJsonError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"Cannot parse {path}, so it was not changed: {error}") from error
    except OSError as error:
        raise DestinationError(f"Cannot read {path}: {error}", path) from error
    return SettingsChange(path, before, after.encode("utf-8"), lines)


def _server_fields(text: str) -> dict[str, Any] | None:
    """Return the fields of the server's entry in the settings; None if there is no entry."""
    servers = parse(text).get(_SERVERS_KEY)
    entry = servers.get(_SERVER_NAME) if isinstance(servers, dict) else None
    return entry if isinstance(entry, dict) or entry is None else {}


def _changed_lines(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the change to the server's entry as lines that start with ``+`` or ``-``.

    The rest of the file and old values are not shown: they may contain keys.
    """
    name = json.dumps(_SERVER_NAME)
    if after is None:
        return (f"- {name}: {{…}}",) if before is not None else ()
    old = before or {}
    lines: list[str] = []
    for key, value in after.items():
        if key in old and old[key] == value:
            continue
        if key in old:
            lines.append(f"-   {json.dumps(key)}: …")
        lines.append(f"+   {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    if not lines:
        return ()
    mark = "+" if before is None else " "
    return (f"{mark} {name}: {{", *lines, f"{mark} }}")


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, content: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
