"""Translate SQLite and decoding errors into `ArchiveError` with advice for the user."""

import sqlite3
import sys
from pathlib import Path

from backscroll.errors import ArchiveError

_MESSAGES = {
    sqlite3.SQLITE_FULL: "The disk of {path} is full. The archive is intact. Free some space and try again.",
    sqlite3.SQLITE_BUSY: "Another process is writing to the archive {path}. Try again when it has finished.",
    sqlite3.SQLITE_CORRUPT: "The archive {path} is damaged ({error}).",
    sqlite3.SQLITE_NOTADB: "{path} is not an archive ({error}).",
    sqlite3.SQLITE_READONLY: "The archive {path} is read-only. Check the permissions of the file and its"
    " folder.",
}
_RECOVER = "Run 'backscroll archive repair'. It keeps the damaged file and what can be read of it."
_HINTS = {
    sqlite3.SQLITE_CORRUPT: _RECOVER,
    sqlite3.SQLITE_NOTADB: _RECOVER,
    sqlite3.SQLITE_READONLY: "To use another folder, pass --home.",
}
# Errors of the code, not of the file.
_PROGRAMMING_ERRORS = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_RANGE,
)
_READABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY)


def decode_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that damaged bodies raise when they are decoded."""
    import struct  # loaded only after an error

    import msgspec

    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return zstd.ZstdError, msgspec.MsgspecError, UnicodeDecodeError, struct.error


def to_archive_error(error: BaseException, path: Path) -> ArchiveError:
    """Return the `ArchiveError` for an error of the archive's file."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return ArchiveError(
            f"{error.filename} is not a folder.", path, hint="Choose another one with --home."
        )
    if isinstance(error, OSError):
        return ArchiveError(f"The archive {path} cannot be opened: {error.strerror or error}.", path)
    code = _primary_code(error)
    message = _MESSAGES.get(code, "The archive {path} cannot be opened: {error}.")
    return ArchiveError(
        message.format(path=path, error=error),
        path,
        hint=_HINTS.get(code, ""),
        is_readable=code in _READABLE,
    )


def read_only_error(path: Path) -> ArchiveError:
    """Return the error of a write to an archive that was opened read-only."""
    code = sqlite3.SQLITE_READONLY
    return ArchiveError(_MESSAGES[code].format(path=path), path, hint=_HINTS[code], is_readable=True)


def is_read_only_failure(error: BaseException) -> bool:
    """Return whether the archive's file or folder cannot be written."""
    return _primary_code(error) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def is_archive_failure(error: BaseException) -> bool:
    """Return whether the archive's file caused the error. Other errors are bugs."""
    is_candidate = isinstance(error, sqlite3.Error) or _is_damaged_body(error)
    return is_candidate and _primary_code(error) not in _PROGRAMMING_ERRORS


def _is_damaged_body(error: BaseException) -> bool:
    """Return whether the error was raised while the archive decoded a body."""
    if not isinstance(error, decode_errors()):
        return False
    import traceback  # loaded only after an error

    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [name for name in modules if name.startswith("backscroll.")]
    return bool(own) and own[-1].startswith("backscroll.archive.")


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another process holds the lock."""
    return _primary_code(error) == sqlite3.SQLITE_BUSY


def _primary_code(error: BaseException) -> int:
    """Return the primary result code of SQLite. Errors raised by Python have none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF
    if isinstance(error, decode_errors()) or str(error).startswith("Could not decode to UTF-8"):
        return sqlite3.SQLITE_CORRUPT
    return sqlite3.SQLITE_ERROR
