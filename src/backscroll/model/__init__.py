"""Value types of a conversation, independent of any tool, file format or database.

    message     messages and their parts
    session     sessions: summary, content and filter
    stream      what a source returns for a unit
    store       units and stores of a tool's history, and the kinds that sources declare
    problem     input that could not be parsed, and the audit that counts all input
    workspace   folders that sessions belong to
    search      search results, and the text by which a message is found
    statistics  counts, tokens and costs
    sync        results of a sync, events of sessions
    retention   sessions that a tool will delete; the days of the warning
    export      formats of an export, and the secrets that redaction finds
    resume      how to resume a session in its own tool
    backup      backups: content, manifest, validation and results
    change      changes to the files and databases of a tool
    transfer    sessions to restore, move or copy
    commit      commits and the sessions that led to them
    journal     entries of the journal
    hook        hooks of git and of the assistants
    mcp_client  programs that can use the MCP server
    dates       parse dates, format times
    text        text to print

Programs import the names below from here. They are loaded on first use: an idle sync needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backscroll.model.backup import *
    from backscroll.model.change import *
    from backscroll.model.commit import *
    from backscroll.model.message import *
    from backscroll.model.problem import *
    from backscroll.model.retention import *
    from backscroll.model.search import *
    from backscroll.model.session import *
    from backscroll.model.store import *
    from backscroll.model.stream import *
    from backscroll.model.sync import *
    from backscroll.model.transfer import *
    from backscroll.model.workspace import *

__all__ = [
    "ORPHAN_RESULT",
    "PROBLEM_CODES",
    "STORES",
    "UNKNOWN_WORKSPACE",
    "Agent",
    "AgentSession",
    "Attachment",
    "BackupManifest",
    "BackupPlan",
    "BackupResult",
    "BackupStats",
    "BackupValidation",
    "BlameLine",
    "Change",
    "Checkpoint",
    "Closing",
    "ClosingUpdate",
    "CommitDetails",
    "CommitSummary",
    "CommitTurn",
    "Completeness",
    "CopiedLines",
    "Decision",
    "Edit",
    "Evidence",
    "Fault",
    "FileCheck",
    "Filter",
    "Hunk",
    "Item",
    "LinkedSession",
    "Message",
    "MigrateError",
    "MigrateResult",
    "MigratedSession",
    "Note",
    "Opening",
    "Origin",
    "PaginatedResult",
    "Pagination",
    "Problem",
    "RawRow",
    "RecordCounts",
    "Replacement",
    "ReportedState",
    "ReportedTotals",
    "RestoreResult",
    "RestoreSessionResult",
    "RestoreSessionsResult",
    "RestoredFile",
    "Retention",
    "Role",
    "SearchMatch",
    "SearchRanks",
    "SearchResult",
    "SecondMatch",
    "Session",
    "SessionSummary",
    "SortKey",
    "Status",
    "SubagentLink",
    "TimeSource",
    "TitleHint",
    "TokenUsage",
    "ToolCall",
    "ToolResult",
    "TrackedFile",
    "Unit",
    "UsageReport",
    "Visibility",
    "Workspace",
    "is_same_response",
    "is_uuid",
    "merge_repeated_call",
    "message_for_orphan_result",
    "normalize_path",
    "record_id_of",
    "with_result",
    "workspace_hash",
]

# In the order of a search: a list needs names of the first two only.
_MODULES = (
    "message", "session", "search", "workspace", "problem", "sync", "retention", "store", "stream", "commit",
    "backup", "change", "transfer",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            value = getattr(import_module(f"{__name__}.{module}"), name, None)
            if value is not None:
                globals()[name] = value  # the next access does not come here
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
