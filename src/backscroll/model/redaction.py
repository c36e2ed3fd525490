"""What can be redacted, and secrets that were found, without their text."""

from typing import Literal, get_args

from msgspec import Struct

__all__ = ["SECRET_CATEGORIES", "FoundSecret", "SecretCategory", "SecretLocation"]

SecretCategory = Literal["secrets", "emails", "paths"]
SECRET_CATEGORIES: tuple[SecretCategory, ...] = get_args(SecretCategory)


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
