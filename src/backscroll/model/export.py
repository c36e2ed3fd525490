"""Formats of an export, and the secrets that redaction finds."""

from pathlib import PurePath
from typing import Literal, get_args

from msgspec import Struct

Format = Literal["md", "html", "json", "jsonl", "txt"]


class FormatFacts(Struct, frozen=True):
    """What interfaces need to know about a format. Its name is the ending of its files."""

    title: str
    media_type: str
    other_endings: tuple[str, ...] = ()  # that users write


# To add a format, add it here and to `Exporter.stream`.
FORMATS: dict[Format, FormatFacts] = {
    "md": FormatFacts("Markdown", "text/markdown", ("markdown",)),
    "html": FormatFacts("HTML", "text/html", ("htm",)),
    "json": FormatFacts("JSON", "application/json"),
    "jsonl": FormatFacts("JSON Lines", "application/x-ndjson", ("ndjson",)),
    "txt": FormatFacts("text", "text/plain", ("text",)),
}


def format_of_file(name: str) -> Format | None:
    """Return the format for the ending of a file name; None if there is none or it is unknown."""
    ending = PurePath(name).suffix.removeprefix(".").lower()
    return next((one for one, facts in FORMATS.items() if ending in (one, *facts.other_endings)), None)


def format_titles() -> str:
    """Return the titles of all formats, for use in a sentence."""
    *others, last = (facts.title for facts in FORMATS.values())
    return f"{', '.join(others)} or {last}"


SecretCategory = Literal["secrets", "emails", "paths"]
SECRET_CATEGORIES: tuple[SecretCategory, ...] = get_args(SecretCategory)


class SecretLocation(Struct, frozen=True):
    """The message that contains a secret. Without a position: the session's title, preview or folder."""

    ref: str
    position: int | None


class FoundSecret(Struct, frozen=True):
    """A secret that was replaced: its kind and locations, without its text."""

    kind: str
    number: int  # as in the placeholder, from 1 for each kind
    hint: str  # prefix common to the kind, and length
    count: int
    locations: tuple[SecretLocation, ...]
