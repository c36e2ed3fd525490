"""The files of the journal: where they are, how they are read, and how they are written.

Entries and notes are between markers, with the user's own text around them. A write is atomic and keeps what
another program wrote in the meantime.
"""

import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import date, datetime, tzinfo
from hashlib import sha256
from pathlib import Path, PurePosixPath

from msgspec import Struct

from backscroll.errors import DestinationError
from backscroll.git.repository import Repository
from backscroll.model.dates import iso
from backscroll.readers.file_lock import try_lock

_BLOCK = re.compile(
    r"^<!-- backscroll:(?P<kind>entry|reflection|context|summary)(?P<fields>(?: [a-z]+=[^ ]+)*) -->\n"
    r"(?P<text>.*?)^<!-- backscroll:end -->\n?",
    re.MULTILINE | re.DOTALL,
)
_FIELD = re.compile(r" ([a-z]+)=([^ ]+)")
_DAILY_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})-journal\.md")
_JOURNAL_FILE = re.compile(r"(?:^|/)(?:daily/\d{4}-\d{2}-\d{2}-journal|summaries/[a-z]+/[\w-]+-summary)\.md$")
_UNSAFE = re.compile(r"[^\w.-]+")
_HASH_CHARS = 12
_KEY_CHARS = 8
_LOCK_TIMEOUT_SECONDS = 30.0
_POLL_SECONDS = 0.05


def journal_folder(
    repository: Repository, *, named: Path | None, configured: Mapping[Path, Path], base: Path
) -> Path:
    """Return the folder of a repository's journal.

    It is the one that the user named, else the one that the settings name for a checkout, else a folder
    below ``base`` with the name of the repository. All clones with the same first commit share that one.
    """
    if named is not None:
        return named.absolute()
    checkouts = [repository.folder, *repository.checkouts]
    for checkout, folder in configured.items():
        if any(checkout.resolve() == path.resolve() for path in checkouts):
            return repository.folder / folder
    key = repository.root_commit or sha256(str(repository.git_folder).encode()).hexdigest()
    existing = sorted(base.glob(f"*-{key[:_KEY_CHARS]}")) if base.is_dir() else []
    return existing[0] if existing else base / f"{_name(repository)}-{key[:_KEY_CHARS]}"


def _name(repository: Repository) -> str:
    folder = repository.git_folder.parent if repository.git_folder.name == ".git" else repository.git_folder
    return _UNSAFE.sub("-", folder.name.removesuffix(".git")).strip("-.") or "repository"


def lock_path(folder: Path, base: Path) -> Path:
    """Return the lock file of a journal, beside the archive: the journal may be in a repository."""
    return base / "locks" / f"{sha256(str(folder.resolve()).encode()).hexdigest()[:16]}.lock"


def is_journal_path(path: str, repository: Repository, folder: Path) -> bool:
    """Return whether a tracked path belongs to the journal."""
    try:
        inside = folder.resolve().relative_to(repository.folder.resolve())
    except ValueError:
        return _JOURNAL_FILE.search(path) is not None
    return PurePosixPath(path).is_relative_to(PurePosixPath(inside.as_posix()))


class Block(Struct, frozen=True):
    """Text between markers, and the fields of the first marker."""

    kind: str
    fields: dict[str, str]
    text: str
    start: int  # in the text of the file
    end: int

    @property
    def is_edited(self) -> bool:
        """Whether the user changed the text."""
        return self.fields.get("text") != _hash(self.text)

    @property
    def at(self) -> datetime | None:
        try:
            return datetime.fromisoformat(self.fields.get("at", ""))
        except ValueError:
            return None


class DailyFiles:
    """The files ``daily/YYYY-MM-DD-journal.md`` of a journal folder."""

    def __init__(self, folder: Path, zone: tzinfo | None = None) -> None:
        self.folder = folder
        self._zone = zone

    def path(self, day: date) -> Path:
        """Return the file of a day, existing or not."""
        return self.folder / "daily" / f"{day.isoformat()}-journal.md"

    def days(self) -> Iterator[tuple[date, Path]]:
        """Yield all existing files by date."""
        folder = self.folder / "daily"
        for path in sorted(folder.glob("*-journal.md")) if folder.is_dir() else ():
            if (named := _DAILY_NAME.fullmatch(path.name)) is not None:
                try:
                    yield date.fromisoformat(named[1]), path
                except ValueError:
                    continue

    def blocks(self, path: Path) -> list[Block]:
        """Return the marked blocks of a file."""
        return parse_blocks(read_text(path))

    def entries(self) -> Iterator[tuple[Path, Block]]:
        """Yield all entries with their files."""
        for _, path in self.days():
            for block in self.blocks(path):
                if block.kind == "entry":
                    yield path, block

    def mentions(self, sha: str) -> Path | None:
        """Return a file whose text contains the full hash of a commit, with or without markers."""
        return next((path for _, path in self.days() if sha in read_text(path)), None)

    def add(self, kind: str, fields: dict[str, str], text: str, at: datetime) -> Path:
        """Add a block to the file of its day, before the first later block."""
        day = at.astimezone(self._zone).date()
        path = self.path(day)
        content = read_text(path) if path.exists() else f"# {day.isoformat()}\n"
        fields = fields | {"at": iso(at) or ""}
        later = next((block for block in parse_blocks(content) if block.at and block.at > at), None)
        position = later.start if later is not None else len(content)
        before, after = content[:position].rstrip("\n"), content[position:].lstrip("\n")
        separator = "\n\n" if after else ""
        new = f"{before}\n\n{block_text(kind, fields, text)}{separator.removeprefix(chr(10))}{after}"
        write_atomically(path, new, expected=content if path.exists() else None)
        return path

    def replace(self, path: Path, sha: str, fields: dict[str, str], text: str) -> bool:
        """Replace the entry of a commit. Return False if its text and fields stay the same."""
        content = read_text(path)
        for block in parse_blocks(content):
            if block.kind == "entry" and block.fields.get("sha") == sha:
                kept = {"at": block.fields["at"]} if "at" in block.fields else {}
                new = put_block(content, block, fields | kept, text)
                if new == content:
                    return False
                write_atomically(path, new, expected=content)
                return True
        raise DestinationError(f"{path} has no entry of {sha}.", path)


def parse_blocks(content: str) -> list[Block]:
    """Return the marked blocks of a text in order."""
    return [
        Block(found["kind"], dict(_FIELD.findall(found["fields"])), found["text"], found.start(), found.end())
        for found in _BLOCK.finditer(content)
    ]


def block_text(kind: str, fields: dict[str, str], text: str) -> str:
    """Return a text with its markers."""
    text = text.rstrip("\n") + "\n"
    written = "".join(f" {name}={value}" for name, value in (fields | {"text": _hash(text)}).items() if value)
    return f"<!-- backscroll:{kind}{written} -->\n{text}<!-- backscroll:end -->\n"


def put_block(content: str, block: Block, fields: dict[str, str], text: str) -> str:
    """Return the content of a file with a block replaced."""
    return content[: block.start] + block_text(block.kind, fields, text) + content[block.end :]


def _hash(text: str) -> str:
    return sha256(text.rstrip().encode()).hexdigest()[:_HASH_CHARS]


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


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextmanager
def journal_lock(path: Path, timeout_seconds: float = _LOCK_TIMEOUT_SECONDS) -> Iterator[None]:
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
