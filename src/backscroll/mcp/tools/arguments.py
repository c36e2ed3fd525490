"""Argument types of the tools. Models read the descriptions."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, defstruct

from backscroll.config import given_path
from backscroll.errors import UsageError
from backscroll.filters import FILTERS, FilterKind, SessionFilter
from backscroll.history.history import History
from backscroll.model.export import Format
from backscroll.model.message import Role
from backscroll.model.statistics import By

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
