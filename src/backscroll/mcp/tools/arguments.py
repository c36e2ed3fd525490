"""What each tool may be asked, with limits; the descriptions are read by models."""

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
        description="Only of this workspace: its path, its folder's name, the end of its path, or its host.",
        min_length=1,
        max_length=1000,
    ),
]
Since = Annotated[
    str, Meta(description="From this day on: 2026-10-03, 2026-10, yesterday, 7d.", max_length=40)
]
Until = Annotated[str, Meta(description="Up to and including this day, written alike.", max_length=40)]
Offset = Annotated[int, Meta(description="How many to pass over.", ge=0, le=10_000_000)]
Ref = Annotated[
    str,
    Meta(
        description="A session's ref as other tools give it, such as claude-code:0f3c9a12, or the beginning"
        " of its id.",
        min_length=1,
        max_length=300,
    ),
]
From = Annotated[int, Meta(description="The position of the first message, from 0.", ge=0, le=100_000_000)]
Count = Annotated[int, Meta(description="How many messages at most.", ge=1, le=200)]
MaxChars = Annotated[
    int,
    Meta(
        description="Characters of each message. Tool calls get a quarter, unless count is 1.",
        ge=100,
        le=40_000,
    ),
]
FromChar = Annotated[
    int,
    Meta(
        description="Where in each text to begin: to read on in a message that was cut.",
        ge=0,
        le=1_000_000_000,
    ),
]


class ListSessions(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(description="How many sessions.", ge=1, le=1000)] = 20
    offset: Offset = 0
    workspace: Workspace | None = None
    source: Source | None = None
    since: Since | None = None
    until: Until | None = None


class GetSession(Struct, frozen=True, forbid_unknown_fields=True):
    ref: Ref
    roles: Annotated[
        list[Role] | None, Meta(description="Only messages of these roles; without it all but thinking.")
    ] = None
    start: From = field(default=0, name="from")
    count: Count = 20
    max_chars: MaxChars = 800
    from_char: FromChar = 0


class GetAgentSession(Struct, frozen=True, forbid_unknown_fields=True):
    ref: Annotated[
        str, Meta(description="A subagent's id or ref, from agent_ids.", min_length=1, max_length=300)
    ]
    start: From = field(default=0, name="from")
    count: Count = 20
    max_chars: MaxChars = 800
    from_char: FromChar = 0


class SearchSessions(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[
        str,
        Meta(
            description='Words that were said together. Also "a phrase", -not, OR, prefix*, and filters such'
            " as role:user, tool:Bash, file:app.py, is:error, has:edits.",
            min_length=1,
            max_length=4000,
        ),
    ]
    limit: Annotated[int, Meta(description="How many matches.", ge=1, le=100)] = 5
    offset: Offset = 0
    context: Annotated[int, Meta(description="Lines around each match.", ge=0, le=20)] = 1
    by: Annotated[
        Literal["session", "message"], Meta(description="The best message of each session, or every message.")
    ] = "session"
    pattern: Annotated[
        Literal["words", "exact", "regex"],
        Meta(description="Read the query as words, as an exact substring, or as a regular expression."),
    ] = "words"
    workspace: Workspace | None = None
    source: Source | None = None
    role: Annotated[Role | None, Meta(description="Only messages of this role.")] = None
    since: Since | None = None
    until: Until | None = None


class ExportSession(Struct, frozen=True, forbid_unknown_fields=True):
    ref: Ref
    format: Annotated[
        Literal["md", "txt", "json", "jsonl", "html"], Meta(description="What to write it as.")
    ] = "md"
    max_chars: Annotated[int, Meta(description="Characters at most.", ge=1000, le=200_000)] = 20_000
    from_char: Annotated[int, Meta(description="Where to go on.", ge=0, le=10_000_000_000)] = 0


class ListWorkspaces(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(description="How many workspaces.", ge=1, le=1000)] = 50
    offset: Offset = 0


class Stats(Struct, frozen=True, forbid_unknown_fields=True):
    by: Annotated[
        By | None,
        Meta(description="A row for each of these, beside the sum; days, weeks and months newest first."),
    ] = None
    limit: Annotated[int, Meta(description="How many rows.", ge=1, le=1000)] = 31
    offset: Offset = 0
    workspace: Workspace | None = None
    source: Source | None = None
    since: Since | None = None
    until: Until | None = None


class Recall(Struct, frozen=True, forbid_unknown_fields=True):
    task: Annotated[
        str,
        Meta(
            description="What is to be done or found out, in plain words, as much of it as helps.",
            min_length=1,
            max_length=20_000,
        ),
    ]
    workspace: Workspace | None = None
    token_budget: Annotated[int, Meta(description="Tokens that the answer may take.", ge=200, le=20_000)] = (
        1200
    )
