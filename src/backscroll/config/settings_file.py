"""Change the settings file of another program, with a backup."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from backscroll.config.jsonc import NotJsonError
from backscroll.errors import DestinationError, UsageError

_BACKUP_SUFFIX = ".before-backscroll-"


class SettingsChange(Struct, frozen=True):
    """A change to a settings file."""

    path: Path
    before: bytes | None  # None if the file does not exist
    after: bytes | None  # None to delete the file
    lines: tuple[str, ...]  # added and removed lines, to show to the user

    @property
    def is_needed(self) -> bool:
        return (self.before or b"") != (self.after or b"")

    def apply(self, now: datetime | None = None) -> Path | None:
        """Write the file atomically. Return the path of the backup, if there was a file before.

        Raise `DestinationError` if the file has changed in the meantime or cannot be written.
        """
        path = self.path.resolve()  # a link stays a link
        try:
            if read_settings(path) != self.before:
                raise DestinationError(f"{path} was changed by another program. Try again", path)
            path.parent.mkdir(parents=True, exist_ok=True)
            backup = None
            mode = 0o600
            if self.before is not None:
                mode = path.stat().st_mode & 0o777
                if not mode & 0o200:
                    raise DestinationError(f"{path} is write-protected and was not changed", path)
                stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%S.%fZ")
                backup = path.with_name(f"{path.name}{_BACKUP_SUFFIX}{stamp}")
                _write(backup, self.before, mode)
            if self.after is None:
                path.unlink(missing_ok=True)
                return backup
            temporary = path.with_name(f"{path.name}.backscroll-{os.getpid()}")
            _write(temporary, self.after, mode)
            temporary.replace(path)
        except OSError as error:
            raise DestinationError(f"Cannot write {path}: {error}", path) from error
        return backup


def plan_change(
    path: Path, edit: Callable[[str], str], describe: Callable[[str, str], tuple[str, ...]]
) -> SettingsChange:
    """Return the change that ``edit`` makes to a settings file. ``describe`` returns the lines to show.

    Both parse the text, so that an invalid file is neither changed nor written. Raises `UsageError` if it is
    invalid, or `DestinationError` if it cannot be read.
    """
    try:
        before = read_settings(path)
        text = (before or b"").decode("utf-8")
        after = edit(text)
        lines = describe(text, after)
    except (NotJsonError, ValueError, RecursionError) as error:
        raise UsageError(f"Cannot parse {path}, so it was not changed: {error}") from error
    except OSError as error:
        raise DestinationError(f"Cannot read {path}: {error}", path) from error
    return SettingsChange(path, before, after.encode("utf-8"), lines)


def read_settings(path: Path) -> bytes | None:
    """Return the content of a settings file; None if it does not exist."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def backups_of(path: Path) -> list[Path]:
    """Return the backups of a settings file that `SettingsChange.apply` wrote, newest first."""
    path = path.resolve()
    return sorted(path.parent.glob(f"{path.name}{_BACKUP_SUFFIX}*"), reverse=True)


def _write(path: Path, content: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
