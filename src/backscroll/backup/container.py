"""Layout and compression of a backup file.

A backup is a ZIP file. Every entry is a stored ``.zst`` file, except ``manifest.json`` at the end. The
comment of the ZIP file has the SHA-256 of the manifest, and the SHA-256 of all bytes of the file before it.
A file is split into blocks, and each block is compressed by one of several threads.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import PureWindowsPath
from types import TracebackType
from typing import IO, Self

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZstdError = zstd.ZstdError

FORMAT_VERSION = "1.0"
MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 128 * 1024**2  # of 300,000 files
MAX_FILES = 500_000
ARCHIVE_ROOT, ARCHIVE_FILE = "archive", "archive.db"  # the only root without a source, and its database
CONFIG_FILE, PRICES_FILE, JOURNAL_FOLDER, CHANGES_FOLDER = "config.toml", "prices.toml", "journal", "changes"
CHANGE_RECORD = "change.json"
MAX_RATIO = 1000  # uncompressed to compressed bytes of one entry; the writer pads entries that exceed it
SEAL_BYTES = 64  # hexadecimal SHA-256 at the end of the file
BLOCK_BYTES = 4 * 1024 * 1024  # of uncompressed data in one Zstandard frame

_LEVEL = 3  # 10 times faster than deflate, and smaller
_MAX_WINDOW_LOG = 23  # 8 MB: bounds the memory of a decompressor
_READ_BYTES = 1024 * 1024
_SKIPPABLE_FRAME = b"\x50\x2a\x4d\x18"
_MAX_THREADS = 8

# The other files of the archive's folder that exist nowhere else.
_OWN_FILE = re.compile(
    rf"{re.escape(CONFIG_FILE)}|{re.escape(PRICES_FILE)}|{JOURNAL_FOLDER}/[^\0]+\.md"
    rf"|{CHANGES_FOLDER}/[0-9-]{{8,60}}/({re.escape(CHANGE_RECORD)}|rows\.msgpack|[0-9]{{1,9}})"
)
_COMMENT = "backscroll backup {version}\nmanifest sha256 {manifest}\nfile sha256 {seal}"
_PARSED = re.compile(
    rb"backscroll backup ([0-9.]{3,8})\nmanifest sha256 ([0-9a-f]{64})\nfile sha256 ([0-9a-f]{64})"
)


def make_comment(manifest_sha256: str, seal: str = "0" * SEAL_BYTES) -> bytes:
    """Return the comment of the ZIP file."""
    return _COMMENT.format(version=FORMAT_VERSION, manifest=manifest_sha256, seal=seal).encode()


def parse_comment(comment: bytes) -> tuple[str, str, str] | None:
    """Return format version, SHA-256 of the manifest and SHA-256 of the file; None if it has another form."""
    found = _PARSED.fullmatch(comment)
    return (found[1].decode(), found[2].decode(), found[3].decode()) if found else None


def entry_name(root: str, path: str) -> str:
    """Return the entry of a file."""
    return f"{root}/{path}.zst"


def is_safe_path(path: str) -> bool:
    """Return whether a relative path stays below its folder on every operating system."""
    if not path or "\0" in path or PureWindowsPath(path).drive or path.startswith(("/", "\\")):
        return False
    return not {"", ".", ".."} & set(path.replace("\\", "/").split("/"))


def is_own_file(path: str, kind: str) -> bool:
    """Return whether a path in the folder of the archive may be in a backup, as a file of this kind."""
    if kind == "archive":
        return path == ARCHIVE_FILE
    return kind == "file" and _OWN_FILE.fullmatch(path) is not None


def is_change(path: str) -> bool:
    """Return whether a file of the archive's folder belongs to the change log. It is never restored."""
    return path.startswith(f"{CHANGES_FOLDER}/")


class BlockCompressor:
    """Compress blocks in several threads and deliver the frames in order. A context manager.

    Memory is bounded: `add` waits if many blocks are pending.
    """

    def __init__(self) -> None:
        threads = min(os.cpu_count() or 1, _MAX_THREADS)
        self._pool = ThreadPoolExecutor(threads)
        self._max_pending = 2 * threads
        self._pending: list[tuple[Future[bytes] | None, Callable[[bytes], None]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def add(self, block: bytes, deliver: Callable[[bytes], None]) -> None:
        """Compress a block and call ``deliver`` with its frame, after all earlier calls."""
        self._pending.append((self._pool.submit(_compress, block), deliver))
        while sum(future is not None for future, _ in self._pending) > self._max_pending:
            self._deliver_first()

    def call(self, action: Callable[[], None]) -> None:
        """Call a function after all earlier frames were delivered."""
        self._pending.append((None, lambda _: action()))

    def flush(self) -> None:
        """Deliver all frames."""
        while self._pending:
            self._deliver_first()

    def _deliver_first(self) -> None:
        future, deliver = self._pending.pop(0)
        deliver(future.result() if future is not None else b"")


def _compress(block: bytes) -> bytes:
    compressor = zstd.ZstdCompressor(_LEVEL)
    frame = compressor.compress(block, zstd.ZstdCompressor.FLUSH_FRAME)
    # A reader rejects entries with a higher ratio. A skippable frame contains no data.
    missing = len(block) // MAX_RATIO + 1 - len(frame)
    if missing > 0:
        frame += _SKIPPABLE_FRAME + missing.to_bytes(4, "little") + bytes(missing)
    return frame


def decompressed_blocks(file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield the content of a ``.zst`` file, at most ``size`` bytes and one.

    Raises `ZstdError` or `EOFError` if the file is damaged.
    """
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _MAX_WINDOW_LOG}
    remaining = size + 1
    with zstd.ZstdFile(file, options=options) as opened:
        while remaining and (block := opened.read(min(_READ_BYTES, remaining))):
            remaining -= len(block)
            yield block
