"""Whether something that is called a secret is one.

Code speaks of passwords and tokens all the time without holding any: types,
variables, counts, examples, names of settings.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections import Counter
from math import log2

__all__ = ["decode_base64", "entropy", "is_placeholder", "is_plausible"]

_STAND_IN = re.compile(
    r"x{3,}|\*{3,}|\.{3,}|…|^\$[A-Za-z_{(]|\$\{|\{\{|^\{|^<|^%\w+%|^\[|your|example|changeme|placeholder|redacted"
    r"|dummy|^fake|^sample|^insert|^(?:null|none|undefined|true|false|todo)\b",
    re.IGNORECASE,
)
_CALLED = re.compile(r"password|passwd|secret|token|api_?-?key", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$.-]*")
_BARE_STAND_IN = re.compile(
    r"[${<\[]|\*{3}|\.{3}|…|^x+$|^(?:password|passwd|pass|pwd|secret|token)$", re.IGNORECASE
)
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:[.:/-]+[A-Za-z_$][\w$]*)+[!?]?")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DIGEST = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128}")
_OTHER = re.compile(r"/|\./|~/|https?://|sha\d+[-:]|data:|--|=")
_PASSWORDS = ("pass", "pwd")
_SHORTEST_PASSWORD = 6
_SHORTEST_KEY = 16


def is_plausible(name: str, value: str, *, is_quoted: bool = False) -> bool:
    """Whether what stands after such a name is a secret and not code, prose or a stand-in for one."""
    is_password = name.lower().startswith(_PASSWORDS)
    value = value if is_quoted else value.rstrip(".,:!?")
    has_letter = any(char.isalpha() for char in value)
    has_digit = any(char.isdigit() for char in value)
    if not has_letter or _STAND_IN.search(value) or _OTHER.match(value):
        return False
    if (
        _CALLED.search(value)
        and _IDENTIFIER.fullmatch(value)
        and not (is_password and is_quoted and has_digit)
    ):
        return False  # it is called what it is: a variable
    if _DOTTED.fullmatch(value) and not any(_is_random(part) for part in re.split(r"[.:/-]", value)):
        return False
    if is_password:
        has_sign = any(not char.isalnum() and char not in "_.-/:=" for char in value)
        return len(value) >= _SHORTEST_PASSWORD and (has_digit or has_sign)
    if len(value) < _SHORTEST_KEY or not has_digit or entropy(value) < 3:
        return False
    return not (name.lower() == "token" and (_UUID.fullmatch(value) or _DIGEST.fullmatch(value)))


def _is_random(part: str) -> bool:
    return len(part) >= _SHORTEST_KEY and any(map(str.isdigit, part)) and entropy(part) > 3.5


def is_placeholder(password: str) -> bool:
    """Whether it only says where a password would stand."""
    return _BARE_STAND_IN.search(password) is not None


def entropy(value: str) -> float:
    """Bits per character."""
    return -sum(n / len(value) * log2(n / len(value)) for n in Counter(value).values())


def decode_base64(text: str) -> bytes:
    """What base64 stands for; nothing when it is none."""
    try:
        return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if set("-_") & set(text) else b"+/")
    except (NotBase64, ValueError):
        return b""
