"""Open a backup and read its files; check all of them, or extract its archive.

Everything that a damaged or hostile file may contain is checked.
"""

import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import NoReturn, Self

import msgspec

from backscroll.backup.container import (
    FORMAT_VERSION,
    MANIFEST,
    MAX_MANIFEST_BYTES,
    MAX_RATIO,
    SEAL_BYTES,
    ZstdError,
    decompressed_blocks,
    is_safe_path,
    parse_comment,
)
from backscroll.errors import InvalidBackupError
from backscroll.model.backup import (
    BackupBase,
    BackupFile,
    BackupManifest,
    BackupProgress,
    BackupValidation,
    FileCheck,
    ProgressCallback,
    ValidationStatus,
)
from backscroll.readers.temp_folder import TempFolder

MAX_CACHED_BACKUPS = 2  # extracted archives
_READ_BYTES = 1024 * 1024
_MAX_THREADS = 4  # that check files
_LOCAL_HEADER_BYTES = 30
_IS_ENCRYPTED = 0x1
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
            self._zip = zipfile.ZipFile(path)
        except FileNotFoundError as error:
            raise InvalidBackupError(f"There is no backup at {path}.", path) from error
        except OSError as error:
            raise InvalidBackupError(f"Cannot read {path}: {error.strerror}.", path) from error
        except _ZIP_ERRORS as error:
            self._fail("is not a ZIP file, or its end is missing", error)
        try:
            self.seal, self.manifest = self._read_manifest()
            self._entries = self._check_entries()
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
        info = self._entries.get(file.entry)
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
        """Write a file to a private one and return it. Raises `FileDamagedError`."""
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.touch(mode=0o600)
        with target.open("wb") as written:
            for block in self.blocks(file):
                written.write(block)
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

    def _read_manifest(self) -> tuple[str, BackupManifest]:
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
        try:
            info = self._zip.getinfo(MANIFEST)
            if info.file_size > MAX_MANIFEST_BYTES or info.file_size > self.path.stat().st_size:
                self._fail("has a manifest that is too large")
            data = self._zip.read(info)
        except KeyError as error:
            self._fail("has no manifest", error)
        except (*_ZIP_ERRORS, OSError) as error:
            self._fail("has a damaged manifest", error)
        if sha256(data).hexdigest() != expected:
            self._fail("has a damaged manifest (SHA-256 differs)")
        try:
            manifest = msgspec.json.decode(data, type=BackupManifest)
        except msgspec.MsgspecError as error:
            self._fail(f"has an invalid manifest ({error})", error)
        stats = msgspec.structs.replace(manifest.stats, file_size=self.path.stat().st_size)
        return seal, msgspec.structs.replace(manifest, id=expected, stats=stats)

    def _check_entries(self) -> dict[str, zipfile.ZipInfo]:
        """Check names and layout of all entries. Return them by name."""
        self._check_paths()
        listed = {file.entry for file in self.manifest.files if file.backup_id is None}
        entries: dict[str, zipfile.ZipInfo] = {}
        end = 0
        for info in sorted(self._zip.infolist(), key=lambda info: info.header_offset):
            name = info.filename
            if name in entries:
                self._fail(f"contains {name!r} twice")
            if name not in listed and name != MANIFEST:
                self._fail(f"contains {name!r}, which is not in its manifest")
            if info.is_dir() or stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
                self._fail(f"contains {name!r}, which is a link, a folder or a device")
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & _IS_ENCRYPTED:
                self._fail(f"contains {name!r} with another compression, or encrypted")
            if info.header_offset < end or info.file_size != info.compress_size:
                self._fail("has entries that overlap")
            end = info.header_offset + _LOCAL_HEADER_BYTES + info.compress_size
            entries[name] = info
        if end > self.path.stat().st_size:
            self._fail("ends before its last entry")
        return entries

    def _check_paths(self) -> None:
        roots = {root.name for root in self.manifest.roots}
        if len(roots) < len(self.manifest.roots) or not all(map(is_safe_path, roots)):
            self._fail("has unsafe or duplicate roots")
        targets: set[tuple[str, str]] = set()
        names: set[str] = set()
        for file in self.manifest.files:
            if not is_safe_path(file.path) or not is_safe_path(file.entry):
                self._fail(f"has the unsafe path {file.path!r}")
            if file.root not in roots:
                self._fail(f"has the file {file.path!r} of an unknown root")
            target = (file.root, os.path.normcase(file.path))
            if target in targets or (file.backup_id is None and file.entry in names):
                self._fail(f"lists {file.path!r} twice")
            if file.size < 0:
                self._fail(f"has the file {file.path!r} with a negative size")
            targets.add(target)
            names.add(file.entry)


def _find_backup(folder: Path, base: BackupBase) -> Path | None:
    """Return the file of a backup in a folder, whatever its name is; None if it is not there."""
    paths = sorted(folder.glob("*.zip"), key=lambda path: path.name != base.name)
    return next((path for path in paths if _backup_id(path) == base.id), None)


def _backup_id(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as opened:
            parsed = parse_comment(opened.comment)
    except (OSError, *_ZIP_ERRORS):
        return None
    return parsed[1] if parsed is not None else None


def verify_backup(path: Path, progress: ProgressCallback | None = None) -> BackupValidation:
    """Read and check a whole backup."""
    try:
        reader = BackupReader(path)
    except InvalidBackupError as error:
        return BackupValidation("invalid", (), (str(error),))
    with reader:
        checks = check_files(reader, reader.manifest.files, progress)
        problems = _problems(reader)
    status: ValidationStatus = "valid"
    if any(check.status == "invalid" for check in checks):
        status = "invalid"
    elif problems:
        status = "warnings"
    return BackupValidation(status, tuple(checks), tuple(problems), reader.manifest)


def check_files(
    reader: BackupReader, files: tuple[BackupFile, ...], progress: ProgressCallback | None = None
) -> list[FileCheck]:
    """Read files of a backup to their ends and compare them with the manifest, in several threads."""
    total, done = sum(file.size for file in files), 0
    checks: list[FileCheck] = []
    threads = min(os.cpu_count() or 1, _MAX_THREADS)
    with ThreadPoolExecutor(threads) as pool:
        for file, check in zip(files, pool.map(_checker(reader), files), strict=True):
            checks.append(check)
            done += file.size
            if progress is not None:
                progress(BackupProgress("Verifying", done, total))
    return checks


def _checker(reader: BackupReader) -> Callable[[BackupFile], FileCheck]:
    def check(file: BackupFile) -> FileCheck:
        location = _file_location(reader.manifest, file)
        try:
            for _ in reader.blocks(file):
                pass
        except FileDamagedError as error:
            return FileCheck(location, "invalid", str(error))
        return FileCheck(location, "valid")

    return check


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
        target.replace(folder / file.path)


def _delete_oldest(cache: Path) -> None:
    folders = [path for path in cache.iterdir() if path.is_dir() and not path.name.startswith("backscroll-")]
    for folder in sorted(folders, key=lambda path: path.stat().st_mtime)[:-MAX_CACHED_BACKUPS]:
        shutil.rmtree(folder, ignore_errors=True)
