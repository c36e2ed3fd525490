"""Value types of a conversation, independent of any tool, file format or database.

Names are loaded on first use: a sync without changes needs few of them.
"""

from typing import TYPE_CHECKING

from backscroll.lazy_names import lazy_names

if TYPE_CHECKING:
    from backscroll.model.code.commit import (
        BlameLine,
        CommitDetails,
        CommitSummary,
        CommitTurn,
        Evidence,
        LinkedSession,
    )
    from backscroll.model.message import (
        Attachment,
        Decision,
        Edit,
        Hunk,
        Message,
        Origin,
        Role,
        Status,
        TimeSource,
        TokenUsage,
        ToolCall,
        is_uuid,
        record_id_of,
    )
    from backscroll.model.problem import PROBLEM_CODES, Fault, Problem
    from backscroll.model.safekeeping.backup import (
        BackupManifest,
        BackupPlan,
        BackupResult,
        BackupStats,
        BackupValidation,
        FileCheck,
        RestoredFile,
        RestoreResult,
    )
    from backscroll.model.safekeeping.changes import Change
    from backscroll.model.safekeeping.transfer import (
        MigratedSession,
        MigrateError,
        MigrateResult,
        RestoreSessionResult,
    )
    from backscroll.model.search import SearchMatch, SearchRanks, SearchResult, SecondMatch
    from backscroll.model.session import (
        AgentSession,
        Completeness,
        Filter,
        Note,
        PaginatedResult,
        Pagination,
        Session,
        SessionSummary,
        SortKey,
    )
    from backscroll.model.stream.closing import (
        STORES,
        Agent,
        Closing,
        CopiedLines,
        TrackedFile,
        Visibility,
    )
    from backscroll.model.stream.items import (
        Checkpoint,
        ClosingUpdate,
        Item,
        Opening,
        RawRow,
        RecordCounts,
        Replacement,
        ReportedState,
        ReportedTotals,
        SubagentLink,
        TitleHint,
        ToolResult,
        UsageReport,
    )
    from backscroll.model.stream.tool_calls import (
        ORPHAN_RESULT,
        is_same_response,
        merge_repeated_call,
        message_for_orphan_result,
        with_result,
    )
    from backscroll.model.sync import Retention
    from backscroll.model.unit import Unit
    from backscroll.model.workspace import UNKNOWN_WORKSPACE, Workspace, normalize_path, workspace_hash

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

__getattr__ = lazy_names(
    __name__,
    {
        ".safekeeping.backup": "BackupManifest BackupPlan BackupResult BackupStats BackupValidation FileCheck"
        " RestoreResult RestoredFile",
        ".safekeeping.changes": "Change",
        ".code.commit": "BlameLine CommitDetails CommitSummary CommitTurn Evidence LinkedSession",
        ".message": "Attachment Decision Edit Hunk Message Origin Role Status TimeSource TokenUsage ToolCall"
        " is_uuid record_id_of",
        ".problem": "PROBLEM_CODES Fault Problem",
        ".sync": "Retention",
        ".search": "SearchMatch SearchRanks SearchResult SecondMatch",
        ".stream.closing": "STORES Agent Closing CopiedLines TrackedFile Visibility",
        ".stream.items": "Checkpoint ClosingUpdate Item Opening RawRow RecordCounts Replacement ReportedState"
        " ReportedTotals SubagentLink TitleHint ToolResult UsageReport",
        ".stream.tool_calls": "ORPHAN_RESULT is_same_response merge_repeated_call message_for_orphan_result"
        " with_result",
        ".session": "AgentSession Completeness Filter Note PaginatedResult Pagination Session SessionSummary"
        " SortKey",
        ".safekeeping.transfer": "MigrateError MigrateResult MigratedSession RestoreSessionResult",
        ".unit": "Unit",
        ".workspace": "UNKNOWN_WORKSPACE Workspace normalize_path workspace_hash",
    },
)
