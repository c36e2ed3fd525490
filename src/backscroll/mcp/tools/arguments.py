"""Argument types of the tools. Models read the descriptions."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from backscroll.errors import UsageError
from backscroll.model import Role
from backscroll.model.statistics import By

__all__ = [
    "MAX_MESSAGE_CHARS",
    "MIN_MESSAGE_CHARS",
    "CreateBackup",
    "ExportSession",
    "GetAgentSession",
    "GetSession",
    "JournalContext",
    "JournalNote",
    "JournalWriteEntry",
    "ListSessions",
    "ListWorkspaces",
    "MigrateSession",
    "MigrateWorkspace",
    "PlannedArguments",
    "Recall",
    "RestoreBackup",
    "SearchSessions",
    "SessionsForCode",
    "SessionsForCommit",
    "Stats",
    "ValidateBackup",
    "absolute_path",
]

MIN_MESSAGE_CHARS, MAX_MESSAGE_CHARS = 100, 40_000  # limits of max_chars

Source = Annotated[
    Literal["claude-code", "cursor", "cursor-cli"], Meta(description="Only sessions of this tool.")
]
Workspace = Annotated[
    str,
    Meta(
        description="Only sessions of this workspace: a path, folder name, end of a path, or host. Pass the"
        " current folder to stay in this project.",
        min_length=1,
        max_length=1000,
    ),
]
Since = Annotated[
    str, Meta(description="From this day on: 2026-10-03, 2026-10, yesterday or 7d.", max_length=40)
]
Until = Annotated[str, Meta(description="Up to and including this day. Formats as in since.", max_length=40)]
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


class ListSessions(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(description="Maximum number of sessions.", ge=1, le=1000)] = 20
    offset: Offset = 0
    workspace: Workspace | None = None
    source: Source | None = None
    since: Since | None = None
    until: Until | None = None


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
    workspace: Workspace | None = None
    source: Source | None = None
    role: Annotated[Role | None, Meta(description="Only messages with this role.")] = None
    since: Since | None = None
    until: Until | None = None


class ExportSession(Struct, frozen=True, forbid_unknown_fields=True):
    ref: Ref
    format: Annotated[Literal["md", "txt", "json", "jsonl", "html"], Meta(description="Output format.")] = (
        "md"
    )
    max_chars: Annotated[int, Meta(description="Maximum number of characters.", ge=1000, le=200_000)] = 20_000
    from_char: Annotated[int, Meta(description="First character of this part.", ge=0, le=10_000_000_000)] = 0


class ListWorkspaces(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(description="Maximum number of workspaces.", ge=1, le=1000)] = 50
    offset: Offset = 0


class Stats(Struct, frozen=True, forbid_unknown_fields=True):
    by: Annotated[
        By | None,
        Meta(description="Return one row for each. Days, weeks and months are newest first."),
    ] = None
    limit: Annotated[int, Meta(description="Maximum number of rows.", ge=1, le=1000)] = 31
    offset: Offset = 0
    workspace: Workspace | None = None
    source: Source | None = None
    since: Since | None = None
    until: Until | None = None


class Recall(Struct, frozen=True, forbid_unknown_fields=True):
    task: Annotated[
        str,
        Meta(
            description="The task or question in plain words, with names and details.",
            min_length=1,
            max_length=20_000,
        ),
    ]
    workspace: Workspace | None = None
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
    expanded = Path(path).expanduser()
    if not expanded.is_absolute():
        raise UsageError(f"{name}: {path!r} is not an absolute path.")
    return expanded


class PlannedArguments(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Arguments of a tool that returns a plan first."""

    plan_id: PlanId | None = None


class CreateBackup(PlannedArguments, frozen=True, forbid_unknown_fields=True):
    path: NewFile | None = None
    workspace: Workspace | None = None
    source: Source | None = None
    refs: Refs | None = None
    base: BaseBackup | None = None


class ValidateBackup(Struct, frozen=True, forbid_unknown_fields=True):
    path: BackupPath


class RestoreBackup(PlannedArguments, frozen=True, forbid_unknown_fields=True):
    path: BackupPath
    source: Source | None = None
    refs: Refs | None = None
    maps: FolderMaps | None = None
    force: Annotated[bool, Meta(description="Replace existing files that differ.")] = False


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
