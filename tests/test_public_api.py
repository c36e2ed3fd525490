"""Public names. New ones may be added; removing one breaks programs that use it."""

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

import backscroll
from backscroll import config, errors, model, sources
from backscroll import history as library
from backscroll.errors import BackscrollError
from backscroll.history.history import History
from backscroll.redact import Redactor
from backscroll.sources import protocols
from backscroll.sources.protocols import Source
from backscroll.testing.claude_code import Transcript

MODEL = {
    "STORES", "UNKNOWN_WORKSPACE", "Agent", "Attachment", "Closing", "Completeness", "Decision",
    "Checkpoint", "Edit", "Filter", "Hunk", "Item", "Message", "Note", "Opening", "Origin",
    "PaginatedResult", "Pagination", "Problem", "RecordCounts", "Retention", "Role",
    "SearchMatch", "SearchResult", "Session", "SessionSummary", "Status", "SubagentLink", "TimeSource",
    "TitleHint", "TokenUsage", "ToolCall", "ToolResult", "TrackedFile", "Unit", "UsageReport",
    "Visibility", "Workspace", "is_same_response", "normalize_path",
    "workspace_hash",
}  # fmt: skip

# Every error, its public base class, and the attribute with the path, id or name that it concerns.
ERRORS = {
    "ArchiveError": ("BackscrollError", "data_path"),
    "BackscrollError": ("Exception", None),
    "ChangeConflictError": ("BackscrollError", "data_path"),
    "ChangeNotFoundError": ("BackscrollError", "change_id"),
    "BackupError": ("BackscrollError", "data_path"),
    "CommitNotFoundError": ("BackscrollError", "revision"),
    "DataNotFoundError": ("BackscrollError", "data_path"),
    "DatabaseLockedError": ("DatabaseUnreadableError", "data_path"),
    "DatabaseNotFoundError": ("DataNotFoundError", "data_path"),
    "DatabaseUnreadableError": ("BackscrollError", "data_path"),
    "DestinationError": ("BackscrollError", "data_path"),
    "InvalidBackupError": ("BackupError", "data_path"),
    "RepositoryError": ("BackscrollError", "data_path"),
    "RestoreError": ("BackupError", "data_path"),
    "SessionNotFoundError": ("BackscrollError", "session_id"),
    "ToolRunningError": ("BackscrollError", "process_id"),
    "TransferError": ("BackscrollError", "session_id"),
    "UnknownStoreVersionError": ("BackscrollError", "data_path"),
    "UsageError": ("BackscrollError", None),
    "WorkspaceNotFoundError": ("BackscrollError", "workspace"),
}


def public_base(error: type[BaseException]) -> str:
    """Return the name of the nearest public base class."""
    bases = [base.__name__ for base in error.__mro__[1:] if not base.__name__.startswith("_")]
    return bases[0]


def test_the_package_has_history_and_version() -> None:
    assert backscroll.__all__ == ["History", "__version__"]
    assert backscroll.History is History
    assert backscroll.__version__.count(".") == 2


def test_the_library_has_the_documented_names() -> None:
    assert library.History is History
    assert library.Redactor is Redactor
    assert not hasattr(library, "bogus")


def test_the_model_keeps_its_names() -> None:
    assert set(model.__all__) >= MODEL
    assert all(hasattr(model, name) for name in model.__all__)


def test_every_error_has_its_base_class() -> None:
    assert {name: public_base(getattr(errors, name)) for name in errors.__all__} == {
        name: base for name, (base, _) in ERRORS.items()
    }


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_has_its_message_and_attribute(name: str) -> None:
    attribute = ERRORS[name][1]
    error = getattr(errors, name)("It is gone.", *(["this"] if attribute else []))
    assert isinstance(error, BackscrollError)
    assert str(error) == "It is gone."
    more = {"ArchiveError": {"is_readable": False}, "TransferError": {"code": "failed"}}.get(name, {})
    assert vars(error) == {"reason": "It is gone."} | ({attribute: "this"} if attribute else {}) | more


def test_the_tree_in_the_docstring_contains_every_error() -> None:
    assert all(name in (errors.__doc__ or "") for name in errors.__all__)


def test_sources_are_available_by_name() -> None:
    assert sources.names() == ("claude-code", "cursor", "cursor-cli")
    assert {name: sources.named(name).platform for name in sources.names()} == {
        "claude-code": "claude_code",
        "cursor": "cursor",
        "cursor-cli": "cursor",
    }


@pytest.mark.parametrize("name", sources.names())
def test_the_methods_of_a_source_have_the_parameters_of_the_protocols(name: str) -> None:
    source = sources.named(name)
    capabilities = [base for base in type(source).__mro__ if base.__module__ == protocols.__name__]
    for protocol in (Source, *capabilities):
        for method, function in inspect.getmembers(protocol, inspect.isfunction):
            if not method.startswith("_"):
                parameters = list(inspect.signature(function).parameters)[1:]
                assert list(inspect.signature(getattr(source, method)).parameters) == parameters, method


def test_a_source_has_exactly_six_required_members() -> None:
    assert set(Source.__abstractmethods__) == {"roots", "units", "read"}
    assert set(Source.__annotations__) - set(vars(Source)) == {"name", "platform", "stores"}


def test_an_unknown_source_is_a_usage_error() -> None:
    with pytest.raises(errors.UsageError, match="The sources are claude-code, cursor, cursor-cli"):
        sources.named("notepad")


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (model, {"Filter"}),
        (config, {"Machine", "NamedRoot", "named_roots", "this_machine"}),
    ],
    ids=["model", "config"],
)
def test_a_module_keeps_its_names(module: object, names: set[str]) -> None:
    assert all(hasattr(module, name) for name in names)


# Every method of History with the names of its parameters.
METHODS = {
    "all_sessions": ["filter"],
    "blame_file": ["path", "repository", "lines", "ref", "progress"],
    "close": [],
    "create_backup": [
        "path",
        "filter",
        "sessions",
        "base",
        "force",
        "create_folder",
        "with_secrets",
        "progress",
    ],
    "events": ["since"],
    "export_session": ["ref", "format", "redactor", "everything"],
    "find": ["ref"],
    "find_in_session": ["summary", "query", "requires_all"],
    "find_workspace": ["name"],
    "get_agent_session": ["ref"],
    "get_commit": ["sha", "repository", "progress"],
    "get_session": ["ref"],
    "interrupt": [],
    "is_index_pending": [],
    "learn_secrets": ["redactor", "summary"],
    "list_changes": [],
    "list_commits": ["repository", "limit", "offset", "since", "until", "ref", "progress"],
    "list_sessions": ["filter", "limit", "offset", "sort", "is_reversed"],
    "list_workspaces": [],
    "migrate_session": ["ref", "target", "mode", "keep_cwd"],
    "migrate_workspace": ["workspace", "target", "mode", "keep_cwd"],
    "open_backup": ["path"],
    "live_sessions": [],
    "recall": ["task", "workspace", "token_budget", "redactor"],
    "restore_backup": ["path", "source", "sessions", "path_map", "force", "is_dry_run", "progress"],
    "restore_session": ["ref"],
    "retentions": ["now"],
    "roots": [],
    "session_facets": ["filter"],
    "search_sessions": [
        "query", "limit", "offset", "by", "context", "pattern", "filters", "since", "until",
    ],
    "sync": ["progress", "wait"],
    "undo_change": ["change_id"],
    "validate_backup": ["path", "progress"],
}  # fmt: skip

# The parts of History with their methods.
PARTS: dict[str, dict[str, list[str]]] = {
    "annotations": {
        "add_note": ["ref", "text"],
        "edit_note": ["ref", "number", "text"],
        "rename": ["ref", "title"],
        "star": ["ref", "is_starred"],
        "tag": ["ref", "add", "remove"],
        "tags": [],
    },
    "archive_admin": {
        "compact": [],
        "extract": ["ref", "folder"],
        "forget": ["ref"],
        "import_database": ["path"],
        "rebuild": ["progress"],
        "status": [],
        "upgrade_database": ["path"],
        "verify": [],
    },
    "backups": {
        "create": ["path", "filter", "sessions", "base", "force", "with_secrets", "progress"],
        "delete": ["backup"],
        "list": ["folder"],
        "prunable": ["keep", "folder"],
        "manifest": ["path"],
        "plan": ["path", "filter", "sessions", "base", "force"],
        "plan_restore": ["path", "source", "sessions", "path_map", "force", "with_running", "progress"],
    },
    "exports": {
        "find_secrets": ["summaries", "kinds", "progress"],
        "stream": ["summary", "format", "redactor", "everything"],
        "write_file": ["chunks", "path", "force"],
        "write_files": ["summaries", "folder", "format", "redactor", "everything", "force", "progress"],
    },
    "live": {
        "follow": ["ref", "last", "everything", "stop"],
        "is_awaited": ["ref"],
        "watch": ["stop"],
    },
    "resume": {
        "handoff": ["ref", "tokens", "redactor"],
        "open_command": ["ref", "position"],
        "plan": ["ref"],
        "restore_files": ["ref"],
    },
    "source_files": {
        "audit": ["progress"],
        "irregular_files": [],
        "outlines": [],
    },
    "statistics": {
        "explain_day": ["day", "filter", "zone"],
        "explain_session": ["ref", "zone"],
        "messages_by_hour": ["filter", "zone"],
        "report": ["filter", "by", "zone"],
        "reports": ["filter", "by", "zone"],
        "year_in_review": ["year", "filter", "zone"],
    },
    "transcript": {
        "count": ["summary"],
        "find_message": ["summary", "name"],
        "images": ["summary", "position"],
        "message_at": ["summary", "position"],
        "messages": ["summary", "start"],
        "prompts": ["summary"],
        "subagents": ["summary"],
        "read": ["summary", "everything", "with_agents", "start", "turns"],
        "records": ["summary"],
    },
    "transfers": {
        "blocking_processes": ["plan"],
        "changes": [],
        "migrate": ["plan"],
        "plan_restore": ["ref"],
        "plan_restores": ["refs", "filter"],
        "plan_sessions": ["refs", "target", "mode", "keep_cwd"],
        "plan_workspace": ["workspace", "target", "mode", "keep_cwd"],
        "recover": [],
        "restore": ["planned"],
        "restore_all": ["plan"],
        "undo": ["change_id"],
    },
}


@pytest.mark.parametrize("name", METHODS)
def test_history_keeps_its_methods(name: str) -> None:
    parameters = list(inspect.signature(getattr(History, name)).parameters)[1:]
    assert set(METHODS[name]) <= set(parameters)


# Methods of History with their results, and the fields of these values.
RESULTS = {
    "list_sessions": "PaginatedResult[SessionSummary]",
    "get_session": "Session",
    "get_agent_session": "AgentSession",
    "search_sessions": "SearchResult",
    "create_backup": "BackupResult",
    "validate_backup": "BackupValidation",
    "restore_backup": "RestoreResult",
    "restore_session": "RestoreSessionResult",
    "restore_sessions": "RestoreSessionsResult",
    "migrate_session": "MigrateResult",
    "migrate_workspace": "MigrateResult",
    "list_changes": "list[Change]",
    "undo_change": "list[Change]",
    "list_commits": "PaginatedResult[CommitSummary]",
    "get_commit": "CommitDetails",
    "blame_file": "tuple[BlameLine, ...]",
}
FIELDS = {
    "AgentSession": "agent_id parent_session_id prompt model messages total_duration_ms total_tokens"
    " total_tool_use_count",
    "BackupManifest": "version created_at platform program has_secrets is_filtered stats roots files skipped"
    " bases id filter sessions",
    "BackupPlan": "backup_path roots file_count size stats",
    "BackupResult": "backup_path manifest",
    "BackupStats": "session_count message_count file_size",
    "BackupValidation": "status files problems manifest",
    "BlameLine": "line text sha session_ref message_id prompt",
    "Change": "id at what sessions file_count row_count is_undone batch",
    "CommitDetails": "sha parent author at subject sessions turns",
    "CommitSummary": "sha parent author at subject sessions",
    "CommitTurn": "session_ref first last prompt",
    "Evidence": "kind weight detail",
    "FileCheck": "path status reason",
    "LinkedSession": "session_ref session_id score evidence",
    "MigrateError": "session_id code message",
    "MigrateResult": "success_count failed_count errors sessions",
    "MigratedSession": "ref new_ref change",
    "PaginatedResult": "data pagination",
    "RestoreResult": "files_restored sessions_restored files change_id warnings blocked_by",
    "RestoreSessionResult": "ref files row_count change",
    "RestoreSessionsResult": "restored kept errors files row_count change",
    "RestoredFile": "path action size reason session_id row_count",
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_method_keeps_the_type_of_its_result(name: str) -> None:
    assert inspect.signature(getattr(History, name)).return_annotation == RESULTS[name]


@pytest.mark.parametrize("name", FIELDS)
def test_a_result_is_in_the_model_and_keeps_its_fields(name: str) -> None:
    assert name in model.__all__
    assert set(FIELDS[name].split()) <= set(getattr(model, name).__struct_fields__)


@pytest.mark.parametrize("part", PARTS)
def test_the_parts_of_history_keep_their_methods(part: str, tmp_path: Path) -> None:
    instance = getattr(History(home=tmp_path), part)
    for name, parameters in PARTS[part].items():
        assert set(parameters) <= set(inspect.signature(getattr(instance, name)).parameters), name


def test_history_accepts_roots_home_and_machine() -> None:
    assert {"roots", "home", "machine"} <= set(inspect.signature(History).parameters)
    assert isinstance(History.archive_path, property)


def test_a_summary_keeps_its_fields() -> None:
    assert set(model.SessionSummary.__struct_fields__) >= {
        "ref", "id", "index", "source", "platform", "title", "workspace_path", "workspace_name",
        "message_count", "created_at", "updated_at", "first_message_preview", "git_branch", "models",
        "version", "agent_ids", "parent_ref", "interaction_count", "acceptance_rate", "total_tokens",
        "total_changes", "completeness", "is_gone",
    }  # fmt: skip
    assert set(model.Session.__struct_fields__) >= {"summary", "messages"}


@pytest.mark.parametrize(
    "call",
    [
        lambda history: history.list_sessions(sort="bogus"),
        lambda history: history.list_sessions(model.Filter(source="bogus")),
        lambda history: history.all_sessions(model.Filter(source="bogus")),
        lambda history: history.export_session("1", "pdf"),
        lambda history: history.search_sessions("quay", pattern="bogus"),
        lambda history: history.search_sessions("quay", by="bogus"),
        lambda history: history.search_sessions("quay", context=-1),
        lambda history: history.search_sessions("quay", filters={"bogus": "1"}),
        lambda history: history.search_facets("quay", pattern="bogus"),
        lambda history: history.statistics.report(by="bogus"),
        lambda history: history.journal.add_note("bogus", "text"),
        lambda history: history.migrate_session("1", ".", mode="bogus"),
    ],
)
def test_an_invalid_value_is_a_usage_error(tmp_path: Path, call: Callable[[History], object]) -> None:
    Transcript().user("where is the quay?").write(tmp_path / "claude")
    with History(roots=[config.NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path) as opened:
        opened.sync()
        with pytest.raises(errors.UsageError):
            call(opened)


def test_the_home_may_be_a_text_and_a_text_is_one_tag(tmp_path: Path) -> None:
    Transcript().user("where is the quay?").write(tmp_path / "claude")
    with History(roots=[config.NamedRoot("claude-code", tmp_path / "claude")], home=str(tmp_path)) as opened:
        opened.sync()
        assert opened.annotations.tag("1", "abc").tags == ("abc",)
