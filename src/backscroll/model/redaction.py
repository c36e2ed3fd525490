"""Secrets that were found, without their text."""

from msgspec import Struct

__all__ = ["FoundSecret", "SecretLocation"]


class SecretLocation(Struct, frozen=True):
    """Where something was replaced; no position means the session's own title, preview or folder."""

    ref: str
    position: int | None


class FoundSecret(Struct, frozen=True):
    """What was replaced, without saying it."""

    kind: str
    number: int
    hint: str
    count: int
    locations: tuple[SecretLocation, ...]
