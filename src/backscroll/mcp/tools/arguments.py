"""Argument types of the tools, their schemas and their validation. Models read the descriptions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, defstruct

from backscroll.config import given_path
from backscroll.errors import UsageError
from backscroll.filters import FILTERS, FilterKind, SessionFilter
from backscroll.history.history import History
from backscroll.model.export import Format
from backscroll.model.message import Role
from backscroll.model.statistics import By
from backscroll.model.text import one_line

if TYPE_CHECKING:
    from backscroll.mcp.tools.registry import Tool


Arguments = TypeVar("Arguments", bound=Struct)
MIN_MESSAGE_CHARS, MAX_MESSAGE_CHARS = 100, 40_000  # limits of max_chars

Offset = Annotated[int, Meta(description="Number of results to skip.", ge=0, le=10_000_000)]
Ref = Annotated[
    str,
    Meta(
        description="Ref of a session from another result, such as claude-code:0f3c9a12.",
        min_length=1,
        max_length=300,
    ),
]
Position = Annotated[
    int, Meta(description="Position of the first message to read, from 0.", ge=0, le=100_000_000)
]
Count = Annotated[int, Meta(description="Maximum number of messages.", ge=1, le=200)]
MaxChars = Annotated[
    int,
    Meta(
        description="Maximum characters of each message. Tool calls get a quarter, unless count is 1.",
        ge=MIN_MESSAGE_CHARS,
        le=MAX_MESSAGE_CHARS,
    ),
]
FromChar = Annotated[
    int,
    Meta(
        description="First character of each message, to read the rest of a long one.",
        ge=0,
        le=1_000_000_000,
    ),
]
Repository = Annotated[
    str,
    Meta(description="Folder in a git repository, as absolute path.", min_length=1, max_length=4000),
]
Revision = Annotated[
    str, Meta(description="Hash, branch or tag of the commit.", min_length=1, max_length=300)
]
PlanId = Annotated[
    str,
    Meta(
        description="Id of a plan that this tool returned for the same arguments. Without it, nothing is"
        " changed.",
        min_length=1,
        max_length=40,
    ),
]
NewFile = Annotated[
    str,
    Meta(
        description="New file, as absolute path. Default: a new name in the folder of backups.",
        min_length=1,
        max_length=4000,
    ),
]
BaseBackup = Annotated[
    str,
    Meta(
        description="Backup in the same folder: write only what changed since. Restoring needs both.",
        min_length=1,
        max_length=4000,
    ),
]
Refs = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=300)]],
    Meta(description="Refs of sessions.", min_length=1, max_length=1000),
]
FolderMaps = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=8000)]],
    Meta(description="Old and new folder as OLD=NEW, to restore elsewhere.", min_length=1, max_length=100),
]
BackupPath = Annotated[str, Meta(description="Backup file, as absolute path.", min_length=1, max_length=4000)]
Mode = Annotated[Literal["copy", "move"], Meta(description="Copy with new ids, or move.")]
Target = Annotated[str, Meta(description="Existing folder, as absolute path.", min_length=1, max_length=4000)]


def _with_filters(
    *names: str, of_messages: tuple[FilterKind, ...] = ()
) -> Callable[[type[Arguments]], type[Arguments]]:
    """Add an argument for each filter, or for those with these names, to the arguments of a tool.

    Those of the kinds in ``of_messages`` apply to messages. `Call.filter` returns the given ones.
    """
    fields = [
        (each.name, *_filter_argument(each, each.help(of_messages=each.kind in of_messages)))
        for each in FILTERS
        if (each.name in names if names else each.text.is_for_assistants)
    ]
    return lambda type_: defstruct(type_.__name__, fields, bases=(type_,), module=__name__)  # type: ignore[return-value]


def _filter_argument(filter_: SessionFilter, help_: str) -> tuple[Any, Any]:
    """Return the type and the default of the argument for a filter."""
    description = f"{help_} {filter_.text.hint}".rstrip()
    match filter_.kind:
        case "flag":
            return Annotated[bool, Meta(description=description)], False
        case "date":
            return Annotated[str, Meta(description=description, max_length=40)] | None, None
        case "tags":
            tag = Annotated[str, Meta(min_length=1, max_length=300)]
            return Annotated[list[tag], Meta(description=description, max_length=100)], []
    if filter_.name == "source":
        return Annotated[Literal[History.source_names()], Meta(description=description)] | None, None
    return Annotated[str, Meta(description=description, min_length=1, max_length=1000)] | None, None


@_with_filters()
class ListSessions(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(description="Maximum number of sessions.", ge=1, le=1000)] = 20
    offset: Offset = 0


class GetSession(Struct, frozen=True, forbid_unknown_fields=True):
    ref: Ref
    roles: Annotated[
        list[Role] | None, Meta(description="Only messages with these roles. Default: all except thinking.")
    ] = None
    position: Position = 0
    count: Count = 20
    max_chars: MaxChars = 800
    from_char: FromChar = 0


class GetAgentSession(Struct, frozen=True, forbid_unknown_fields=True):
    ref: Annotated[
        str, Meta(description="Ref of a subagent, from get_session.", min_length=1, max_length=300)
    ]
    position: Position = 0
    count: Count = 20
    max_chars: MaxChars = 800
    from_char: FromChar = 0


@_with_filters(of_messages=("text", "date"))
class SearchSessions(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[
        str,
        Meta(
            description='Words to find in one message. Also: "a phrase", OR, prefix*, -word (excludes'
            " sessions with the word), and filters such as role:user, tool:Bash, file:app.py, is:error,"
            " has:edits.",
            min_length=1,
            max_length=4000,
        ),
    ]
    limit: Annotated[int, Meta(description="Maximum number of matches.", ge=1, le=100)] = 5
    offset: Offset = 0
    context: Annotated[int, Meta(description="Lines of context around each match.", ge=0, le=20)] = 1
    by: Annotated[
        Literal["session", "message"],
        Meta(description="Return the best message of each session, or every matching message."),
    ] = "session"
    pattern: Annotated[
        Literal["words", "exact", "regex"],
        Meta(description="Whether query is words, an exact substring or a regular expression."),
    ] = "words"
    ignore_case: Annotated[
        bool, Meta(description="Ignore case with pattern=exact or regex. Words always ignore it.")
    ] = False
    role: Annotated[Role | None, Meta(description="Only messages with this role.")] = None


class ExportSession(Struct, frozen=True, forbid_unknown_fields=True):
    ref: Ref
    format: Annotated[Format, Meta(description="Output format.")] = "md"
    max_chars: Annotated[int, Meta(description="Maximum number of characters.", ge=1000, le=200_000)] = 20_000
    from_char: Annotated[int, Meta(description="First character of this part.", ge=0, le=10_000_000_000)] = 0


class ListWorkspaces(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(description="Maximum number of workspaces.", ge=1, le=1000)] = 50
    offset: Offset = 0


@_with_filters(of_messages=("date",))
class Stats(Struct, frozen=True, forbid_unknown_fields=True):
    by: Annotated[
        By | None,
        Meta(description="Return one row for each. Days, weeks and months are newest first."),
    ] = None
    limit: Annotated[int, Meta(description="Maximum number of rows.", ge=1, le=1000)] = 31
    offset: Offset = 0


@_with_filters("workspace")
class Recall(Struct, frozen=True, forbid_unknown_fields=True):
    task: Annotated[
        str,
        Meta(
            description="The task or question in plain words, with names and details.",
            min_length=1,
            max_length=20_000,
        ),
    ]
    token_budget: Annotated[
        int, Meta(description="Maximum length of the result in tokens.", ge=200, le=20_000)
    ] = 1200


class SessionsForCommit(Struct, frozen=True, forbid_unknown_fields=True):
    repository: Repository
    revision: Revision = "HEAD"


class SessionsForCode(Struct, frozen=True, forbid_unknown_fields=True):
    file: Annotated[
        str,
        Meta(
            description="Absolute path, or path relative to the root of repository.",
            min_length=1,
            max_length=4000,
        ),
    ]
    lines: Annotated[
        str | None, Meta(description="Line or range, such as 40 or 40-60. Default: the whole file.")
    ] = None
    repository: Repository | None = None


def absolute_path(name: str, path: str) -> Path:
    """Return a path that does not depend on the server's working directory. Raises `UsageError`."""
    expanded = given_path(name, path)
    if not expanded.is_absolute():
        raise UsageError(f"{name}: {path!r} is not an absolute path.")
    return expanded


class PlannedArguments(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Arguments of a tool that returns a plan first."""

    plan_id: PlanId | None = None


@_with_filters("source", "workspace")
class CreateBackup(PlannedArguments, frozen=True, forbid_unknown_fields=True):
    path: NewFile | None = None
    refs: Refs | None = None
    base: BaseBackup | None = None


class ValidateBackup(Struct, frozen=True, forbid_unknown_fields=True):
    path: BackupPath


@_with_filters("source")
class RestoreBackup(PlannedArguments, frozen=True, forbid_unknown_fields=True):
    path: BackupPath
    refs: Refs | None = None
    maps: FolderMaps | None = None
    force: Annotated[
        bool, Meta(description="Replace existing files and sessions that differ; no database.")
    ] = False


@_with_filters("source", "workspace")
class RestoreSession(PlannedArguments, frozen=True, forbid_unknown_fields=True):
    refs: Refs | None = None


class MigrateSession(PlannedArguments, frozen=True, forbid_unknown_fields=True):
    refs: Refs
    target: Target
    mode: Mode = "copy"


class MigrateWorkspace(PlannedArguments, frozen=True, forbid_unknown_fields=True):
    workspace: Annotated[
        str,
        Meta(
            description="Folder of the sessions, as absolute path. It need not exist any more.",
            min_length=1,
            max_length=4000,
        ),
    ]
    target: Target
    mode: Mode = "copy"


_MAX_SECTION_CHARS = 20_000


def _section(description: str) -> Meta:
    return Meta(description=description, max_length=_MAX_SECTION_CHARS)


class JournalContext(Struct, frozen=True, forbid_unknown_fields=True):
    repository: Repository
    revision: Revision = "HEAD"


class JournalWriteEntry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    repository: Repository
    revision: Revision = "HEAD"
    summary: Annotated[
        str,
        Meta(
            description="What was wanted and what came out. Markdown, as all sections.",
            min_length=1,
            max_length=_MAX_SECTION_CHARS,
        ),
    ]
    synopsis: Annotated[str, _section("How it works now, and causes that were found.")] | None = None
    accomplishments: Annotated[str, _section("A list of results, with numbers and tests.")] | None = None
    frustrations: Annotated[str, _section("A list of errors and corrections, and how they ended.")] | None = (
        None
    )
    decisions: (
        Annotated[str, _section("A list of decisions with reasons, and dropped alternatives.")] | None
    ) = None
    open: Annotated[str, _section("A list of what is left to do.")] | None = None
    discussion: Annotated[str, _section("Quotes as block quotes, such as '> User: …'.")] | None = None


class JournalNote(Struct, frozen=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(description="The text to append.", min_length=1, max_length=20_000)]
    repository: Repository


# Validation: errors name the parameter, the allowed values and the nearest valid call.

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
