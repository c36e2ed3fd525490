"""What goes wrong with the archive's file, said so that a person knows what to do."""

import sqlite3
import sys
from pathlib import Path

from backscroll.errors import ArchiveError

__all__ = ["decode_errors", "is_archive_failure", "is_busy", "to_archive_error"]

_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full. The archive {path} is whole and holds what it held; make room,"
    " then try again",
    sqlite3.SQLITE_BUSY: "another process is writing the archive {path} and did not end in time; try again"
    " when it is done",
    sqlite3.SQLITE_CORRUPT: "the archive {path} is damaged ({error}). Put a copy of it back, if you have one;"
    " else move it away, and backscroll sync reads anew what the tools still have",
    sqlite3.SQLITE_NOTADB: "{path} is not an archive ({error}). Put a copy of it back, if you have one; else"
    " move it away, and backscroll sync reads anew what the tools still have",
    sqlite3.SQLITE_READONLY: "the archive {path} cannot be written ({error}); check who may write it and its"
    " folder, or name another folder with --home",
}
_OURS = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_RANGE,
)
_READABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY)


def decode_errors() -> tuple[type[Exception], ...]:
    """What unpacking raises when bytes are not what was packed."""
    import struct  # these are loaded only when something went wrong

    import msgspec

    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return zstd.ZstdError, msgspec.MsgspecError, UnicodeDecodeError, struct.error


def to_archive_error(error: BaseException, path: Path) -> ArchiveError:
    """The error to raise when the archive's file gives this one."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return ArchiveError(
            f"{error.filename} is not a folder, and no archive can be kept in it; name another with --home",
            path,
        )
    if isinstance(error, OSError):
        return ArchiveError(f"the archive {path} cannot be opened: {error.strerror or error}", path)
    code = _code(error)
    advice = _ADVICE.get(code, "the archive {path} cannot be opened: {error}")
    return ArchiveError(advice.format(path=path, error=error), path, is_readable=code in _READABLE)


def is_archive_failure(error: BaseException) -> bool:
    """Whether an error is the file's; the others are our own mistakes, and nothing a person could mend."""
    return (isinstance(error, sqlite3.Error) or _is_damage(error)) and _code(error) not in _OURS


def _is_damage(error: BaseException) -> bool:
    """Whether what the archive itself has packed cannot be unpacked."""
    if not isinstance(error, decode_errors()):
        return False
    import traceback

    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [name for name in modules if name.startswith("backscroll.")]
    return bool(own) and own[-1].startswith("backscroll.archive.")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another process was in the way."""
    return _code(error) == sqlite3.SQLITE_BUSY


def _code(error: BaseException) -> int:
    """The primary code; an error that Python itself raised has none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF
    if isinstance(error, decode_errors()) or str(error).startswith("Could not decode to UTF-8"):
        return sqlite3.SQLITE_CORRUPT
    return sqlite3.SQLITE_ERROR
