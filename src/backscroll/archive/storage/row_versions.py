"""Whether a newer version of a row still holds all that the older one said."""

from typing import Any

import msgspec

__all__ = ["is_superset"]

_FAILURES = (msgspec.MsgspecError, ValueError, RecursionError)
_DOCUMENT = ("{", "[")


def is_superset(new: bytes, old: bytes, passing: tuple[str, ...] = ()) -> bool:
    """Whether nothing is lost when the old one goes.

    Text may have grown at its end, objects and lists anywhere. A number or a truth value under a name is a
    state, and so is whatever lies under one of the ``passing`` names; an empty one among them is all of it.
    """
    if "" in passing or new.startswith(old):
        return True
    try:
        return _holds(_document(new), _document(old), frozenset(passing))
    except _FAILURES:
        return False


def _document(value: bytes) -> Any:
    """A JSON document, also one that is spelled in hexadecimal digits. Raises when it is neither."""
    try:
        return msgspec.json.decode(value)
    except msgspec.MsgspecError:
        return msgspec.json.decode(bytes.fromhex(value.decode("ascii")))


def _holds(new: Any, old: Any, passing: frozenset[str]) -> bool:
    if type(new) is type(old) and new == old:  # most of a long session is as it was
        return True
    match old:
        case None:
            return True
        case str():
            return isinstance(new, str) and _holds_text(new, old, passing)
        case dict():
            return isinstance(new, dict) and all(
                name in passing or (name in new and _holds_field(name, new[name], value, passing))
                for name, value in old.items()
            )
        case list():
            return isinstance(new, list) and _holds_each(new, old, passing)
    return False


def _holds_field(name: str, new: Any, old: Any, passing: frozenset[str]) -> bool:
    if isinstance(old, int | float) and isinstance(new, int | float) and not name.isdecimal():
        return True  # under a number, it is one of many, as bytes of a picture are
    return _holds(new, old, passing)


def _holds_text(new: str, old: str, passing: frozenset[str]) -> bool:
    if new.startswith(old):
        return True
    if not old.startswith(_DOCUMENT) or not new.startswith(_DOCUMENT):
        return False
    try:
        return _holds(msgspec.json.decode(new), msgspec.json.decode(old), passing)
    except msgspec.MsgspecError:
        return False


def _holds_each(new: list[Any], old: list[Any], passing: frozenset[str]) -> bool:
    """Whether the items are all there, in their order, whatever stands between them."""
    rest = iter(new)
    return all(any(_holds(candidate, item, passing) for candidate in rest) for item in old)
