"""Add the server to a client's settings, or remove it."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backscroll.config.jsonc import parse, with_member, without_member
from backscroll.config.settings_file import SettingsChange, plan_change
from backscroll.model.mcp_client import McpClient

_SERVERS_KEY = "mcpServers"
_SERVER_NAME = "backscroll"
_HTTP_FIELDS = ("type", "url", "headers", "headersHelper", "oauth")  # of an entry for a server over HTTP


def server_entry(client: McpClient, command: Sequence[str]) -> dict[str, Any]:
    """Return the server's entry in a client's settings."""
    program, *arguments = command
    return {**client.extra_fields, "command": program, "args": arguments}


def plan_install(client: McpClient, command: Sequence[str]) -> SettingsChange:
    """Return the change that adds the server to a client's settings."""
    entry = server_entry(client, command)
    return _plan(
        client,
        lambda text: with_member(text, _SERVERS_KEY, _SERVER_NAME, entry, obsolete=_HTTP_FIELDS),
    )


def plan_uninstall(client: McpClient) -> SettingsChange:
    """Return the change that removes the server from a client's settings."""
    return _plan(client, lambda text: without_member(text, _SERVERS_KEY, _SERVER_NAME))


def _plan(client: McpClient, edit: Callable[[str], str]) -> SettingsChange:
    return plan_change(
        client.settings,
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
