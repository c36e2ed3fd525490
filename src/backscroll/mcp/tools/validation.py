"""Validation of tool arguments, and JSON schemas of arguments and results.

Errors name the parameter, the allowed values and the nearest valid call.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.documents import schemas
from backscroll.errors import UsageError
from backscroll.mcp.tools.registry import Tool
from backscroll.mcp.tools.results import NAMES, AnswerFields, rename
from backscroll.model.text import one_line

MAX_VALUE_CHARS = 60
MAX_CALL_CHARS = 500
MIN_SIMILARITY = 0.7  # of values; at 0.6, "king" is similar to "thinking"
_PLACEHOLDER = "…"
# Names that models use for a parameter.
_OTHER_NAMES = {
    "ref": (
        "session_id", "session_ref", "session", "sessionid", "id", "uuid", "agent_id", "agent_ref", "agent",
    ),
    "position": (
        "from", "start", "message_index", "message_position", "message", "message_id", "index", "n", "offset",
        "next_position",
    ),
    "file": ("path", "file_path", "filename", "filepath"),
    "lines": ("line", "range", "line_range", "line_number"),
    "repository": ("repo", "repository_path", "cwd", "folder", "path", "directory"),
    "revision": ("sha", "commit", "hash", "commit_sha", "commit_hash", "ref"),
    "target": ("destination", "to", "new", "new_path", "folder"),
    "refs": ("ref", "sessions", "session_ids", "session_id", "session"),
    "count": ("limit", "max_messages", "n"),
    "limit": ("count", "max_results", "top_k", "page_size", "n"),
    "query": ("q", "text", "words", "search", "keywords", "task", "pattern_text"),
    "task": ("query", "question", "q", "text", "topic", "prompt"),
    "token_budget": ("max_tokens", "tokens", "budget", "limit"),
    "workspace": ("project", "folder", "path", "cwd", "directory", "workspace_path", "repo", "repository"),
    "since": ("after", "start_date", "from_date", "date_from"),
    "until": ("before", "end_date", "to_date", "date_to"),
    "source": ("platform", "tool", "client"),
    "by": ("group_by", "groupby", "grouping"),
    "from_char": ("next_from_char", "start_char", "char_offset", "offset"),
    "max_chars": ("max_length", "limit", "max_characters"),
    "role": ("roles",),
    "roles": ("role",),
}  # fmt: skip


def parse_arguments(tool: Tool, given: Mapping[str, Any], others: Iterable[Tool] = ()) -> Any:
    """Return the arguments of a tool. Raise `UsageError` if they are invalid.

    The message mentions which of the other tools has an unknown parameter.
    """
    try:
        return msgspec.convert(given, type=tool.arguments, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(_explain(tool, given, others) or str(error)) from error


def _explain(tool: Tool, given: Mapping[str, Any], others: Iterable[Tool]) -> str:
    """Return everything that is wrong with the arguments, and the nearest valid call."""
    schemas: dict[str, Any] = argument_schema(tool.arguments)["properties"]
    fields = {field.encode_name: field for field in msgspec.structs.fields(tool.arguments)}
    problems: list[str] = []
    call: dict[str, Any] = {}
    for name, value in given.items():
        if name not in fields:
            meant = _similar_name(name, [known for known in fields if known not in given])
            problems.append(_unknown_parameter(tool, name, meant, others))
            if meant is not None and meant not in call and _is_valid(value, fields[meant].type):
                call[meant] = value
        elif _is_valid(value, fields[name].type):
            call[name] = value
        else:
            shown = one_line(msgspec.json.encode(value).decode(), MAX_VALUE_CHARS)
            problems.append(f"Invalid value {shown} for '{name}': must be {_describe(schemas[name])}.")
            nearest = _nearest_value(value, schemas[name])
            if nearest is not None and _is_valid(nearest, fields[name].type):
                call[name] = nearest
    for name, field in fields.items():
        if field.required and name not in call:
            if name not in given:
                problems.append(f"Missing parameter '{name}': {_describe(schemas[name])}.")
            is_list = next(_options(schemas[name])).get("type") == "array"
            call[name] = [_PLACEHOLDER] if is_list else _PLACEHOLDER
    encoded = msgspec.json.encode(call).decode()
    if len(encoded) <= MAX_CALL_CHARS:
        problems.append(f"Nearest valid call: {tool.name} {encoded}")
    return "\n".join(problems)


def _unknown_parameter(tool: Tool, name: str, meant: str | None, others: Iterable[Tool]) -> str:
    text = f"Unknown parameter '{one_line(name, MAX_VALUE_CHARS)}'."
    if meant is not None:
        return f"{text} Did you mean '{meant}'?"
    names = [other.name for other in others if name in _parameters(other)]
    if names:
        return f"{text} {' and '.join(names[:2])} {'has' if len(names) == 1 else 'have'} it."
    return f"{text} {tool.name} has: {', '.join(_parameters(tool))}."


def _parameters(tool: Tool) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(tool.arguments))


def _similar_name(name: str, known: Sequence[str]) -> str | None:
    """Return the parameter that was probably meant."""
    folded = name.casefold().replace("-", "_")
    for parameter in known:
        if folded in _OTHER_NAMES.get(parameter, ()):
            return parameter
    close = get_close_matches(folded, known, n=1)
    return close[0] if close else None


def _is_valid(value: Any, type_: Any) -> bool:
    try:
        msgspec.convert(value, type=type_, strict=False)
    except msgspec.ValidationError:
        return False
    return True


def _options(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the types that a schema allows, except null."""
    for option in schema.get("anyOf", [schema]):
        if option.get("type") != "null":
            yield option


def _allowed_values(schema: Mapping[str, Any]) -> list[str]:
    return [value for value in schema.get("enum", ()) if value is not None]


def _describe(schema: Mapping[str, Any]) -> str:
    """Return the allowed values of a parameter in words."""
    option = next(_options(schema))
    if allowed := _allowed_values(option):
        return f"one of {', '.join(allowed)}"
    match option.get("type"):
        case "integer":
            return f"an integer from {option['minimum']} to {option['maximum']}"
        case "boolean":
            return "true or false"
        case "array":
            allowed = _allowed_values(option["items"])
            texts = "a list of one or more texts" if option.get("minItems") else "a list of texts"
            return f"a list with values from: {', '.join(allowed)}" if allowed else texts
    if "maxLength" not in option:
        return "a text"
    return f"a text of {option.get('minLength', 0)} to {option['maxLength']} characters"


def _nearest_value(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return the valid value that is nearest to an invalid one; None if there is none."""
    option = next(_options(schema))
    if allowed := _allowed_values(option):
        close = get_close_matches(str(value).casefold(), allowed, n=1, cutoff=MIN_SIMILARITY)
        return close[0] if close else None
    match option.get("type"), value:
        case "string", int() if not isinstance(value, bool):
            return str(value)
        case "integer", int() | float() if math.isfinite(value):
            return min(max(int(value), option["minimum"]), option["maximum"])
        case "array", str():
            return _nearest_value([value], schema)
        case "array", list():
            if not _allowed_values(option["items"]):
                return [str(each) for each in value]
            near = [_nearest_value(each, option["items"]) for each in value]
            return [each for each in near if each is not None] or None
    return None


def argument_schema(arguments: type[Struct]) -> dict[str, Any]:
    """Return the JSON schema of arguments. Null is left out: optional arguments are omitted instead."""
    schema = msgspec.json.schema(arguments)
    root: dict[str, Any] = schema["$defs"].pop(schema["$ref"].rpartition("/")[2])
    root.pop("title", None)
    root["properties"] = {name: _without_null(field) for name, field in root["properties"].items()}
    return root


def result_schema(result: type[Struct]) -> dict[str, Any]:
    """Return the JSON schema of a result. Null and empty fields are omitted, so few are required."""
    _, definitions = schemas([result, AnswerFields], "#/$defs/{name}")
    root, common = (definitions.pop(type_.__name__) for type_ in (result, AnswerFields))
    required = [name for name in root["required"] if not _is_nullable(root["properties"][name])]
    for type_, names in NAMES.items():
        if type_.__name__ in definitions:
            definition = definitions[type_.__name__]
            definition["properties"] = rename(definition["properties"], names)
    for definition in definitions.values():
        del definition["required"]
    root["properties"] = common["properties"] | root["properties"]
    root["required"] = common["required"] + required
    used = str([root, definitions])  # parts of fields that are left out are not
    definitions = {name: schema for name, schema in definitions.items() if f"#/$defs/{name}'" in used}
    return root | ({"$defs": definitions} if definitions else {})


def _is_nullable(schema: Mapping[str, Any]) -> bool:
    return any(option.get("type") == "null" for option in schema.get("anyOf", ()))


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an optional argument without null, which costs tokens and says nothing."""
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        schema = options[0] | {key: value for key, value in schema.items() if key != "anyOf"}
    if "enum" in schema:
        schema = schema | {"enum": [value for value in schema["enum"] if value is not None]}
    return {key: value for key, value in schema.items() if key != "default" or value is not None}


def shown_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of arguments as models read it: without the lengths of texts and lists.

    They are checked nevertheless. Without them, the definitions of all tools are a tenth shorter.
    """
    return {
        key: shown_schema(value) if isinstance(value, dict) else value
        for key, value in schema.items()
        if key not in ("minLength", "maxLength", "minItems", "maxItems")
    }
