"""Open a backup and read its files; check all of them, or extract its archive.

Everything that a damaged or hostile file may contain is checked.
"""

import os
import re
import shutil
import sqlite3
import stat
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from types import TracebackType
from typing import NoReturn, Self

import msgspec

from backscroll.archive.connection import drop_foreign_triggers
from backscroll.backup.container import (
    ARCHIVE_ROOT,
    CHANGE_RECORD,
    CONFIG_FILE,
    FORMAT_VERSION,
    MANIFEST,
    MAX_FILES,
    MAX_MANIFEST_BYTES,
    MAX_RATIO,
    SEAL_BYTES,
    ZstdError,
    decompressed_blocks,
    is_own_file,
    is_safe_path,
    parse_comment,
)
from backscroll.changes.change_record import ChangeRecord
from backscroll.errors import ArchiveError, DestinationError, InvalidBackupError
from backscroll.model.backup import (
    BackupBase,
    BackupDetails,
    BackupFile,
    BackupManifest,
    BackupProgress,
    BackupRoot,
    BackupValidation,
    FileCheck,
    ProgressCallback,
    ValidationStatus,
)
from backscroll.model.change import Change
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources import named, names

MAX_DIRECTORY_BYTES = 256 * 1024**2  # of `MAX_FILES` entries with long names
MAX_CACHED_BACKUPS = 2  # extracted archives
MAX_TEXT_BYTES = 4 * 1024**2  # of the settings, and of the record of a change
MAX_CHANGES = 100  # that are listed
_READ_BYTES = 1024 * 1024
_MAX_THREADS = 4  # that check files
_LOCAL_HEADER_BYTES = 30
_MAX_END_BYTES = 66_000  # of the end of a ZIP file, with a comment
_SPARE_BYTES = 50_000_000  # free space that must be left while a database is checked
_IS_ENCRYPTED = 0x1
_IS_UTF8 = 0x800
_ROOT_NAME = re.compile(r"[a-z][a-z0-9-]{0,99}")
_MAX_NUMBER = 2**62  # of bytes, sessions and messages
_MAX_TIME_NS = 253_370_764_800 * 10**9  # the year 9999
_MIN_YEAR, _MAX_YEAR = 1971, 9998
# An archive has these tables in every version.
_ARCHIVE_TABLES = frozenset({"conversations", "unit", "fragment", "migration"})
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    NotImplementedError,
    ValueError,
    EOFError,
    zlib.error,
)


class FileDamagedError(Exception):
    """A file in a backup does not have the content that the manifest lists. The message is the reason."""


class _Entries:
    """Where the entries are in the ZIP file. Takes a fifth of the memory of `ZipInfo`."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}  # by name
        self._offsets = array("Q")
        self._sizes = array("Q")

    def add(self, info: zipfile.ZipInfo) -> None:
        self.numbers[info.filename] = len(self._offsets)
        self._offsets.append(info.header_offset)
        self._sizes.append(info.file_size)

    def info(self, name: str) -> zipfile.ZipInfo | None:
        """Return an entry without its checksum: every file has a SHA-256 in the manifest."""
        if (number := self.numbers.get(name)) is None:
            return None
        info = zipfile.ZipInfo(name)
        info.orig_filename = name
        info.header_offset = self._offsets[number]
        info.flag_bits = 0 if name.isascii() else _IS_UTF8
        info.file_size = info.compress_size = self._sizes[number]
        return info


class BackupReader:
    """An open backup. A context manager.

    Raises `InvalidBackupError` if the file is not a backup, or its table of contents is damaged or unsafe.
    The content of files is checked when they are read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._bases: dict[str, BackupReader] = {}
        self._lock = Lock()
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # opening a FIFO waits forever
                self._fail("is not a regular file")
            if _central_directory_bytes(path) > MAX_DIRECTORY_BYTES:
                self._fail("has too many entries")
            self._zip = zipfile.ZipFile(path)
        except FileNotFoundError as error:
            raise InvalidBackupError(f"There is no backup at {path}.", path) from error
        except OSError as error:
            raise InvalidBackupError(f"Cannot read {path}: {error.strerror}.", path) from error
        except _ZIP_ERRORS as error:
            self._fail("is not a ZIP file, or its end is missing", error)
        try:
            expected, self.seal = self._parse_comment()
            self._entries = self._check_layout()
            self.manifest = self._read_manifest(expected)
            self._check_paths()
            self._check_entries()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._zip.close()
        for base in self._bases.values():
            base.close()

    def check_bases(self) -> None:
        """Raise `InvalidBackupError` if a backup that this one depends on is not in the same folder."""
        for base in self.manifest.bases:
            if _find_backup(self.path.parent, base) is None:
                raise InvalidBackupError(
                    f"{self.path} is incremental and needs the backup {base.name}, which is not in"
                    f" {self.path.parent}. Copy it there.",
                    self.path,
                )

    def blocks(self, file: BackupFile) -> Iterator[bytes]:
        """Yield the content of a file. Raises `FileDamagedError`, at the latest after the last block."""
        if file.backup_id is not None:
            yield from self._base(file.backup_id).blocks(msgspec.structs.replace(file, backup_id=None))
            return
        info = self._entries.info(file.entry)
        if info is None:
            raise FileDamagedError("missing in the backup")
        if file.size > MAX_RATIO * info.compress_size:
            raise FileDamagedError(f"more than {MAX_RATIO} times larger than its compressed data")
        digest, size = sha256(), 0
        try:
            with self._zip.open(info) as opened:
                for block in decompressed_blocks(opened, file.size):
                    digest.update(block)
                    size += len(block)
                    if size > file.size:
                        break
                    yield block
        except (*_ZIP_ERRORS, ZstdError, OSError) as error:
            raise FileDamagedError(f"damaged: {error}") from error
        if size != file.size:
            comparison = "more" if size > file.size else "fewer"
            raise FileDamagedError(f"has {comparison} bytes than listed ({file.size:,})")
        if digest.hexdigest() != file.sha256:
            raise FileDamagedError("has other content than listed (SHA-256 differs)")

    def extract(self, file: BackupFile, target: Path) -> Path:
        """Write a file to a private one and return it. Raises `FileDamagedError` or `DestinationError`."""
        try:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            target.touch(mode=0o600)
            with target.open("wb") as written:
                for block in self.blocks(file):
                    written.write(block)
        except OSError as error:
            raise DestinationError(
                f"{target.parent} cannot be written: {error.strerror}. Nothing was changed.", target.parent
            ) from error
        return target

    def has_valid_seal(self) -> bool:
        """Return whether all bytes of the file are as they were written."""
        digest = sha256()
        remaining = self.path.stat().st_size - SEAL_BYTES
        with self.path.open("rb") as file:
            while remaining and (block := file.read(min(_READ_BYTES, remaining))):
                remaining -= len(block)
                digest.update(block)
        return digest.hexdigest() == self.seal

    def _base(self, backup_id: str) -> "BackupReader":
        """Return the backup that contains an entry, opened on first use."""
        with self._lock:
            if backup_id not in self._bases:
                name = next((base for base in self.manifest.bases if base.id == backup_id), None)
                path = _find_backup(self.path.parent, name) if name is not None else None
                if path is None:
                    missing = f"the backup {name.name}" if name is not None else "an unknown backup"
                    raise FileDamagedError(f"in {missing}, which is not in {self.path.parent}")
                try:
                    self._bases[backup_id] = BackupReader(path)
                except InvalidBackupError as error:
                    raise FileDamagedError(str(error)) from error
            return self._bases[backup_id]

    def _fail(self, reason: str, cause: BaseException | None = None) -> NoReturn:
        raise InvalidBackupError(f"{self.path} is not a valid backup: it {reason}.", self.path) from cause

    def _parse_comment(self) -> tuple[str, str]:
        """Return the SHA-256 of the manifest and of the file."""
        parsed = parse_comment(self._zip.comment)
        if parsed is None:
            self._fail("was not written by Backscroll, or its last bytes are damaged")
        version, expected, seal = parsed
        if version.partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
            raise InvalidBackupError(
                f"{self.path} has the backup format {version}; this version of Backscroll reads"
                f" {FORMAT_VERSION}. Update Backscroll.",
                self.path,
            )
        return expected, seal

    def _read_manifest(self, expected: str) -> BackupManifest:
        try:
            info = self._entries.info(MANIFEST)
            if info is None:
                self._fail("has no manifest")
            if info.file_size > MAX_MANIFEST_BYTES or info.file_size > self.path.stat().st_size:
                self._fail("has a manifest that is too large")
            data = self._zip.read(info)
        except (*_ZIP_ERRORS, OSError) as error:
            self._fail("has a damaged manifest", error)
        if sha256(data).hexdigest() != expected:
            self._fail("has a damaged manifest (SHA-256 differs)")
        try:
            manifest = msgspec.json.decode(data, type=BackupManifest)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            self._fail(f"has an invalid manifest ({error})", error)
        self._check_values(manifest)
        stats = msgspec.structs.replace(manifest.stats, file_size=self.path.stat().st_size)
        return msgspec.structs.replace(manifest, id=expected, stats=stats)

    def _check_values(self, manifest: BackupManifest) -> None:
        """Refuse numbers and times that no backup has: they would end in an overflow later."""
        stats = manifest.stats
        numbers = [stats.session_count, stats.message_count, *(file.size for file in manifest.files)]
        if not all(0 <= number < _MAX_NUMBER for number in numbers):
            self._fail("has impossible sizes or counts")
        dates = [manifest.created_at]
        if (filter_ := manifest.filter) is not None:
            dates += [at for at in (filter_.since, filter_.until) if at is not None]
        if not all(_MIN_YEAR <= date.year <= _MAX_YEAR for date in dates) or not all(
            abs(file.modified_ns) < _MAX_TIME_NS for file in manifest.files
        ):
            self._fail("has an impossible date")
        if len(manifest.files) > MAX_FILES:
            self._fail(f"lists more than {MAX_FILES:,} files")

    def _check_entries(self) -> None:
        """Refuse entries that the manifest does not list."""
        listed = {file.entry for file in self.manifest.files if file.backup_id is None}
        for name in self._entries.numbers:
            if name not in listed and name != MANIFEST:
                self._fail(f"contains {name!r}, which is not in its manifest")

    def _check_layout(self) -> _Entries:
        """Check all entries. Return where they are."""
        entries = _Entries()
        end = 0
        for info in sorted(self._zip.infolist(), key=lambda info: info.header_offset):
            name = info.filename
            if name in entries.numbers:
                self._fail(f"contains {name!r} twice")
            if info.is_dir() or stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
                self._fail(f"contains {name!r}, which is a link, a folder or a device")
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & _IS_ENCRYPTED:
                self._fail(f"contains {name!r} with another compression, or encrypted")
            if info.header_offset < end or info.file_size != info.compress_size:
                self._fail("has entries that overlap")
            end = info.header_offset + _LOCAL_HEADER_BYTES + info.compress_size
            entries.add(info)
        if end > self.path.stat().st_size:
            self._fail("ends before its last entry")
        self._zip.filelist.clear()
        self._zip.NameToInfo.clear()
        return entries

    def _check_paths(self) -> None:
        roots = {root.name: root for root in self.manifest.roots}
        if len(roots) < len(self.manifest.roots) or not all(map(_is_valid_root, roots.values())):
            self._fail("has unsafe or duplicate roots")
        targets: dict[str, set[str]] = {root: set() for root in roots}
        names: set[str] = set()
        for file in self.manifest.files:
            if not is_safe_path(file.path) or not is_safe_path(file.entry):
                self._fail(f"has the unsafe path {file.path!r}")
            if file.root not in roots:
                self._fail(f"has the file {file.path!r} of an unknown root")
            is_own = not roots[file.root].source
            if not is_own_file(file.path, file.kind) if is_own else file.kind == "archive":
                self._fail(f"has {file.path!r} in the folder of {file.root}, where it does not belong")
            target = os.path.normcase(file.path)
            if target in targets[file.root] or (file.backup_id is None and file.entry in names):
                self._fail(f"lists {file.path!r} twice")
            targets[file.root].add(target)
            names.add(file.entry)


def _central_directory_bytes(path: Path) -> int:
    """Return the size of the list of entries, which `zipfile` reads as a whole; 0 if it is not found."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _MAX_END_BYTES))
        tail = file.read()
    position, zip64 = tail.rfind(b"PK\5\6"), tail.rfind(b"PK\6\6")
    if position < 0 or len(tail) < position + 16:
        return 0
    if zip64 >= 0 and len(tail) >= zip64 + 48:
        return int.from_bytes(tail[zip64 + 40 : zip64 + 48], "little")
    return int.from_bytes(tail[position + 12 : position + 16], "little")


def _is_valid_root(root: BackupRoot) -> bool:
    """Return whether a root is one of a tool, or the one of the archive."""
    if _ROOT_NAME.fullmatch(root.name) is None or "\0" in root.path:
        return False
    return root.source in names() if root.source else root.name == ARCHIVE_ROOT


def _find_backup(folder: Path, base: BackupBase) -> Path | None:
    """Return the file of a backup in a folder, whatever its name is; None if it is not there."""
    paths = sorted(folder.glob("*.zip"), key=lambda path: path.name != base.name)
    return next((path for path in paths if _backup_id(path) == base.id), None)


def _backup_id(path: Path) -> str | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with zipfile.ZipFile(path) as opened:
            parsed = parse_comment(opened.comment)
    except (OSError, *_ZIP_ERRORS):
        return None
    return parsed[1] if parsed is not None else None


def verify_backup(path: Path, scratch: Path, progress: ProgressCallback | None = None) -> BackupValidation:
    """Read and check a whole backup. Databases are extracted below ``scratch`` to open them."""
    try:
        reader = BackupReader(path)
    except InvalidBackupError as error:
        return BackupValidation("invalid", (), (str(error),))
    scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
    with reader, TempFolder(scratch) as folder:
        checks = check_files(reader, reader.manifest.files, folder, progress)
        problems = _problems(reader)
    status: ValidationStatus = "valid"
    if any(check.status == "invalid" for check in checks):
        status = "invalid"
    elif problems:
        status = "warnings"
    return BackupValidation(status, tuple(checks), tuple(problems), reader.manifest)


def check_files(
    reader: BackupReader,
    files: tuple[BackupFile, ...],
    folder: Path,
    progress: ProgressCallback | None = None,
) -> list[FileCheck]:
    """Read files of a backup to their ends and compare them with the manifest, in several threads.

    Databases are extracted into ``folder``, which is private, and opened.
    """
    total, done = sum(file.size for file in files), 0
    checks: list[FileCheck] = []
    threads = min(os.cpu_count() or 1, _MAX_THREADS)
    with ThreadPoolExecutor(threads) as pool:
        for file, check in zip(files, pool.map(_checker(reader, folder), files), strict=True):
            checks.append(check)
            done += file.size
            if progress is not None:
                progress(BackupProgress("Verifying", done, total))
    return checks


def _checker(reader: BackupReader, folder: Path) -> Callable[[BackupFile], FileCheck]:
    sources = {root.name: root.source for root in reader.manifest.roots}

    def check(file: BackupFile) -> FileCheck:
        location = _file_location(reader.manifest, file)
        try:
            _check_owner(sources[file.root], file)
            if file.kind == "file":
                for _ in reader.blocks(file):
                    pass
            else:
                _check_database(reader, sources[file.root], file, folder)
        except FileDamagedError as error:
            return FileCheck(location, "invalid", str(error))
        return FileCheck(location, "valid")

    return check


def _check_owner(source: str, file: BackupFile) -> None:
    """Raise `FileDamagedError` if a file is not part of a history, such as settings with commands."""
    backup = named(source).backup() if source else None
    if backup is not None and not backup.is_history_path(file.path):
        raise FileDamagedError(f"not part of the history of {source}")


def _check_database(reader: BackupReader, source: str, file: BackupFile, folder: Path) -> None:
    """Extract a database and open it. Raises `FileDamagedError` if SQLite finds an error in it."""
    if shutil.disk_usage(folder).free < file.size + _SPARE_BYTES:
        raise FileDamagedError(f"not checked: {folder} has less than {file.size / 1e6:,.0f} MB of free space")
    with TemporaryDirectory(dir=folder) as private:
        copy = reader.extract(file, Path(private, "database"))
        if not file.size:
            return  # a database that was created and never written
        try:
            with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
                db.execute("pragma trusted_schema = off")
                tables = {
                    str(name) for (name,) in db.execute("select name from sqlite_master where type = 'table'")
                }
                (verdict,) = db.execute("pragma integrity_check(1)").fetchone()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise FileDamagedError(f"not a database that can be read: {error}") from error
    if verdict != "ok":
        raise FileDamagedError(f"damaged: {verdict}")
    if not source:
        if not tables >= _ARCHIVE_TABLES:
            raise FileDamagedError("a database, but not an archive")
        return
    backup = named(source).backup()
    expected = backup.expected_tables(file.path) if backup is not None else frozenset()
    if expected and tables and tables.isdisjoint(expected):
        raise FileDamagedError(f"a database without the tables of {source}")


def _file_location(manifest: BackupManifest, file: BackupFile) -> str:
    """Return where a file was when it was backed up."""
    root = next(root.path for root in manifest.roots if root.name == file.root)
    separator = "\\" if "\\" in root and "/" not in root else "/"
    return f"{root}{separator}{file.path.replace('/', separator)}"


def _problems(reader: BackupReader) -> list[str]:
    """Return the warnings about a backup as a whole."""
    problems = [
        f"{skipped.path} is not in the backup: {skipped.reason}" for skipped in reader.manifest.skipped
    ]
    try:
        reader.check_bases()
    except InvalidBackupError as error:
        problems.append(str(error))
    if not reader.has_valid_seal():
        problems.append("Bytes of the backup file changed after it was written.")
    return problems


def read_details(path: Path) -> BackupDetails:
    """Return the manifest, the settings and the change log of a backup. Raises `InvalidBackupError`."""
    with BackupReader(path) as reader:
        sources = {root.name: root.source for root in reader.manifest.roots}
        own = [file for file in reader.manifest.files if not sources[file.root] and file.kind == "file"]
        records = [file for file in own if file.path.endswith(f"/{CHANGE_RECORD}")]
        settings = [file for file in own if file.path == CONFIG_FILE]
        return BackupDetails(
            manifest=reader.manifest,
            settings=next((read_text(reader, file) for file in settings), None),
            changes=tuple(sorted(_changes(reader, records), key=lambda change: change.at, reverse=True)),
        )


def read_text(reader: BackupReader, file: BackupFile) -> str | None:
    """Return a short text file; None if it is damaged, too long or not UTF-8."""
    if file.size > MAX_TEXT_BYTES:
        return None
    try:
        return b"".join(reader.blocks(file)).decode()
    except (FileDamagedError, UnicodeDecodeError):
        return None


def _changes(reader: BackupReader, records: list[BackupFile]) -> Iterator[Change]:
    """Yield the newest changes of the change log. The ids are times."""
    for file in sorted(records, key=lambda file: file.path, reverse=True)[:MAX_CHANGES]:
        text = read_text(reader, file)
        try:
            change = msgspec.json.decode(text or "", type=ChangeRecord).to_change()
        except (msgspec.MsgspecError, RecursionError, ValueError):
            continue
        if _MIN_YEAR <= change.at.year <= _MAX_YEAR:
            yield change


def extract_archive(backup: Path, cache: Path) -> Path:
    """Extract the archive of a backup into a private folder of the cache, and return the folder.

    A folder is used again if the backup is opened again. The oldest folders are deleted. Raises
    `InvalidBackupError`.
    """
    with BackupReader(backup) as reader:
        folder = cache / reader.manifest.id[:32]
        files = [file for file in reader.manifest.files if file.kind == "archive"]
        if not files:
            raise InvalidBackupError(f"{backup} contains no archive.", backup)
        if not (folder / files[0].path).exists():
            _extract(reader, files[0], folder)
    os.utime(folder)
    _delete_oldest(cache)
    return folder


def _extract(reader: BackupReader, file: BackupFile, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with TempFolder(folder.parent) as temporary:
        try:
            target = reader.extract(file, temporary / "archive.db")
        except FileDamagedError as error:
            raise InvalidBackupError(
                f"The archive in {reader.path} is {error}. Run 'backscroll backup verify' for details.",
                reader.path,
            ) from error
        try:
            drop_foreign_triggers(target)
        except ArchiveError as error:
            reason = f"The archive in {reader.path} cannot be read: {error}"
            raise InvalidBackupError(reason, reader.path) from error
        target.replace(folder / file.path)


def _delete_oldest(cache: Path) -> None:
    folders = [path for path in cache.iterdir() if path.is_dir() and not path.name.startswith("backscroll-")]
    for folder in sorted(folders, key=lambda path: path.stat().st_mtime)[:-MAX_CACHED_BACKUPS]:
        shutil.rmtree(folder, ignore_errors=True)
