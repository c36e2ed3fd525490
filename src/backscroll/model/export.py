"""Formats of an export, and the secrets that redaction finds."""

from typing import Literal, get_args

from msgspec import Struct

Format = Literal["md", "html", "json", "jsonl", "txt"]
FORMATS: tuple[Format, ...] = get_args(Format)


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
