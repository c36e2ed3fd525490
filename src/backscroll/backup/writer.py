"""Write a backup file."""

import os
import zipfile
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

import msgspec

from backscroll.backup.container import MANIFEST, SEAL_BYTES, BlockCompressor, make_comment
from backscroll.model.backup import BackupManifest

_ZIP64_BYTES = 1024**3  # a file of this size may need a ZIP64 entry
_FILE_ATTRIBUTES = 0o100600 << 16  # a regular file for its owner only
_MIN_ZIP_YEAR, _MAX_ZIP_YEAR = 1980, 2107
_MIN_BACKGROUND_BYTES = 64 * 1024  # smaller data is hashed at once: a task costs more
_MAX_PENDING = 16


class WrittenFile(msgspec.Struct, frozen=True):
    """Size and hash of a file that was written."""

    size: int
    sha256: str


class BackupWriter:
    """Writer of a new backup file. A context manager; `finish` completes the file."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        self._file = os.fdopen(descriptor, "wb")
        self._hasher = _BackgroundHasher()
        self._output = _HashedFile(self._file, self._hasher)
        self._zip = zipfile.ZipFile(self._output, "w", zipfile.ZIP_STORED)  # type: ignore[call-overload]
        self._compressor = BlockCompressor()
        self._entry: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._compressor.__exit__(kind, error, trace)
        self._hasher.close()
        self._file.close()

    def add(
        self,
        entry: str,
        blocks: Iterable[bytes],
        *,
        expected_bytes: int,
        modified_ns: int,
    ) -> WrittenFile:
        """Add a file from blocks of at most `BLOCK_BYTES`."""
        info = zipfile.ZipInfo(entry, _zip_date(modified_ns))
        info.external_attr = _FILE_ATTRIBUTES
        self._compressor.call(lambda: self._open_entry(info, expected_bytes))
        digest, size = sha256(), 0
        for block in blocks:
            self._hasher.update(digest, block)
            size += len(block)
            self._compressor.add(block, self._write)
        if not size:
            self._compressor.add(b"", self._write)
        self._compressor.call(self._close_entry)
        self._hasher.flush()
        return WrittenFile(size, digest.hexdigest())

    def finish(self, manifest: BackupManifest) -> str:
        """Write the manifest and the end of the file, and sync it to disk. Return the backup's id."""
        self._compressor.flush()
        data = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        backup_id = sha256(data).hexdigest()
        info = zipfile.ZipInfo(MANIFEST, manifest.created_at.timetuple()[:6])
        info.external_attr = _FILE_ATTRIBUTES
        self._zip.writestr(info, data)
        self._zip.comment = make_comment(backup_id)
        self._zip.close()
        self._hasher.flush()
        self._file.flush()
        self._file.seek(-SEAL_BYTES, os.SEEK_END)
        self._file.write(self._output.hash.hexdigest().encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        return backup_id

    def _open_entry(self, info: zipfile.ZipInfo, size: int) -> None:
        self._entry = self._zip.open(info, "w", force_zip64=size >= _ZIP64_BYTES)

    def _write(self, frame: bytes) -> None:
        assert self._entry is not None
        self._entry.write(frame)

    def _close_entry(self) -> None:
        assert self._entry is not None
        self._entry.close()


def _zip_date(modified_ns: int) -> tuple[int, int, int, int, int, int]:
    try:
        date = datetime.fromtimestamp(modified_ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return (_MIN_ZIP_YEAR, 1, 1, 0, 0, 0)
    if not _MIN_ZIP_YEAR <= date.year <= _MAX_ZIP_YEAR:
        return (_MIN_ZIP_YEAR, 1, 1, 0, 0, 0)
    return (date.year, date.month, date.day, date.hour, date.minute, date.second)


class _Digest(Protocol):
    def update(self, data: bytes | memoryview, /) -> None: ...


class _BackgroundHasher:
    """One thread that updates digests in the order of the calls. Memory is bounded: `update` may wait."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._pending: deque[Future[None]] = deque()

    def update(self, digest: _Digest, data: bytes | memoryview) -> None:
        """Add data to a digest, after all earlier calls."""
        if len(data) < _MIN_BACKGROUND_BYTES:
            self.flush()
            digest.update(data)
            return
        self._pending.append(self._pool.submit(digest.update, data))
        if len(self._pending) > _MAX_PENDING:
            self._pending.popleft().result()

    def flush(self) -> None:
        """Wait until all digests are up to date."""
        while self._pending:
            self._pending.popleft().result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


class _HashedFile:
    """Output file that hashes what is written. Without `seek`, zipfile writes from start to end."""

    def __init__(self, file: IO[bytes], hasher: _BackgroundHasher) -> None:
        self._file = file
        self._hasher = hasher
        self.hash = sha256()
        self._tail = b""  # the last bytes are replaced by the hash, so they are not hashed

    def write(self, data: bytes) -> int:
        written = self._file.write(data)
        if len(data) < SEAL_BYTES:
            data = self._tail + data
        else:
            self._hasher.update(self.hash, self._tail)
        self._tail = data[-SEAL_BYTES:]
        self._hasher.update(self.hash, memoryview(data)[:-SEAL_BYTES])
        return written

    def flush(self) -> None:
        self._file.flush()
