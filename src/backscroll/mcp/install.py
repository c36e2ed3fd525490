"""Where clients keep which servers they start, and how this one is put there and taken out."""

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from backscroll.config import Machine
from backscroll.errors import DestinationError, UsageError
from backscroll.mcp.jsonc import NotJsonError, decoded, with_member, without_member

__all__ = ["CLIENTS", "Change", "Client", "entry_of", "installation", "removal"]

_GROUP = "mcpServers"
_NAME = "backscroll"


class Client(Struct, frozen=True):
    """A program that starts servers, and the file that says which."""

    title: str
    settings: Callable[[Machine], Path]
    more: Mapping[str, str] = {}  # what it wants beside command and arguments


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


class Change(Struct, frozen=True):
    """What would become of a settings file."""

    path: Path
    before: bytes | None  # None when there is no file yet
    after: bytes

    @property
    def is_needed(self) -> bool:
        return (self.before or b"") != self.after

    def diff(self) -> list[str]:
        """The change, line by line."""
        old, new = ((one or b"").decode("utf-8").splitlines() for one in (self.before, self.after))
        name = str(self.path)
        return list(
            difflib.unified_diff(old, new, name if self.before is not None else "nothing", name, lineterm="")
        )

    def make(self, now: datetime | None = None) -> Path | None:
        """Make the change, all of it or none, and keep what was there before beside it: that file's path.

        Raises `DestinationError` when the file has changed meanwhile, or cannot be written.
        """
        path = self.path.resolve()  # a link stays a link
        try:
            if _read(path) != self.before:
                raise DestinationError(f"{path} has just been changed by another program; try again", path)
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = None
            mode = 0o600
            if self.before is not None:
                mode = path.stat().st_mode & 0o777
                if not mode & 0o200:
                    raise DestinationError(f"{path} is write-protected, so it is left as it is", path)
                stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%S.%fZ")
                kept = path.with_name(f"{path.name}.before-backscroll-{stamp}")
                _write(kept, self.before, mode)
            fresh = path.with_name(f"{path.name}.backscroll-{os.getpid()}")
            _write(fresh, self.after, mode)
            fresh.replace(path)
        except OSError as error:
            raise DestinationError(f"{path} cannot be written: {error}", path) from error
        return kept


def entry_of(client: Client, command: Sequence[str]) -> dict[str, Any]:
    """What a client is told about the server."""
    first, *arguments = command
    return {**client.more, "command": first, "args": arguments}


def installation(client: Client, machine: Machine, command: Sequence[str]) -> Change:
    """The change that has a client start the server with this command."""
    return _change(client, machine, lambda text: with_member(text, _GROUP, _NAME, entry_of(client, command)))


def removal(client: Client, machine: Machine) -> Change:
    """The change that takes the server out."""
    return _change(client, machine, lambda text: without_member(text, _GROUP, _NAME))


def _change(client: Client, machine: Machine, edit: Callable[[str], str]) -> Change:
    path = client.settings(machine)
    try:
        before = _read(path)
        text = (before or b"").decode("utf-8")
        after = edit(text)
        if after.strip("\ufeff \t\r\n"):
            decoded(after)  # what cannot be read again is not written
    except (NotJsonError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be understood, so it is left as it is: {error}") from error
    except OSError as error:
        raise DestinationError(f"{path} cannot be read: {error}", path) from error
    return Change(path, before, after.encode("utf-8"))


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
