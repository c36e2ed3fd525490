"""Addresses of sessions and messages, and page numbers in addresses."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from urllib.parse import urlencode

from backscroll.errors import SessionNotFoundError, UsageError

__all__ = ["decode_ref", "message_url", "parse_page", "session_url", "with_query"]

# Refs of nearly all sessions and subagents. Others are encoded.
_PLAIN_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*(/[A-Za-z0-9_.-]+)?")


def session_url(ref: str, part: str = "", **query: object) -> str:
    """Return the address of a session, or of a part of it such as ``export``."""
    if _PLAIN_REF.fullmatch(ref):
        ref = ref.replace("/", "+")  # between a session and a subagent
    else:
        ref = "~" + urlsafe_b64encode(ref.encode("utf-8", "surrogatepass")).decode().rstrip("=")
    return with_query(f"/sessions/{ref}{'/' if part else ''}{part}", query)


def message_url(ref: str, position: int) -> str:
    """Return the address of a message in its session."""
    return f"{session_url(ref, at=position)}#m{position}"


def with_query(path: str, query: Mapping[str, object]) -> str:
    """Return a path with the values that are not empty as its query."""
    given = [(name, value) for name, value in query.items() if value or (value == 0 and value is not False)]
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def decode_ref(text: str) -> str:
    """Return the ref in an address. Raises `SessionNotFoundError` if it is not valid."""
    if not text.startswith("~"):
        return text.replace("+", "/")
    try:
        encoded = text[1:].encode("ascii")
        return urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4)).decode("utf-8", "surrogatepass")
    except ValueError as error:
        raise SessionNotFoundError(f"No session matches {text!r}.", text) from error


def parse_page(text: str, max_page: int) -> int:
    """Return the page number in an address. Raises `UsageError` if it is not between 1 and ``max_page``."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(max_page))
    if not is_number or not 1 <= int(text) <= max_page:
        raise UsageError(f"{text[:40]!r} is not a page. Use a number from 1.")
    return int(text)
