"""JSON as people keep it in settings files, with comments and commas too many: changed in place.

Only the member that is meant changes; everything else stays as it is to the character.
"""

import json
import re
from typing import Any

from msgspec import Struct

__all__ = ["NotJsonError", "decoded", "with_member", "without_member"]

_TRIVIA = re.compile(r"(?:[\s\ufeff]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"[^\s,:\[\]{}\"/]+")
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)?[ \t]*(?=\r?\n|\Z)")


class NotJsonError(Exception):
    """The text is no JSON object, not even with comments; says where."""


class _Member(Struct, frozen=True):
    name: str
    start: int  # of its name
    value: int  # where its value begins
    end: int  # after its value


class _Object(Struct, frozen=True):
    open: int
    close: int
    members: list[_Member]


def decoded(text: str) -> dict[str, Any]:
    """What it says."""
    _root(text)
    said: dict[str, Any] = json.loads(_plain(text))
    return said


def with_member(text: str, group: str, name: str, value: Any) -> str:
    """The text with a member in the object that ``group`` names; either is made when it is not there.

    What an object of that name has beside what ``value`` says stays with it.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    if _skip(text, 0) == len(text):
        whole = json.dumps({group: {name: value}}, indent=2, ensure_ascii=False)
        return text + f"{whole}\n".replace("\n", newline)
    root = _root(text)
    found = _member(root, group)
    if found is None:
        return _inserted(text, root, group, {name: value}, newline)
    inner = _group(text, found)
    known = _member(inner, name)
    if known is None:
        return _inserted(text, inner, name, value, newline)
    there = json.loads(_plain(text[known.value : known.end]))
    if isinstance(there, dict) and isinstance(value, dict):
        value = {**there, **value}
    if there == value:
        return text
    told = _written(value, _indent(text, known.start), _step(text, inner), newline)
    return text[: known.value] + told + text[known.end :]


def without_member(text: str, group: str, name: str) -> str:
    """The text without a member of that object; the same when there is none."""
    if _skip(text, 0) == len(text) or (found := _member(_root(text), group)) is None:
        return text
    inner = _group(text, found)
    known = _member(inner, name)
    if known is None:
        return text
    place = inner.members.index(known)
    start, end = known.start, known.end
    comma = _comma(text, end)
    if comma is not None:
        end = comma + 1
    if not text[text.rfind("\n", 0, start) + 1 : start].strip() and (rest := _REST_OF_LINE.match(text, end)):
        # It has its lines to itself: they go, and so does what was remarked on the last of them.
        start = text.rfind("\n", 0, start) + 1
        end = rest.end() + len(re.match(r"\r?\n|", text[rest.end() :])[0])  # type: ignore[index]
    elif comma is not None:
        end = re.compile(r"[ \t]*").match(text, end).end()  # type: ignore[union-attr]
    if comma is None and place:
        before = _comma(text, inner.members[place - 1].end)
        assert before is not None
        return text[:before] + text[before + 1 : start] + text[end:]
    return text[:start] + text[end:]


def _inserted(text: str, into: _Object, name: str, value: Any, newline: str) -> str:
    entry = f"{json.dumps(name, ensure_ascii=False)}: "
    if not into.members:
        outer = _indent(text, into.open)
        indent = outer + _step(text, into)
        told = entry + _written(value, indent, _step(text, into), newline)
        rest = text[into.open + 1 :]
        end = "" if rest[: into.close - into.open - 1].strip(" \t") else newline + outer
        if not end:
            return f"{text[: into.open + 1]}{newline}{indent}{told}{rest}"
        return f"{text[: into.open + 1]}{newline}{indent}{told}{end}{text[into.close :]}"
    last = into.members[-1]
    comma = _comma(text, last.end)
    ending = "" if comma is None else ","  # where the last member has a comma, the new one has it too
    if "\n" not in text[into.open : into.members[0].start]:
        told = entry + json.dumps(value, ensure_ascii=False) + ending
        at = last.end if comma is None else comma + 1
        return f"{text[:at]}{',' if comma is None else ''} {told}{text[at:]}"
    indent = _indent(text, last.start)
    told = entry + _written(value, indent, _step(text, into), newline) + ending
    if comma is None:
        text, at = f"{text[: last.end]},{text[last.end :]}", last.end + 1
    else:
        at = comma + 1
    rest_of_line = _REST_OF_LINE.match(text, at)
    at = rest_of_line.end() if rest_of_line else at
    return f"{text[:at]}{newline}{indent}{told}{text[at:]}"


def _written(value: Any, indent: str, step: str, newline: str) -> str:
    return json.dumps(value, indent=step, ensure_ascii=False).replace("\n", newline + indent)


def _step(text: str, inside: _Object) -> str:
    """By how much each level is set in."""
    outer = _indent(text, inside.open)
    for one in inside.members:
        inner = _indent(text, one.start)
        if inner.startswith(outer) and inner != outer:
            return inner[len(outer) :]
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _indent(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _comma(text: str, place: int) -> int | None:
    after = _skip(text, place)
    return after if text[after : after + 1] == "," else None


def _group(text: str, found: _Member) -> _Object:
    if text[found.value] != "{":
        raise NotJsonError(f"{found.name} is not an object")
    return _object(text, found.value)


def _member(of: _Object, name: str) -> _Member | None:
    return next((one for one in reversed(of.members) if one.name == name), None)


def _root(text: str) -> _Object:
    start = _skip(text, 0)
    if text[start : start + 1] != "{":
        raise NotJsonError(f"it does not begin with an object {_where(text, start)}")
    root = _object(text, start)
    rest = _skip(text, root.close + 1)
    if rest != len(text):
        raise NotJsonError(f"something follows its end {_where(text, rest)}")
    return root


def _object(text: str, start: int) -> _Object:
    members: list[_Member] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        name = _STRING.match(text, at)
        if name is None:
            raise NotJsonError(f"a name is missing {_where(text, at)}")
        colon = _skip(text, name.end())
        if text[colon : colon + 1] != ":":
            raise NotJsonError(f"a colon is missing {_where(text, colon)}")
        value = _skip(text, colon + 1)
        end = _end_of(text, value)
        members.append(_Member(json.loads(name[0], strict=False), at, value, end))
        at = _after(text, end, "}")
    return _Object(start, at, members)


def _end_of(text: str, at: int) -> int:
    match text[at : at + 1]:
        case "{":
            return _object(text, at).close + 1
        case "[":
            at = _skip(text, at + 1)
            while text[at : at + 1] != "]":
                at = _after(text, _end_of(text, at), "]")
            return at + 1
        case '"':
            found = _STRING.match(text, at)
        case _:
            found = _SCALAR.match(text, at)
    if found is None:
        raise NotJsonError(f"a value is missing {_where(text, at)}")
    return found.end()


def _after(text: str, end: int, closing: str) -> int:
    """Where the next member begins, or the end is."""
    at = _skip(text, end)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise NotJsonError(f"a comma is missing {_where(text, at)}")
    return at


def _skip(text: str, at: int) -> int:
    found = _TRIVIA.match(text, at)
    assert found is not None
    return found.end()


def _where(text: str, at: int) -> str:
    return f"in line {text.count(chr(10), 0, at) + 1}"


def _plain(text: str) -> str:
    """The same as JSON without comments and without commas before an end."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        at = _skip(text, at)
        found = _STRING.match(text, at) or _SCALAR.match(text, at)
        piece = found[0] if found else text[at : at + 1]
        if piece in ("}", "]") and pieces and pieces[-1] == ",":
            pieces.pop()
        pieces.append(piece)
        at += max(len(piece), 1)
    return "".join(pieces)
