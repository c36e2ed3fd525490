"""Files of the journal: entries and notes between markers, and the user's own text around them.

A marked block is only replaced if the user has not changed it. Everything else in a file stays as it is.
"""

import re
from collections.abc import Iterator
from datetime import date, datetime, tzinfo
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from backscroll.errors import DestinationError
from backscroll.journal.files.atomic_write import read_text, write_atomically
from backscroll.model.dates import iso

__all__ = ["Block", "DailyFiles", "block_text", "parse_blocks", "put_block"]

_BLOCK = re.compile(
    r"^<!-- backscroll:(?P<kind>entry|reflection|context|summary)(?P<fields>(?: [a-z]+=[^ ]+)*) -->\n"
    r"(?P<text>.*?)^<!-- backscroll:end -->\n?",
    re.MULTILINE | re.DOTALL,
)
_FIELD = re.compile(r" ([a-z]+)=([^ ]+)")
_DAILY_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})-journal\.md")
_HASH_CHARS = 12


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
