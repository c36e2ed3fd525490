"""Facts about a session from its own records: title, visibility, times and metadata."""

from datetime import datetime
from typing import Any, NamedTuple

from backscroll.model import ReportedState, ReportedTotals, Visibility
from backscroll.sources.cursor.database.decode import as_int, as_list, as_map, as_text, unwrap
from backscroll.sources.cursor.database.record_types import Composer, ComposerHeader
from backscroll.sources.cursor.database.session_lists import ListEntry
from backscroll.sources.cursor.session import timestamps
from backscroll.sources.cursor.session.bubble import AUTO_MODELS

__all__ = [
    "SessionFacts",
    "compaction",
    "git_branch",
    "metadata",
    "reported_totals",
    "stored_times",
    "stored_title",
    "title_from_text",
    "visibility",
]

_MAX_TITLE_CHARS = 100
_EMPTY_WINDOW_DIGITS = 13  # length of the storage id of a window without a folder


class SessionFacts(NamedTuple):
    """Records of one session, and which of them exist."""

    session_id: str
    header: ComposerHeader
    composer: Composer
    entry: ListEntry | None
    has_data: bool  # the composerData record could be decoded
    has_row: bool  # there is a composerData row, which may be NULL
    is_damaged: bool = False  # the composerData row cannot be read


def stored_title(facts: SessionFacts) -> tuple[str, str] | None:
    """Return the title that Cursor stored, and the name of its record."""
    for name, source in ((facts.header.name, "header"), (facts.composer.name, "composerData")):
        if text := as_text(name).strip():
            return text, source
    return None


def title_from_text(text: str) -> str:
    """Return the first line of a text, truncated to the length of a title."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= _MAX_TITLE_CHARS else line[: _MAX_TITLE_CHARS - 1].rstrip() + "…"


def visibility(facts: SessionFacts, *, has_messages: bool) -> Visibility:
    """Return whether a session belongs in lists, and if not, why."""
    header, composer, entry = facts.header, facts.composer, facts.entry
    is_archived = header.is_archived is True or header.is_archived == 1 or composer.is_archived is True
    is_emptied = facts.has_row and not facts.has_data and not facts.is_damaged
    if has_messages and not is_emptied:
        return "archived" if is_archived else "listed"
    workspace_id = entry.workspace_id if entry else ""
    is_empty_window = workspace_id == "empty-window" or (
        len(workspace_id) == _EMPTY_WINDOW_DIGITS
        and workspace_id.isdigit()
        and not as_map(header.workspace_identifier).get("uri")
    )
    if is_emptied:
        return "deleted"
    if facts.session_id == "empty-state-draft" or is_empty_window:
        return "placeholder"
    if facts.session_id.startswith("bc-") or header.created_from_background_agent:
        return "ghost"  # its content is on Cursor's servers
    if facts.has_data:
        return "draft"
    if (
        is_archived
        and header.is_draft is not True
        and not (header.name or header.subtitle or header.draft_target)
    ):
        return "deleted"
    return "draft" if header.is_draft is True else "ghost"


def git_branch(facts: SessionFacts) -> str | None:
    """Return the git branch of a session."""
    header, composer = facts.header, facts.composer
    names = [as_text(as_map(composer.git_worktree).get("branchName"))]
    for repos in (header.tracked_git_repos, composer.tracked_git_repos):
        for repo in map(as_map, as_list(repos)[:1]):
            names += [as_text(as_map(each).get("branchName")) for each in as_list(repo.get("branches"))[:1]]
    names += [as_text(composer.created_on_branch), as_text(header.created_on_branch)]
    names += [as_text(header.committed_to_branch)]
    return next((name for name in names if name), None)


def compaction(composer: Composer) -> tuple[str, str]:
    """Return the summary of a compacted conversation, and the id of the last bubble that it replaces."""
    record = as_map(composer.latest_conversation_summary)
    summary = record.get("summary")
    inner = as_map(summary)
    text = as_text(summary) or as_text(inner.get("summary"))
    last_bubble_id = as_text(inner.get("truncationLastBubbleIdInclusive")) or as_text(
        record.get("lastBubbleId")
    )
    return text.strip(), last_bubble_id


def stored_times(facts: SessionFacts, latest: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the stored times of creation and last change."""
    header, composer = facts.header, facts.composer
    started_at = timestamps.parse_time(composer.created_at, latest) or timestamps.parse_time(
        header.created_at, latest
    )
    update_times = [timestamps.parse_time(each.last_updated_at, latest) for each in (composer, header)]
    return started_at, max((at for at in update_times if at is not None), default=None)


def reported_totals(facts: SessionFacts, latest: datetime) -> ReportedTotals | None:
    """Return the cost that Cursor stored; None if there is none. It stored no tokens with it.

    The cost in a copied session belongs to the original session.
    """
    costs = _cost_in_cents(facts.composer.usage_data)
    if not costs or facts.composer.copied_from is not None:
        return None
    started_at, updated_at = stored_times(facts, latest)
    models: dict[str | None, tuple[int, float]] = {}
    for name, cents in costs.items():
        model = None if name in AUTO_MODELS else name
        models[model] = (0, models.get(model, (0, 0.0))[1] + cents / 100)
    return ReportedTotals((ReportedState(started_at, updated_at or started_at, models),))


def metadata(facts: SessionFacts) -> dict[str, Any]:
    """Return other stored facts. ``context_tokens_used`` is the size of the context, not the usage."""
    header, composer = facts.header, facts.composer
    values: dict[str, Any] = {
        "record_version": as_int(composer.v),
        "mode": as_text(composer.unified_mode)
        or as_text(header.unified_mode)
        or as_int(composer.unified_mode),
        "status": as_text(composer.status),
        "subtitle": as_text(header.subtitle) or as_text(composer.subtitle),
        "selected_model": as_text(as_map(composer.model_config).get("modelName")),
        "context_tokens_used": as_int(composer.context_tokens_used),
        "context_token_limit": as_int(composer.context_token_limit),
        "token_count": as_int(composer.token_count) or None,
        "lines_added": _first_int(composer.total_lines_added, header.total_lines_added),
        "lines_removed": _first_int(composer.total_lines_removed, header.total_lines_removed),
        "files_changed": _first_int(composer.files_changed_count, header.files_changed_count),
        "unsent_text": as_text(composer.text).strip(),
        "todos": _todos(composer.todos),
        "cost_in_cents": _cost_in_cents(composer.usage_data),
        "worktree": as_text(as_map(composer.git_worktree).get("worktreePath")),
        "workspace_id": facts.entry.workspace_id if facts.entry else "",
        "surface": as_text(header.source),
        "cloud_agent_id": as_text(as_map(header.created_from_background_agent).get("bcId")),
        "agent_backend": as_text(composer.agent_backend),
    }
    if facts.entry is None:
        values["in_index"] = False
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def _first_int(one: Any, other: Any) -> int | None:
    first = as_int(one)
    return as_int(other) if first is None else first


def _todos(todos: Any) -> list[dict[str, str]]:
    found = []
    for todo in map(as_map, map(unwrap, as_list(todos))):
        if content := as_text(todo.get("content")):
            found.append({"content": content, "status": as_text(todo.get("status"))})
    return found


def _cost_in_cents(usage: Any) -> dict[str, float]:
    """Return cents by model. Builds since about 1.0 store none."""
    costs = {name: as_map(each).get("costInCents") for name, each in as_map(usage).items()}
    return {
        name: float(cost)
        for name, cost in costs.items()
        if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 < cost < 1e12
    }
