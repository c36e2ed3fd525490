"""Facts about a session from its own records: title, visibility, times, metadata and the closing."""

from collections import Counter
from datetime import datetime
from typing import Any, NamedTuple

from backscroll.model.message import Message, TimeSource
from backscroll.model.session import Completeness
from backscroll.model.stream import Agent, Closing, ReportedState, ReportedTotals, Visibility
from backscroll.model.text import pluralize
from backscroll.model.workspace import Workspace
from backscroll.sources.cursor.database.decode import as_int, as_list, as_map, as_text, parse_time, unwrap
from backscroll.sources.cursor.database.records import Composer, ComposerHeader
from backscroll.sources.cursor.database.session_lists import ListEntry
from backscroll.sources.cursor.session.bubble import AUTO_MODELS
from backscroll.sources.cursor.user_data import UserData

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


class MessageStats:
    """Statistics of the messages for the closing, collected while they are emitted."""

    def __init__(self) -> None:
        self.first_at: datetime | None = None
        self.last_at: datetime | None = None
        self.prompt: str | None = None  # first active prompt typed by the user
        self.first_user_text: str | None = None  # also inactive or simulated; the prompt of a subagent
        self.model: str | None = None
        self.total_tokens = 0
        self.tool_call_count = 0
        self.message_count = 0

    def add(self, message: Message) -> None:
        """Add one message. A placeholder of a lost message does not increase the count."""
        if message.kind != "missing":
            self.message_count += 1
        if message.usage is not None:
            self.total_tokens += message.usage.total
        if message.role == "tool":
            self.tool_call_count += 1
        if message.role == "user" and self.prompt is None and message.content.strip():
            self.first_user_text = self.first_user_text or message.content
            if message.is_active and message.kind != "simulated":
                self.prompt = message.content
        if self.model is None and message.model is not None:
            self.model = message.model
        at = message.timestamp
        if at is None or message.timestamp_source == "session":
            return
        if self.first_at is None or at < self.first_at:
            self.first_at = at
        if self.last_at is None or at > self.last_at:
            self.last_at = at


class ContentLoss(NamedTuple):
    """Lost content of a session, and the store of the remaining content."""

    missing_count: int = 0  # listed messages without a row
    emptied_count: int = 0  # rows that are NULL or cannot be read
    orphan_count: int = 0  # inactive messages
    is_order_inferred: bool = False
    reasons: tuple[str, ...] = ()
    store: str = ""


def build_closing(
    user_data: UserData,
    facts: SessionFacts,
    stats: MessageStats,
    workspace: Workspace | None,
    loss: ContentLoss,
    decisions: Counter[str],
    parent_id: str | None,
    latest: datetime,
    *,
    is_subagent: bool,
) -> Closing:
    """Return the closing of a session."""
    started_at, updated_at = stored_times(facts, latest)
    created_at_source: TimeSource | None = "stored" if started_at else "neighbour" if stats.first_at else None
    title = _stored_title(facts) or user_data.side_databases.title(facts.session_id)
    if title is None and stats.prompt:
        title = (title_from_text(stats.prompt), "first message")
    has_messages = stats.message_count > 0 or loss.missing_count > 0
    visibility = find_visibility(facts, has_messages=has_messages)
    completeness, reasons = _completeness(loss)
    if visibility == "ghost":
        completeness, reasons = "partial", ("it is listed, and nothing of it is here",)
    metadata: dict[str, Any] = _stored_metadata(facts)
    if decisions:
        metadata["decision_evidence"] = dict(decisions)
    if loss.orphan_count:
        metadata["orphans"] = loss.orphan_count
    is_loser = False
    if facts.composer.is_best_of_n_subcomposer is True or facts.header.is_best_of_n_subcomposer is True:
        verdict = facts.composer.best_of_n_judge_winner
        is_loser = verdict is False
        metadata["best_of_n"] = "winner" if verdict is True else "loser" if is_loser else "candidate"
    return Closing(
        title=title[0] if title else None,
        title_source=title[1] if title else None,
        workspace=workspace,
        created_at=started_at or stats.first_at,
        created_at_source=created_at_source,
        updated_at=max((at for at in (updated_at, stats.last_at) if at is not None), default=started_at),
        git_branch=_git_branch(facts),
        completeness=completeness,
        reasons=reasons,
        visibility=visibility,
        is_discarded=is_loser,
        agents=(_agent(facts, stats, parent_id, started_at, title),) if is_subagent else (),
        child_ids=_child_ids(facts),
        metadata=metadata,
    )


def _completeness(loss: ContentLoss) -> tuple[Completeness, tuple[str, ...]]:
    reasons = list(loss.reasons)
    if loss.missing_count and loss.store != "graph":
        reasons.append(f"{pluralize(loss.missing_count, 'listed message')} missing")
    if loss.emptied_count:
        reasons.append(f"{pluralize(loss.emptied_count, 'message')} empty or unreadable")
    if loss.is_order_inferred:
        reasons.append("the order of messages is inferred from their times")
    if loss.store in ("prompts", "search"):
        return "lossy", tuple(reasons)
    return "partial" if reasons else "complete", tuple(reasons)


def _child_ids(facts: SessionFacts) -> tuple[str, ...]:
    """Return the ids of subagents and of best-of-N candidates, which are separate sessions."""
    ids = [*as_list(facts.composer.subagent_composer_ids), *as_list(facts.composer.sub_composer_ids)]
    child_ids = [child_id for child_id in map(as_text, ids) if child_id and child_id != facts.session_id]
    return tuple(dict.fromkeys(child_ids))


def _agent(
    facts: SessionFacts,
    stats: MessageStats,
    parent_id: str | None,
    started_at: datetime | None,
    title: tuple[str, str] | None,
) -> Agent:
    record = as_map(facts.header.subagent_info) or as_map(facts.composer.subagent_info)
    call_id = as_text(record.get("toolCallId"))
    if not call_id and facts.session_id.startswith("task-"):
        call_id = facts.session_id.removeprefix("task-")
    kind = as_text(record.get("subagentTypeName")) or (facts.entry.agent_kind if facts.entry else None)
    is_candidate = True in (facts.header.is_best_of_n_subcomposer, facts.composer.is_best_of_n_subcomposer)
    return Agent(
        agent_id=facts.session_id,
        parent_session_id=parent_id,
        tool_call_id=call_id or None,
        prompt=stats.prompt or stats.first_user_text,
        model=stats.model,
        kind=kind or ("best of n" if is_candidate else None),
        description=title[0] if title else None,
        total_tokens=stats.total_tokens or None,
        total_tool_use_count=stats.tool_call_count,
        started_at=started_at or stats.first_at,
    )


def _stored_title(facts: SessionFacts) -> tuple[str, str] | None:
    """Return the title that Cursor stored, and the name of its record."""
    for name, source in ((facts.header.name, "header"), (facts.composer.name, "composerData")):
        if text := as_text(name).strip():
            return text, source
    return None


def title_from_text(text: str) -> str:
    """Return the first line of a text, truncated to the length of a title."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= _MAX_TITLE_CHARS else line[: _MAX_TITLE_CHARS - 1].rstrip() + "…"


def find_visibility(facts: SessionFacts, *, has_messages: bool) -> Visibility:
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


def _git_branch(facts: SessionFacts) -> str | None:
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
    started_at = parse_time(composer.created_at, latest) or parse_time(header.created_at, latest)
    update_times = [parse_time(each.last_updated_at, latest) for each in (composer, header)]
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


def _stored_metadata(facts: SessionFacts) -> dict[str, Any]:
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
