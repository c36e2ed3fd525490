"""The files that make up one SQLite database: what they look like now, and a private copy of them."""

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
_COPIES = 5
_TICK = 0.02  # a file system's clock stands still for up to 10 ms: two writes within can carry one mtime


class Stamp(NamedTuple):
    """What a file's directory entry says: it is the same file, unchanged, while this stays equal."""

    inode: int
    size: int
    mtime_ns: int


class Files(NamedTuple):
    """A database's main file and what lies beside it."""

    main: Stamp
    wal: Stamp | None
    shm: Stamp | None
    journal: Stamp | None

    @property
    def content(self) -> tuple[Stamp | None, ...]:
        """All that carries data; the -shm is only an index of the -wal."""
        return self.main, self.wal, self.journal

    @property
    def identity(self) -> tuple[int | None, ...]:
        """Which files they are, whatever is in them. A journal comes and goes with every write."""
        return tuple(stamp and stamp.inode for stamp in (self.main, self.wal, self.shm))


def add_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def stat_files(path: Path) -> Files:
    """The files as they are now. Raises when there is no file, or something that is none."""
    name = str(path)
    try:
        found = os.stat(name)  # noqa: PTH116 - this is done before and after every reading, and costs half so
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DatabaseNotFoundError(f"There is no database at {path}.", path) from error
    except OSError as error:
        raise DatabaseUnreadableError(f"{path} cannot be looked at: {error.strerror}.", path) from error
    if not stat.S_ISREG(found.st_mode):
        raise DatabaseUnreadableError(f"{path} is not a file.", path)
    if not found.st_size:
        # SQLite takes an empty main file as leave to delete the journal beside it.
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
    """The files once they have been still for long enough that the next write must show in an mtime."""
    files = stat_files(path)
    for _ in range(5):
        newest = max(stamp.mtime_ns for stamp in files.content if stamp is not None)
        age = time.time() - newest / 1e9
        if not 0 <= age < _TICK:
            break
        time.sleep(_TICK - age)
        files = stat_files(path)
    return files


def is_in_wal_mode(path: Path) -> bool:
    """Whether the main file says that a log belongs to it, even when there is none."""
    try:
        with path.open("rb") as file:
            header = file.read(20)
    except OSError as error:
        raise DatabaseUnreadableError(f"{path} cannot be opened: {error.strerror}.", path) from error
    return header.startswith(b"SQLite format 3\0") and _WAL_MODE in header[18:20]


class Copy:
    """A private copy, gone when closed. SQLite may recover it as it likes: nobody else sees it."""

    def __init__(self, path: Path) -> None:
        try:
            self._folder = TempFolder()
        except OSError as error:
            raise DatabaseUnreadableError(
                f"{path} cannot be read in place, nor copied to be read: {error.strerror or error}.", path
            ) from error
        try:
            self.files = self._take(path)
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        return self._folder.path / "copy.db"

    def _take(self, path: Path) -> Files:
        for attempt in range(_COPIES):
            files = wait_until_stable(path)
            try:
                for suffix in ("", "-wal", "-journal"):
                    self._copy_one(add_suffix(path, suffix), suffix)
            except OSError as error:
                raise DatabaseUnreadableError(
                    f"{path} cannot be read in place, nor copied to be read: {error.strerror}.", path
                ) from error
            is_still = stat_files(path).content == files.content
            # A copy of files that stood still and yet fails its check is what the original is like:
            # whatever can still be read from it should be.
            if is_still and (self._is_sound() or attempt == _COPIES - 1):
                return files
        raise DatabaseUnreadableError(
            f"{path} changed each of the {_COPIES} times it was copied to be read; try again later.", path
        )

    def _copy_one(self, original: Path, suffix: str) -> None:
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
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # the latter when SQLite quotes what is damaged
            return False
        finally:
            connection.close()

    def close(self) -> None:
        self._folder.close()
