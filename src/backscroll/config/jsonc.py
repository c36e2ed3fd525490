"""Edit settings in JSON with comments and trailing commas.

Only the given member or element changes. All other characters of the file stay the same.
"""

import json
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

Path: TypeAlias = Sequence[str | int]  # names of members and positions in lists, from the root

_WHITESPACE = re.compile(r"(?:[\s\ufeff]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)  # including comments
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"[^\s,:\[\]{}\"/]+")
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)?[ \t]*(?=\r?\n|\Z)")


class NotJsonError(Exception):
    """The text is not a JSON object with comments. The message contains the reason."""


class _Member(Struct, frozen=True):
    """A member of an object or an element of a list, as offsets in the text."""

    name: str  # empty for an element
    start: int  # of the name
    value: int  # start of the value
    end: int  # of the value


class _Object(Struct, frozen=True):
    """An object or a list, as offsets in the text."""

    open: int  # of "{" or "["
    close: int  # of "}" or "]"
    members: list[_Member]


def parse(text: str) -> dict[str, Any]:
    """Parse a JSON object with comments. Raise `NotJsonError` if it is invalid.

    A text without content is an empty object.
    """
    if _is_blank(text):
        return {}
    _parse_root(text)
    parsed: dict[str, Any] = json.loads(_strip_comments(text))
    return parsed


def with_member(text: str, group: str, name: str, value: Any, *, obsolete: Collection[str] = ()) -> str:
    """Return the text with a member added to the object ``group``, which is created if necessary.

    An existing member is updated: its fields that are not in ``value`` are kept, except ``obsolete`` ones.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    if _is_blank(text):
        document = json.dumps({group: {name: value}}, indent=2, ensure_ascii=False)
        return text + f"{document}\n".replace("\n", newline)
    root = _parse_root(text)
    group_member = _find_member(root, group)
    if group_member is None:
        return _insert_member(text, root, group, {name: value}, newline=newline)
    group_object = _parse_group(text, group_member)
    member = _find_member(group_object, name)
    if member is None:
        return _insert_member(text, group_object, name, value, newline=newline)
    current = json.loads(_strip_comments(text[member.value : member.end]))
    if isinstance(current, dict) and isinstance(value, dict):
        value = {key: one for key, one in current.items() if key not in obsolete} | value
    if current == value:
        return text
    indent = _indent_at(text, member.start)
    formatted = _format(value, indent, indent_unit=_indent_unit(text, group_object), newline=newline)
    return text[: member.value] + formatted + text[member.end :]


def without_member(text: str, group: str, name: str) -> str:
    """Return the text without a member of the object ``group``; unchanged if there is none."""
    if _is_blank(text) or (group_member := _find_member(_parse_root(text), group)) is None:
        return text
    group_object = _parse_group(text, group_member)
    member = _find_member(group_object, name)
    if member is None:
        return text
    return _remove(text, group_object, group_object.members.index(member))


def with_field(text: str, name: str, value: Any) -> str:
    """Return the text with a member added to the root, unless it has one with this name."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if _is_blank(text):
        document = json.dumps({name: value}, indent=2, ensure_ascii=False)
        return text + f"{document}\n".replace("\n", newline)
    root = _parse_root(text)
    if _find_member(root, name) is not None:
        return text
    return _insert_member(text, root, name, value, newline=newline)


def with_element(text: str, path: Path, value: Any) -> str:
    """Return the text with an element added to the list at a path, which is created if necessary."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if _is_blank(text):
        document = json.dumps(_nested(path, [value]), indent=2, ensure_ascii=False)
        return text + f"{document}\n".replace("\n", newline)
    container = _parse_root(text)
    for depth, name in enumerate(path):
        member = _find(container, name)
        if member is None:
            if not isinstance(name, str):
                raise NotJsonError(f"there is no element {name}")
            return _insert_member(text, container, name, _nested(path[depth + 1 :], [value]), newline=newline)
        container = _parse_container(text, member, is_list=depth == len(path) - 1)
    return _insert(text, container, "", value, newline=newline)


def without_elements(text: str, path: Path, is_removed: Callable[[Any], bool]) -> str:
    """Return the text without some elements of the list at a path; unchanged if there are none.

    A list that becomes empty is removed too, and then every object or list that becomes empty by that.
    """
    if _is_blank(text):
        return text
    containers = [_parse_root(text)]
    for depth, name in enumerate(path):
        member = _find(containers[-1], name)
        if member is None:
            return text
        containers.append(_parse_container(text, member, is_list=depth == len(path) - 1))
    elements = containers[-1]
    removed = [
        index
        for index, element in enumerate(elements.members)
        if is_removed(json.loads(_strip_comments(text[element.value : element.end])))
    ]
    if removed and len(removed) == len(elements.members):
        while len(containers) > 2 and len(containers[-2].members) == 1:
            containers.pop()
        parent = containers[-2]
        member = _find(parent, path[len(containers) - 2])
        assert member is not None
        return _remove(text, parent, parent.members.index(member))
    for index in reversed(removed):
        text = _remove(text, _parse_list(text, elements.open), index)
    return text


def _nested(path: Path, value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _remove(text: str, container: _Object, index: int) -> str:
    """Return the text without a member or element, its comma, and its lines if nothing else is on them."""
    start, end = container.members[index].start, container.members[index].end
    comma = _find_comma(text, end)
    if comma is not None:
        end = comma + 1
    line_start = text.rfind("\n", 0, start) + 1
    if not text[line_start:start].strip() and (rest_of_line := _REST_OF_LINE.match(text, end)):
        # No other member is on these lines: remove them with the comment at their end.
        start = line_start
        end = rest_of_line.end()
        end += len(re.match(r"\r?\n|", text[end:])[0])  # type: ignore[index]
    elif comma is not None:
        end = re.compile(r"[ \t]*").match(text, end).end()  # type: ignore[union-attr]
    if comma is None and index:
        comma_before = _find_comma(text, container.members[index - 1].end)
        assert comma_before is not None
        between = text[comma_before + 1 : start]
        return text[:comma_before] + (between if between.strip(" \t") else "") + text[end:]
    return text[:start] + text[end:]


def _insert_member(text: str, into: _Object, name: str, value: Any, *, newline: str) -> str:
    return _insert(text, into, f"{json.dumps(name, ensure_ascii=False)}: ", value, newline=newline)


def _insert(text: str, into: _Object, key: str, value: Any, *, newline: str) -> str:
    """Return the text with a member or, without a key, an element at the end of an object or list."""
    indent_unit = _indent_unit(text, into)
    if not into.members:
        outer_indent = _indent_at(text, into.open)
        indent = outer_indent + indent_unit
        entry = key + _format(value, indent, indent_unit=indent_unit, newline=newline)
        before = f"{text[: into.open + 1]}{newline}{indent}{entry}"
        if text[into.open + 1 : into.close].strip(" \t"):  # comments or line breaks
            return before + text[into.open + 1 :]
        return f"{before}{newline}{outer_indent}{text[into.close :]}"
    last = into.members[-1]
    comma = _find_comma(text, last.end)
    trailing_comma = "" if comma is None else ","  # as after the last member now
    if "\n" not in text[into.open : into.members[0].start]:
        entry = key + json.dumps(value, ensure_ascii=False) + trailing_comma
        at = last.end if comma is None else comma + 1
        return f"{text[:at]}{',' if comma is None else ''} {entry}{text[at:]}"
    indent = _indent_at(text, last.start)
    entry = key + _format(value, indent, indent_unit=indent_unit, newline=newline) + trailing_comma
    if comma is None:
        text, at = f"{text[: last.end]},{text[last.end :]}", last.end + 1
    else:
        at = comma + 1
    rest_of_line = _REST_OF_LINE.match(text, at)
    at = rest_of_line.end() if rest_of_line else at
    return f"{text[:at]}{newline}{indent}{entry}{text[at:]}"


def _format(value: Any, indent: str, *, indent_unit: str, newline: str) -> str:
    return json.dumps(value, indent=indent_unit, ensure_ascii=False).replace("\n", newline + indent)


def _indent_unit(text: str, parent: _Object) -> str:
    """Return the indentation per level, as used in the object or elsewhere in the text."""
    outer = _indent_at(text, parent.open)
    for member in parent.members:
        inner = _indent_at(text, member.start)
        if inner.startswith(outer) and inner != outer:
            return inner[len(outer) :]
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _indent_at(text: str, offset: int) -> str:
    """Return the indentation of the line at an offset."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _find_comma(text: str, offset: int) -> int | None:
    """Return the offset of a comma that follows a value."""
    after = _skip_whitespace(text, offset)
    return after if text[after : after + 1] == "," else None


def _find_member(parent: _Object, name: str) -> _Member | None:
    return next((member for member in reversed(parent.members) if member.name == name), None)


def _find(parent: _Object, name: str | int) -> _Member | None:
    """Return a member by name, or an element by position."""
    if isinstance(name, str):
        return _find_member(parent, name)
    return parent.members[name] if name < len(parent.members) else None


def _parse_container(text: str, member: _Member, *, is_list: bool) -> _Object:
    match text[member.value]:
        case "[":
            return _parse_list(text, member.value)
        case "{" if not is_list:
            return _parse_object(text, member.value)
    raise NotJsonError(f"{member.name} is not {'a list' if is_list else 'an object'}")


def _parse_group(text: str, member: _Member) -> _Object:
    if text[member.value] != "{":
        raise NotJsonError(f"{member.name} is not an object")
    return _parse_object(text, member.value)


def _parse_root(text: str) -> _Object:
    start = _skip_whitespace(text, 0)
    if text[start : start + 1] != "{":
        raise NotJsonError(f"the file is not an object {_line_of(text, start)}")
    root = _parse_object(text, start)
    end = _skip_whitespace(text, root.close + 1)
    if end != len(text):
        raise NotJsonError(f"text follows the object {_line_of(text, end)}")
    return root


def _parse_object(text: str, start: int) -> _Object:
    members: list[_Member] = []
    at = _skip_whitespace(text, start + 1)
    while text[at : at + 1] != "}":
        name = _STRING.match(text, at)
        if name is None:
            raise NotJsonError(f"a name is missing {_line_of(text, at)}")
        colon = _skip_whitespace(text, name.end())
        if text[colon : colon + 1] != ":":
            raise NotJsonError(f"a colon is missing {_line_of(text, colon)}")
        value = _skip_whitespace(text, colon + 1)
        end = _end_of_value(text, value)
        members.append(_Member(json.loads(name[0], strict=False), at, value, end))
        at = _next_element(text, end, "}")
    return _Object(start, at, members)


def _parse_list(text: str, start: int) -> _Object:
    elements: list[_Member] = []
    at = _skip_whitespace(text, start + 1)
    while text[at : at + 1] != "]":
        end = _end_of_value(text, at)
        elements.append(_Member("", at, at, end))
        at = _next_element(text, end, "]")
    return _Object(start, at, elements)


def _end_of_value(text: str, at: int) -> int:
    match text[at : at + 1]:
        case "{":
            return _parse_object(text, at).close + 1
        case "[":
            return _parse_list(text, at).close + 1
        case '"':
            found = _STRING.match(text, at)
        case _:
            found = _SCALAR.match(text, at)
    if found is None:
        raise NotJsonError(f"a value is missing {_line_of(text, at)}")
    return found.end()


def _next_element(text: str, end: int, closing: str) -> int:
    """Return the offset of the next element, or of the closing bracket."""
    at = _skip_whitespace(text, end)
    if text[at : at + 1] == ",":
        return _skip_whitespace(text, at + 1)
    if text[at : at + 1] != closing:
        raise NotJsonError(f"a comma is missing {_line_of(text, at)}")
    return at


def _is_blank(text: str) -> bool:
    """Return whether a text has only white space and comments."""
    return _skip_whitespace(text, 0) == len(text)


def _skip_whitespace(text: str, at: int) -> int:
    found = _WHITESPACE.match(text, at)
    assert found is not None
    return found.end()


def _line_of(text: str, at: int) -> str:
    return f"in line {text.count(chr(10), 0, at) + 1}"


def _strip_comments(text: str) -> str:
    """Return the text as standard JSON: without comments and trailing commas."""
    tokens: list[str] = []
    at = 0
    while at < len(text):
        at = _skip_whitespace(text, at)
        found = _STRING.match(text, at) or _SCALAR.match(text, at)
        token = found[0] if found else text[at : at + 1]
        if token in ("}", "]") and tokens and tokens[-1] == ",":
            tokens.pop()
        tokens.append(token)
        at += max(len(token), 1)
    return "".join(tokens)
