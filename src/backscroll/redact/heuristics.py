"""Decide whether a value after a name like "password" or "token" is a secret.

Source code mentions passwords and tokens often without containing any: as types, variables, counts,
examples and names of settings.
"""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections import Counter
from math import log2

__all__ = ["decode_base64", "entropy", "is_placeholder", "is_plausible"]

_PLACEHOLDER = re.compile(
    r"x{3,}|\*{3,}|\.{3,}|…|^\$[A-Za-z_{(]|\$\{|\{\{|^\{|^<|^%\w+%|^\[|your|example|changeme|placeholder|redacted"
    r"|dummy|^fake|^sample|^insert|^(?:null|none|undefined|true|false|todo)\b",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(r"password|passwd|secret|token|api_?-?key", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$.-]*")
_PASSWORD_PLACEHOLDER = re.compile(
    r"[${<\[]|\*{3}|\.{3}|…|^x+$|^(?:password|passwd|pass|pwd|secret|token)$", re.IGNORECASE
)
_DOTTED_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:[.:/-]+[A-Za-z_$][\w$]*)+[!?]?")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DIGEST = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128}")
_PATH_OR_URL = re.compile(r"/|\./|~/|https?://|sha\d+[-:]|data:|--|=")
_PASSWORD_NAME_PREFIXES = ("pass", "pwd")
_MIN_PASSWORD_CHARS = 6
_MIN_KEY_CHARS = 16
_MIN_KEY_ENTROPY_BITS = 3  # per character
_MIN_RANDOM_ENTROPY_BITS = 3.5


def is_plausible(name: str, value: str, *, is_quoted: bool = False) -> bool:
    """Return whether the value after such a name is a secret, and not code, prose or a placeholder."""
    is_password = name.lower().startswith(_PASSWORD_NAME_PREFIXES)
    value = value if is_quoted else value.rstrip(".,:!?")
    has_letter = any(char.isalpha() for char in value)
    has_digit = any(char.isdigit() for char in value)
    if not has_letter or _PLACEHOLDER.search(value) or _PATH_OR_URL.match(value):
        return False
    if (
        _SECRET_NAME.search(value)
        and _IDENTIFIER.fullmatch(value)
        and not (is_password and is_quoted and has_digit)
    ):
        return False  # a variable named after the secret it holds
    if _DOTTED_NAME.fullmatch(value) and not any(_is_random(part) for part in re.split(r"[.:/-]", value)):
        return False
    if is_password:
        has_punctuation = any(not char.isalnum() and char not in "_.-/:=" for char in value)
        return len(value) >= _MIN_PASSWORD_CHARS and (has_digit or has_punctuation)
    if len(value) < _MIN_KEY_CHARS or not has_digit or entropy(value) < _MIN_KEY_ENTROPY_BITS:
        return False
    return not (name.lower() == "token" and (_UUID.fullmatch(value) or _DIGEST.fullmatch(value)))


def _is_random(part: str) -> bool:
    return (
        len(part) >= _MIN_KEY_CHARS
        and any(map(str.isdigit, part))
        and entropy(part) > _MIN_RANDOM_ENTROPY_BITS
    )


def is_placeholder(password: str) -> bool:
    """Return whether the text only marks the position of a password."""
    return _PASSWORD_PLACEHOLDER.search(password) is not None


def entropy(value: str) -> float:
    """Return the Shannon entropy in bits per character."""
    return -sum(n / len(value) * log2(n / len(value)) for n in Counter(value).values())


def decode_base64(text: str) -> bytes:
    """Decode base64, also the URL-safe alphabet; empty if the text is not base64."""
    try:
        return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if set("-_") & set(text) else b"+/")
    except (Base64Error, ValueError):
        return b""
