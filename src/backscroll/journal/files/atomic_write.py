"""Read and replace text files without losing what another program wrote in the meantime."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from backscroll.errors import DestinationError
from backscroll.readers.file_lock import try_lock

__all__ = ["journal_lock", "read_text", "write_atomically"]

_TIMEOUT_SECONDS = 30.0
_POLL_SECONDS = 0.05


def read_text(path: Path) -> str:
    """Return the text of a file with ``\\n`` as line end. Raises `DestinationError` if it is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise DestinationError(f"{path} is not UTF-8. Convert or move it.", path) from error
    except OSError as error:
        raise DestinationError(f"{path} cannot be read: {error.strerror}.", path) from error


def write_atomically(path: Path, text: str, *, expected: str | None) -> None:
    """Replace a file. ``expected`` is its text as it was read, None if it did not exist.

    Raises `DestinationError` if another program has changed it since then. A link stays a link, and the
    file keeps its mode and its line ends.
    """
    path = Path(os.path.realpath(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        old = path.read_bytes() if path.exists() else None
        if (old.decode("utf-8").replace("\r\n", "\n") if old is not None else None) != expected:
            raise DestinationError(f"{path} was changed by another program. Try again.", path)
        data = (text.replace("\n", "\r\n") if old is not None and b"\r\n" in old else text).encode()
        descriptor, staged = tempfile.mkstemp(prefix=".journal-", suffix=".tmp", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            Path(staged).chmod(path.stat().st_mode & 0o777 if old is not None else 0o644 & ~_umask())
            Path(staged).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(staged).unlink()
            raise
    except OSError as error:
        raise DestinationError(f"{path} cannot be written: {error.strerror}.", path) from error


@contextmanager
def journal_lock(path: Path, timeout_seconds: float = _TIMEOUT_SECONDS) -> Iterator[None]:
    """Hold the lock of a journal. Raises `DestinationError` if another process keeps it."""
    deadline = time.monotonic() + timeout_seconds
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while (lock := try_lock(path)) is None:
            if time.monotonic() > deadline:
                raise DestinationError("Another process is writing this journal. Try again later.", path)
            time.sleep(_POLL_SECONDS)
    except OSError as error:
        raise DestinationError(f"{path} cannot be locked: {error.strerror or error}.", path) from error
    with closing(lock):
        yield


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
