"""MCP clients."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct


class McpClient(Struct, frozen=True):
    """A program that can use an MCP server, and its settings file."""

    name: str
    title: str
    settings: Path
    extra_fields: Mapping[str, str] = {}  # of the server's entry, besides command and args
