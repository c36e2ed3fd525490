"""Compare two versions of a database row: does the newer one contain everything of the older one?"""

from typing import Any

import msgspec

__all__ = ["is_superset"]

_PARSE_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)
_JSON_STARTS = ("{", "[")


def is_superset(new: bytes, old: bytes, volatile_fields: tuple[str, ...] = ()) -> bool:
    """Return whether no content is lost if the old version is deleted.

    Text may have grown at its end, objects and lists anywhere. A number or boolean in a named field is state
    and may change, as may the ``volatile_fields``. An empty name among them makes the whole value volatile.
    """
    if "" in volatile_fields or new.startswith(old):
        return True
    try:
        return _contains(_decode(new), _decode(old), frozenset(volatile_fields))
    except _PARSE_ERRORS:
        return False


def _decode(value: bytes) -> Any:
    """Decode JSON or hexadecimal digits of JSON. Raises one of `_PARSE_ERRORS` if it is neither."""
    try:
        return msgspec.json.decode(value)
    except msgspec.MsgspecError:
        return msgspec.json.decode(bytes.fromhex(value.decode("ascii")))


def _contains(new: Any, old: Any, volatile: frozenset[str]) -> bool:
    if type(new) is type(old) and new == old:  # the most frequent case in a long session
        return True
    match old:
        case None:
            return True
        case str():
            return isinstance(new, str) and _contains_text(new, old, volatile)
        case dict():
            return isinstance(new, dict) and all(
                name in volatile or (name in new and _contains_field(name, new[name], value, volatile))
                for name, value in old.items()
            )
        case list():
            return isinstance(new, list) and _contains_items(new, old, volatile)
    return False


def _contains_field(name: str, new: Any, old: Any, volatile: frozenset[str]) -> bool:
    # A number under a numeric name is content: a list spelled as an object, such as the bytes of an image.
    if isinstance(old, int | float) and isinstance(new, int | float) and not name.isdecimal():
        return True
    return _contains(new, old, volatile)


def _contains_text(new: str, old: str, volatile: frozenset[str]) -> bool:
    if new.startswith(old):
        return True
    if not old.startswith(_JSON_STARTS) or not new.startswith(_JSON_STARTS):
        return False
    try:
        return _contains(msgspec.json.decode(new), msgspec.json.decode(old), volatile)
    except msgspec.MsgspecError:
        return False


def _contains_items(new: list[Any], old: list[Any], volatile: frozenset[str]) -> bool:
    """Return whether all old items are in the new list, in the same order."""
    remaining = iter(new)
    return all(any(_contains(candidate, item, volatile) for candidate in remaining) for item in old)
