"""Read one session from its rows, its list entries and related records. Its facts are in `session_facts`."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from backscroll.model.message import PLACEHOLDER_KINDS, Message, Origin
from backscroll.model.problem import Fault, Problem
from backscroll.model.stream import Item, Opening, SubagentLink, ToolResult
from backscroll.model.text import pluralize
from backscroll.model.workspace import Workspace
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database.decode import (
    UndecodableError,
    UnitReport,
    as_int,
    as_map,
    as_text,
    decode,
    decode_record,
    latest_plausible,
)
from backscroll.sources.cursor.database.records import NEWEST_COMPOSER_VERSION, Composer, ComposerHeader
from backscroll.sources.cursor.database.session_lists import COMPOSERS_KEY, ListEntry, inline_composer
from backscroll.sources.cursor.database.session_rows import DamagedValue, RelatedRows, SessionRows
from backscroll.sources.cursor.session import (
    bubble,
    prompt_log,
    session_facts,
    workspace,
)
from backscroll.sources.cursor.session.agent_record import AgentRecord
from backscroll.sources.cursor.session.messages import (
    BubbleOrder,
    MessageBuilder,
    fill_timestamps,
    order_bubbles,
)
from backscroll.sources.cursor.session.session_facts import SessionFacts
from backscroll.sources.cursor.session.tool_calls import CodeProposals
from backscroll.sources.cursor.user_data import DatabaseFile, UserData

_ContentItem: TypeAlias = Message | ToolResult | Problem


def read(user_data: UserData, path: Path, session_id: str) -> Iterator[Item]:
    """Read a session that has its own rows or is in a list."""
    report = UnitReport(str(path), f"composerData:{session_id}")
    rows = user_data.row_loader(path).load_session(session_id)
    facts = _load_facts(user_data, rows, session_id, report)
    _count_related_rows(rows, facts, report)
    if (
        not rows.bubble_rowids
        and not _has_conversation(facts.composer)
        and (inline := user_data.inline_composer(session_id))
    ):
        # The global record has lost the conversation, but the list of the workspace contains it.
        list_path, composer = inline
        facts = facts._replace(composer=composer)
        report.path, report.record = str(list_path), f"{COMPOSERS_KEY} {session_id}"
    yield from _read_session(user_data, path, facts, rows, report)


def read_inline(user_data: UserData, file: DatabaseFile, session_id: str) -> Iterator[Item]:
    """Read a session with its conversation in the list of its workspace, as the first builds stored it."""
    report = UnitReport(str(file.path), f"{COMPOSERS_KEY} {session_id}")
    record = user_data.database(file.path).read(lambda connection: inline_composer(connection, session_id))
    entry = user_data.database_lists(file).entries.get(session_id)
    header = entry.header if entry else ComposerHeader()
    facts = SessionFacts(
        session_id, header, record or Composer(), entry, has_data=record is not None, has_row=False
    )
    rows = user_data.row_loader(file.path).empty_session(session_id)
    yield from _read_session(user_data, file.path, facts, rows, report)


def is_subagent_entry(session_id: str, header: ComposerHeader, entry: ListEntry | None = None) -> bool:
    """Return whether a session was started by another one, according to its list entry."""
    return (
        session_id.startswith("task-")
        or isinstance(header.subagent_info, dict)
        or header.is_best_of_n_subcomposer is True
        or bool(as_text(header.parent_composer_id))
        or (entry is not None and entry.is_subagent)
    )


def _load_facts(user_data: UserData, rows: SessionRows, session_id: str, report: UnitReport) -> SessionFacts:
    entry = user_data.list_entry(session_id)
    value = rows.composer_value()
    composer = Composer()
    has_data = False
    fault: Fault | None = None
    if isinstance(value, DamagedValue):
        report.add_problem(f"composerData:{session_id}", "damaged-database", value.reason)
    elif value is not None:
        subject = "the record of the session"
        try:
            composer, fault = decode_record(value, Composer, subject)
            has_data = True
        except UndecodableError as error:
            fault = error.fault(subject)
        if fault is not None:
            report.add_problem(f"composerData:{session_id}", *fault)
    if rows.composer_rowid:
        otherwise: Literal["ignored", "problems"] = "ignored" if value is None else "problems"
        report.counts.count("composerData", "parsed" if has_data and fault is None else otherwise)
    version = as_int(composer.v)
    if version is not None and version > NEWEST_COMPOSER_VERSION:
        report.counts.add_unknown(f"composerData _v {version}")
    header = entry.header if entry else ComposerHeader()
    is_damaged = value is not None and not has_data
    return SessionFacts(session_id, header, composer, entry, has_data, bool(rows.composer_rowid), is_damaged)


def _has_conversation(composer: Composer) -> bool:
    lists = (composer.conversation, composer.full_conversation_headers_only, composer.conversation_map)
    return any(len(each) > len(b"null") for each in lists)


def _count_related_rows(rows: SessionRows, facts: SessionFacts, report: UnitReport) -> None:
    for family, row_count in rows.related_counts.items():
        report.counts.count(family, "ignored", row_count)
    if facts.entry is None or not facts.entry.is_row:
        return
    if facts.entry.fault:
        report.counts.count("composerHeaders", "problems")
        report.add_problem(f"composerHeaders {facts.session_id}", *facts.entry.fault)
    else:
        report.counts.count("composerHeaders", "ignored")


def _read_session(
    user_data: UserData, path: Path, facts: SessionFacts, rows: SessionRows, report: UnitReport
) -> Iterator[Item]:
    """Yield the stream of one session. The record counts come last."""
    latest = latest_plausible()
    parent_id = workspace.find_parent_id(workspace.WorkspaceRecords(facts.header, facts.composer))
    is_subagent = (parent_id is not None or _is_marked_as_subagent(facts)) and not _is_circular(
        user_data, path, facts, parent_id
    )
    parent_id = parent_id if is_subagent else None
    agent_id = facts.session_id if is_subagent else None
    model, is_auto = _session_model(user_data, facts)
    agent_record = AgentRecord(
        user_data.row_loader(path), facts.session_id, facts.composer.conversation_state, model, report
    )
    records = workspace.WorkspaceRecords(
        facts.header,
        facts.composer,
        facts.entry.workspace_id if facts.entry else "",
        lambda: agent_record.workspace_uris,
    )
    found_workspace = workspace.find_workspace(
        user_data,
        facts.session_id,
        records,
        parent_id=parent_id,
        records_of=lambda other_id: _workspace_records(user_data, path, other_id),
    )
    order = order_bubbles(facts.composer, rows, latest)
    _report_order_faults(order, report)
    parser = _build_parser(
        user_data,
        path,
        facts,
        report,
        agent_id,
        model,
        latest,
        is_auto=is_auto,
        collects_files=found_workspace is None,
    )
    builder = MessageBuilder(facts.session_id, order, rows, parser, agent_record, report, latest)
    started_at, ended_at = session_facts.stored_times(facts, latest)
    content: Iterator[_ContentItem] = chain(
        fill_timestamps(builder.active_messages(facts.composer), started_at, ended_at),
        fill_timestamps(builder.inactive_messages(facts.composer), started_at, ended_at),
    )
    first_items, store = _read_first_message(content, "bubbles" if rows.bubble_rowids else "inline")
    reasons: list[str] = []
    storage_ids = found_workspace.storage_ids if found_workspace else ()
    if not store and (recovered := _recover(user_data, facts, agent_record, storage_ids, latest)):
        store, first_items, content = recovered.store, [], iter(recovered.items)
        reasons.append(recovered.reason)
    yield Opening(
        source=locations.SOURCE,
        id=facts.session_id,
        store=store or ("inline" if facts.has_data and not rows.bubble_rowids else "bubbles"),
        agent_id=agent_id,
        parent_id=parent_id,
    )
    stats = session_facts.MessageStats()
    for item in chain(first_items, content):
        if report.problems:
            yield from report.take_problems()
        if isinstance(item, Message):
            item = replace(item, agent_id=agent_id) if item.agent_id != agent_id else item
            item = _mark_copy(item, facts.composer.copied_from)
            stats.add(item)
        yield item
    yield from report.take_problems()
    if (totals := session_facts.reported_totals(facts, latest)) is not None:
        yield totals
    yield from parser.links
    yield from _subagent_links(facts)
    if found_workspace is None:
        found_workspace = _guess_workspace(user_data, path, rows, facts.session_id, parser)
    if builder.shortened_count:
        reasons.append(f"part of {pluralize(builder.shortened_count, 'message')} nested too deeply")
    loss = session_facts.ContentLoss(
        builder.missing_count,
        builder.emptied_count,
        builder.orphan_count,
        order.is_inferred,
        tuple(reasons),
        store,
    )
    yield session_facts.build_closing(
        user_data,
        facts,
        stats,
        found_workspace,
        loss,
        parser.decisions,
        parent_id,
        latest,
        is_subagent=is_subagent,
    )
    yield from user_data.side_databases.take_problems()
    yield report.counts


def _mark_copy(message: Message, copied_from: Any) -> Message:
    """Mark a message of a copied session, unless it was written after the copy was made."""
    if copied_from is None:
        return message
    origin = as_map(copied_from)
    copied_at, session_id = as_int(origin.get("at")), as_text(origin.get("composerId"))
    if not session_id or copied_at is None:
        return message
    if message.timestamp is not None and message.timestamp.timestamp() * 1000 > copied_at:
        return message
    return replace(message, copied_from=session_id)


def _read_first_message(content: Iterator[_ContentItem], store: str) -> tuple[list[_ContentItem], str]:
    """Return the items up to the first message with content, and the store; empty if there is none."""
    first_items: list[_ContentItem] = []
    for item in content:
        first_items.append(item)
        if isinstance(item, Message) and item.kind not in PLACEHOLDER_KINDS:
            return first_items, store
    return first_items, ""


def _report_order_faults(order: BubbleOrder, report: UnitReport) -> None:
    for fault in order.faults:
        report.add_problem(
            report.record, "unexpected-shape", f"the message list could not be read completely: {fault}"
        )


def _session_model(user_data: UserData, facts: SessionFacts) -> tuple[str | None, bool]:
    """Return the selected model, or the one that wrote most of the code; and whether "Auto" is selected."""
    name = as_text(as_map(facts.composer.model_config).get("modelName"))
    return (
        (user_data.side_databases.model(facts.session_id), True)
        if name in bubble.AUTO_MODELS
        else (name, False)
    )


def _build_parser(
    user_data: UserData,
    path: Path,
    facts: SessionFacts,
    report: UnitReport,
    agent_id: str | None,
    model: str | None,
    latest: datetime,
    *,
    is_auto: bool,
    collects_files: bool,
) -> bubble.BubbleParser:
    row_loader = user_data.row_loader(path)
    return bubble.BubbleParser(
        path=report.path,
        agent_id=agent_id,
        latest=latest,
        proposals=CodeProposals(
            facts.composer.code_block_data, RelatedRows(row_loader, facts.session_id).get
        ),
        images=user_data.image_files,
        model=model,
        is_auto=is_auto,
        collects_files=collects_files,
    )


def _is_circular(user_data: UserData, path: Path, facts: SessionFacts, parent_id: str | None) -> bool:
    """Return whether the chain of parents leads back to this session. Then no parent is valid."""
    seen = {facts.session_id}
    ancestor_id = parent_id
    while ancestor_id and ancestor_id not in seen:
        seen.add(ancestor_id)
        entry = user_data.global_list().entries.get(ancestor_id)
        records = (
            workspace.WorkspaceRecords(entry.header, Composer())
            if entry
            else _workspace_records(user_data, path, ancestor_id)
        )
        ancestor_id = workspace.find_parent_id(records) if records else None
    return ancestor_id == facts.session_id


def _is_marked_as_subagent(facts: SessionFacts) -> bool:
    """Return whether a session is marked as a subagent, with or without a known parent."""
    return (
        facts.session_id.startswith("task-")
        or (facts.entry is not None and facts.entry.is_subagent)
        or True in (facts.header.is_best_of_n_subcomposer, facts.composer.is_best_of_n_subcomposer)
    )


def _workspace_records(user_data: UserData, path: Path, session_id: str) -> workspace.WorkspaceRecords | None:
    """Return the records of another session that may name its folder; None if there are none."""
    entry = user_data.list_entry(session_id)
    value = user_data.row_loader(path).value_by_key(f"composerData:{session_id}")
    composer = Composer()
    if isinstance(value, bytes):
        try:
            composer = decode(value, Composer)
        except UndecodableError:
            value = None
    if entry is None and value is None:
        return None
    return workspace.WorkspaceRecords(
        entry.header if entry else ComposerHeader(), composer, entry.workspace_id if entry else ""
    )


def _subagent_links(facts: SessionFacts) -> Iterator[SubagentLink]:
    """Return the link to the call that started this session."""
    for record in (facts.header.subagent_info, facts.composer.subagent_info):
        if call_id := as_text(as_map(record).get("toolCallId")):
            yield SubagentLink(
                agent_id=facts.session_id, tool_call_id=call_id, evidence="subagentInfo", strength=0
            )
            return
    if facts.session_id.startswith("task-"):
        call_id = facts.session_id.removeprefix("task-")
        yield SubagentLink(
            agent_id=facts.session_id, tool_call_id=call_id, evidence="composer id", strength=2
        )


def _guess_workspace(
    user_data: UserData, path: Path, rows: SessionRows, session_id: str, parser: bubble.BubbleParser
) -> Workspace | None:
    """Guess the folder from the data sent with requests, else from the files that the session names."""
    family = "messageRequestContext"
    if rows.related_counts.get(family):
        contexts = RelatedRows(user_data.row_loader(path), session_id).values(family)
        if found := workspace.from_requests(user_data, contexts):
            return found
    return workspace.from_files(user_data, parser.files)


# Sessions that have lost their messages


class _RecoveredContent(NamedTuple):
    """Recovered items, their store, and why the session is incomplete."""

    store: str
    items: Iterable[_ContentItem]
    reason: str


def _recover(
    user_data: UserData,
    facts: SessionFacts,
    agent_record: AgentRecord,
    storage_ids: tuple[str, ...],
    latest: datetime,
) -> _RecoveredContent | None:
    """Return the content of the agent's record, else of the search index, else of the prompt log."""
    started_at, ended_at = session_facts.stored_times(facts, latest)
    if items := _unless_empty(agent_record.items(started_at, ended_at)):
        return _RecoveredContent(
            "graph", items, "its messages are gone; this is what the agent remembers of them"
        )
    is_ghost = session_facts.find_visibility(facts, has_messages=False) == "ghost"
    if not is_ghost and len(memoryview(facts.composer.full_conversation_headers_only)) <= len(b"null"):
        return None
    if text := user_data.side_databases.search_text(facts.session_id):
        message = Message(
            id=f"{facts.session_id}.text",
            role="assistant",
            content=text,
            origin=Origin(
                str(locations.search_database(user_data.root)), f"conversations {facts.session_id}"
            ),
            kind="recovered",
        )
        return _RecoveredContent("search", [message], "only the text in Cursor's search index remains")
    paths = {file.storage_id: file.path for file in user_data.databases() if file.storage_id}
    for storage_id in storage_ids:
        if storage_id in paths and (
            prompts := prompt_log.prompts_between(user_data, paths[storage_id], started_at, ended_at, latest)
        ):
            return _RecoveredContent("prompts", prompts, "only the prompt log remains")
    return None


def _unless_empty(items: Iterator[_ContentItem]) -> Iterator[_ContentItem] | None:
    """Return the items unchanged; None if all messages are system messages."""
    read_items: list[_ContentItem] = []
    for item in items:
        read_items.append(item)
        if isinstance(item, Message) and item.role != "system":
            return chain(read_items, items)
    return None
