"""Add the server to a client's settings, or remove it."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from backscroll.config import Machine
from backscroll.config.jsonc import parse, with_member, without_member
from backscroll.config.settings_file import SettingsChange, plan_change

__all__ = ["CLIENTS", "Client", "plan_install", "plan_uninstall", "server_entry"]

_SERVERS_KEY = "mcpServers"
_SERVER_NAME = "backscroll"
_HTTP_FIELDS = ("type", "url", "headers", "headersHelper", "oauth")  # of an entry for a server over HTTP


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


def server_entry(client: Client, command: Sequence[str]) -> dict[str, Any]:
    """Return the server's entry in a client's settings."""
    program, *arguments = command
    return {**client.extra_fields, "command": program, "args": arguments}


def plan_install(client: Client, machine: Machine, command: Sequence[str]) -> SettingsChange:
    """Return the change that adds the server to a client's settings."""
    entry = server_entry(client, command)
    return _plan(
        client,
        machine,
        lambda text: with_member(text, _SERVERS_KEY, _SERVER_NAME, entry, obsolete=_HTTP_FIELDS),
    )


def plan_uninstall(client: Client, machine: Machine) -> SettingsChange:
    """Return the change that removes the server from a client's settings."""
    return _plan(client, machine, lambda text: without_member(text, _SERVERS_KEY, _SERVER_NAME))


def _plan(client: Client, machine: Machine, edit: Callable[[str], str]) -> SettingsChange:
    return plan_change(
        client.settings(machine),
        edit,
        lambda before, after: _changed_lines(_server_fields(before), _server_fields(after)),
    )


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
    lines += [f"-   {json.dumps(key)}: …" for key in old if key not in after]
    if not lines:
        return ()
    mark = "+" if before is None else " "
    return (f"{mark} {name}: {{", *lines, f"{mark} }}")
