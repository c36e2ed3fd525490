"""Files of an SQLite database: their state, and a private copy."""

import os
import shutil
import sqlite3
import stat
import time
from pathlib import Path
from typing import NamedTuple

from backscroll.errors import DatabaseNotFoundError, DatabaseUnreadableError
from backscroll.readers.temp_folder import TempFolder

__all__ = ["Copy", "Files", "Stamp", "add_suffix", "stat_files", "wait_until_stable"]

_WAL_MODE = 2  # bytes 18 and 19 of the main file
MAX_COPIES = 5
CLOCK_STEP_SECONDS = (
    0.02  # seconds; file system clocks have steps of up to 10 ms, so two writes can have the same mtime
)


class Stamp(NamedTuple):
    """Identity, size and modification time of a file."""

    inode: int
    size: int
    mtime_ns: int


class Files(NamedTuple):
    """State of a database's main file, log, index and journal."""

    main: Stamp
    wal: Stamp | None
    shm: Stamp | None
    journal: Stamp | None

    @property
    def content(self) -> tuple[Stamp | None, ...]:
        """Return the files with data. The -shm file is only an index of the -wal file."""
        return self.main, self.wal, self.journal

    @property
    def identity(self) -> tuple[int | None, ...]:
        """Return the identity of the files. The journal is excluded: every write creates and deletes it."""
        return tuple(stamp and stamp.inode for stamp in (self.main, self.wal, self.shm))


def add_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def stat_files(path: Path) -> Files:
    """Return the current state of the files. Raises if the main file is missing or not a file."""
    name = str(path)
    try:
        found = os.stat(name)  # noqa: PTH116 - this is done before and after every reading, and costs half so
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DatabaseNotFoundError(f"There is no database at {path}.", path) from error
    except OSError as error:
        raise DatabaseUnreadableError(f"{path} cannot be read: {error.strerror}.", path) from error
    if not stat.S_ISREG(found.st_mode):
        raise DatabaseUnreadableError(f"{path} is not a file.", path)
    if not found.st_size:
        # SQLite deletes the journal of an empty main file.
        raise DatabaseUnreadableError(f"{path} is empty: it has 0 bytes.", path)
    main = Stamp(found.st_ino, found.st_size, found.st_mtime_ns)
    return Files(main, _stamp(name + "-wal"), _stamp(name + "-shm"), _stamp(name + "-journal"))


def _stamp(name: str) -> Stamp | None:
    try:
        found = os.stat(name)  # noqa: PTH116 - as above
    except OSError:
        return None
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns)


def wait_until_stable(path: Path) -> Files:
    """Wait until the next write must change a modification time. Return the state of the files."""
    files = stat_files(path)
    for _ in range(5):
        newest = max(stamp.mtime_ns for stamp in files.content if stamp is not None)
        age = time.time() - newest / 1e9
        if not 0 <= age < CLOCK_STEP_SECONDS:
            break
        time.sleep(CLOCK_STEP_SECONDS - age)
        files = stat_files(path)
    return files


def is_in_wal_mode(path: Path) -> bool:
    """Return whether the main file is in WAL mode, even if there is no log."""
    try:
        with path.open("rb") as file:
            header = file.read(20)
    except OSError as error:
        raise DatabaseUnreadableError(f"{path} cannot be opened: {error.strerror}.", path) from error
    return header.startswith(b"SQLite format 3\0") and _WAL_MODE in header[18:20]


class Copy:
    """A private copy, deleted by `close`. SQLite may change it."""

    def __init__(self, path: Path) -> None:
        try:
            self._folder = TempFolder()
        except OSError as error:
            raise DatabaseUnreadableError(
                f"{path} cannot be read in place, nor copied to be read: {error.strerror or error}.", path
            ) from error
        try:
            self.files = self._copy_files(path)
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        return self._folder.path / "copy.db"

    def _copy_files(self, path: Path) -> Files:
        for attempt in range(MAX_COPIES):
            files = wait_until_stable(path)
            try:
                for suffix in ("", "-wal", "-journal"):
                    self._copy_file(add_suffix(path, suffix), suffix)
            except OSError as error:
                raise DatabaseUnreadableError(
                    f"{path} cannot be read in place, nor copied to be read: {error.strerror}.", path
                ) from error
            is_unchanged = stat_files(path).content == files.content
            # If the copied files did not change and the copy is damaged, the original is damaged:
            # what can be read of it is read.
            if is_unchanged and (self._is_sound() or attempt == MAX_COPIES - 1):
                return files
        raise DatabaseUnreadableError(
            f"{path} changed each of the {MAX_COPIES} times it was copied to be read; try again later.", path
        )

    def _copy_file(self, original: Path, suffix: str) -> None:
        for stale in (add_suffix(self.path, suffix), add_suffix(self.path, "-shm")):
            stale.unlink(missing_ok=True)
        if not suffix or original.exists():
            target = add_suffix(self.path, suffix)
            target.touch(mode=0o600)
            shutil.copyfile(original, target)

    def _is_sound(self) -> bool:
        connection = sqlite3.connect(self.path)
        try:
            return bool(connection.execute("pragma quick_check(1)").fetchone() == ("ok",))
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # UnicodeDecodeError: SQLite quotes damaged data
            return False
        finally:
            connection.close()

    def close(self) -> None:
        self._folder.close()
