"""Argument types of the tools. Models read the descriptions."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from backscroll.model import Role
from backscroll.model.statistics import By

__all__ = [
    "ExportSession",
    "GetAgentSession",
    "GetSession",
    "ListSessions",
    "ListWorkspaces",
    "Recall",
    "SearchSessions",
    "Stats",
]

Source = Annotated[
    Literal["claude-code", "cursor", "cursor-cli"], Meta(description="Only sessions of this tool.")
]
Workspace = Annotated[
    str,
    Meta(
        description="Only this workspace: its path, folder name, path suffix or host.",
        min_length=1,
        max_length=1000,
    ),
]
Since = Annotated[
    str, Meta(description="From this day on: 2026-10-03, 2026-10, yesterday, 7d.", max_length=40)
]
Until = Annotated[str, Meta(description="Up to and including this day; same formats.", max_length=40)]
Offset = Annotated[int, Meta(description="Number of entries to skip.", ge=0, le=10_000_000)]
Ref = Annotated[
    str,
    Meta(
        description="Ref of a session as returned by other tools, such as claude-code:0f3c9a12, or an id"
        " prefix.",
        min_length=1,
        max_length=300,
    ),
]
From = Annotated[int, Meta(description="Position of the first message, from 0.", ge=0, le=100_000_000)]
Count = Annotated[int, Meta(description="Maximum number of messages.", ge=1, le=200)]
MaxChars = Annotated[
    int,
    Meta(
        description="Maximum characters per message. Tool calls get a quarter unless count is 1.",
        ge=100,
        le=40_000,
    ),
]
FromChar = Annotated[
    int,
    Meta(
        description="Start of the text in each message, to read on in a message that was cut.",
        ge=0,
        le=1_000_000_000,
    ),
]


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
    start: From = field(default=0, name="from")
    count: Count = 20
    max_chars: MaxChars = 800
    from_char: FromChar = 0


class GetAgentSession(Struct, frozen=True, forbid_unknown_fields=True):
    ref: Annotated[
        str, Meta(description="Id or ref of a subagent, from agent_ids.", min_length=1, max_length=300)
    ]
    start: From = field(default=0, name="from")
    count: Count = 20
    max_chars: MaxChars = 800
    from_char: FromChar = 0


class SearchSessions(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[
        str,
        Meta(
            description='Words that occur in one message. Also "a phrase", OR, prefix*, -word to exclude'
            " sessions with a word, and filters such as role:user, tool:Bash, file:app.py, is:error,"
            " has:edits.",
            min_length=1,
            max_length=4000,
        ),
    ]
    limit: Annotated[int, Meta(description="Maximum number of matches.", ge=1, le=100)] = 5
    offset: Offset = 0
    context: Annotated[int, Meta(description="Lines of context around each match.", ge=0, le=20)] = 1
    by: Annotated[
        Literal["session", "message"], Meta(description="The best message of each session, or every message.")
    ] = "session"
    pattern: Annotated[
        Literal["words", "exact", "regex"],
        Meta(description="Interpret the query as words, as an exact substring or as a regular expression."),
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
    from_char: Annotated[
        int, Meta(description="Start of this part, from next_from_char.", ge=0, le=10_000_000_000)
    ] = 0


class ListWorkspaces(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(description="Maximum number of workspaces.", ge=1, le=1000)] = 50
    offset: Offset = 0


class Stats(Struct, frozen=True, forbid_unknown_fields=True):
    by: Annotated[
        By | None,
        Meta(description="Group by this. Days, weeks and months are newest first."),
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
            description="The task or question, in plain words and as much detail as helps.",
            min_length=1,
            max_length=20_000,
        ),
    ]
    workspace: Workspace | None = None
    token_budget: Annotated[
        int, Meta(description="Maximum size of the result in tokens.", ge=200, le=20_000)
    ] = 1200
