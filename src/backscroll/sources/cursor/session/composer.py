"""One session, put together from its rows, the lists that name it, and what lies beside them."""

from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec.structs import replace

from backscroll.model import Item, Message, Opening, Problem, SubagentLink, ToolResult, Workspace
from backscroll.sources.cursor import workspace
from backscroll.sources.cursor.database.decode import UndecodableError, as_int, as_map, as_text, decode
from backscroll.sources.cursor.database.record_types import NEWEST_COMPOSER_VERSION, Composer, ComposerHeader
from backscroll.sources.cursor.database.session_lists import COMPOSERS_KEY, ListEntry
from backscroll.sources.cursor.database.session_rows import DamagedValue, RelatedRows, SessionRows
from backscroll.sources.cursor.session import bubble, closing, recovery, session_facts, timestamps
from backscroll.sources.cursor.session.agent_record import AgentRecord
from backscroll.sources.cursor.session.code_proposals import CodeProposals
from backscroll.sources.cursor.session.messages import MessageBuilder, fill_timestamps
from backscroll.sources.cursor.session.order import BubbleOrder, order_bubbles
from backscroll.sources.cursor.session.session_facts import SessionFacts
from backscroll.sources.cursor.session.unit_report import UnitReport
from backscroll.sources.cursor.user_data import UserData

__all__ = ["SOURCE", "is_subagent_entry", "read", "read_session"]

SOURCE = "cursor"

_Said: TypeAlias = Message | ToolResult | Problem


def is_subagent_entry(session: str, header: ComposerHeader, entry: ListEntry | None = None) -> bool:
    """Whether a session was started by another one, as far as a list tells."""
    return (
        session.startswith("task-")
        or isinstance(header.subagent_info, dict)
        or header.is_best_of_n_subcomposer is True
        or bool(as_text(header.parent_composer_id))
        or (entry is not None and entry.is_subagent)
    )


def read(user_data: UserData, path: Path, session: str) -> Iterator[Item]:
    """A session that has rows of its own, or of which at least the global list knows."""
    report = UnitReport(str(path), f"composerData:{session}")
    rows = user_data.row_loader(path).take(session)
    facts = _facts(user_data, rows, session, report)
    _count_others(rows, facts, report)
    if not rows.bubbles and not _has_words(facts.composer) and (copy := user_data.inline(session)):
        # The workspace's own list still has the conversation, which the global record has lost.
        place, composer = copy
        facts = facts._replace(composer=composer)
        report.path, report.record = str(place), f"{COMPOSERS_KEY} {session}"
    yield from read_session(user_data, path, facts, rows, report)


def _has_words(composer: Composer) -> bool:
    lists = (composer.conversation, composer.full_conversation_headers_only, composer.conversation_map)
    return any(len(each) > len(b"null") for each in lists)


def _facts(user_data: UserData, rows: SessionRows, session: str, report: UnitReport) -> SessionFacts:
    entry = user_data.entry(session)
    value = rows.data()
    composer = Composer()
    has_data = False
    if isinstance(value, DamagedValue):
        report.add_problem(f"composerData:{session}", "damaged-database", value.reason)
    elif value is not None:
        try:
            composer = decode(value, Composer)
            has_data = True
        except UndecodableError as error:
            report.add_problem(f"composerData:{session}", "not-json", f"not readable as JSON: {error}")
    if rows.composer_rowid:
        empty: Literal["ignored", "problems"] = "ignored" if value is None else "problems"
        report.counts.count("composerData", "parsed" if has_data else empty)
    version = as_int(composer.v)
    if version is not None and version > NEWEST_COMPOSER_VERSION:
        report.counts.add_unknown(f"composerData _v {version}")
    header = entry.header if entry else ComposerHeader()
    is_damaged = value is not None and not has_data
    return SessionFacts(session, header, composer, entry, has_data, bool(rows.composer_rowid), is_damaged)


def _count_others(rows: SessionRows, facts: SessionFacts, report: UnitReport) -> None:
    for family, number in rows.others.items():
        report.counts.count(family, "ignored", number)
    if facts.entry is None or not facts.entry.is_row:
        return
    if facts.entry.fault:
        report.counts.count("composerHeaders", "problems")
        report.add_problem(f"composerHeaders {facts.session}", *facts.entry.fault)
    else:
        report.counts.count("composerHeaders", "ignored")


def read_session(
    user_data: UserData, path: Path, facts: SessionFacts, rows: SessionRows, report: UnitReport
) -> Iterator[Item]:
    """The stream of one session, its tally last."""
    latest = timestamps.latest_plausible()
    parent = workspace.parent_id(workspace.WorkspaceRecords(facts.header, facts.composer))
    is_child = (parent is not None or _is_marked(facts)) and not _is_circular(user_data, path, facts, parent)
    parent = parent if is_child else None
    agent_id = facts.session if is_child else None
    model, is_auto = _model(user_data, facts)
    agent_record = AgentRecord(
        user_data.row_loader(path), facts.session, facts.composer.conversation_state, model, report
    )
    records = workspace.WorkspaceRecords(
        facts.header,
        facts.composer,
        facts.entry.workspace_id if facts.entry else "",
        lambda: agent_record.workspace_uris,
    )
    home = workspace.find_workspace(
        user_data,
        facts.session,
        records,
        parent=parent,
        records_of=lambda name: _workspace_records(user_data, path, name),
    )
    order = order_bubbles(facts.composer, rows, latest)
    _note_faults(order, report)
    parser = _parser(
        user_data, path, facts, report, agent_id, model, latest, is_auto=is_auto, is_lost=home is None
    )
    builder = MessageBuilder(facts.session, order, rows, parser, agent_record, report, latest)
    started_at, _ = session_facts.stored_times(facts, latest)
    spoken: Iterator[_Said] = chain(
        fill_timestamps(builder.conversation(facts.composer), started_at),
        fill_timestamps(builder.abandoned(facts.composer), started_at),
    )
    held, store = _first_words(spoken, "bubbles" if rows.bubbles else "inline")
    reasons: list[str] = []
    storages = home.storage_ids if home else ()
    if not store and (recovered := recovery.recover(user_data, facts, agent_record, storages, latest)):
        store, held, spoken = recovered.store, [], iter(recovered.items)
        reasons.append(recovered.reason)
    yield Opening(
        source=SOURCE,
        id=facts.session,
        store=store or ("inline" if facts.has_data and not rows.bubbles else "bubbles"),
        agent_id=agent_id,
        parent_id=parent,
    )
    stats = closing.MessageStats()
    for item in chain(held, spoken):
        if report.problems:
            yield from report.take_problems()
        if isinstance(item, Message):
            item = replace(item, agent_id=agent_id) if item.agent_id != agent_id else item
            stats.take(item)
        yield item
    yield from report.take_problems()
    yield from parser.links
    yield from _links(facts)
    if home is None:
        home = _guess(user_data, path, rows, facts.session, parser)
    loss = closing.ContentLoss(
        builder.missing, builder.emptied, builder.orphans, order.is_inferred, tuple(reasons), store
    )
    yield closing.close(
        user_data, facts, stats, home, loss, parser.decisions, parent, latest, is_child=is_child
    )
    yield from user_data.side_databases.problems()
    yield report.counts


def _first_words(spoken: Iterator[_Said], store: str) -> tuple[list[_Said], str]:
    """Messages up to the first that is really there; an empty store when there is none."""
    held: list[_Said] = []
    for item in spoken:
        held.append(item)
        if isinstance(item, Message) and item.kind not in ("missing", "recovered"):
            return held, store
    return held, ""


def _note_faults(order: BubbleOrder, report: UnitReport) -> None:
    for fault in order.faults:
        report.add_problem(
            report.record, "unexpected-shape", f"an entry of its message list could not be read: {fault}"
        )


def _model(user_data: UserData, facts: SessionFacts) -> tuple[str | None, bool]:
    """The model chosen last; where that was "Auto", the one that wrote most of the code, and True."""
    named = as_text(as_map(facts.composer.model_config).get("modelName"))
    return (user_data.side_databases.model(facts.session), True) if named in bubble.AUTO else (named, False)


def _parser(
    user_data: UserData,
    path: Path,
    facts: SessionFacts,
    report: UnitReport,
    agent_id: str | None,
    model: str | None,
    latest: datetime,
    *,
    is_auto: bool,
    is_lost: bool,
) -> bubble.BubbleParser:
    row_loader = user_data.row_loader(path)
    return bubble.BubbleParser(
        path=report.path,
        agent_id=agent_id,
        latest=latest,
        proposals=CodeProposals(facts.composer.code_block_data, RelatedRows(row_loader, facts.session).get),
        images=user_data.images,
        model=model,
        is_auto=is_auto,
        collects_files=is_lost,
    )


def _is_circular(user_data: UserData, path: Path, facts: SessionFacts, parent: str | None) -> bool:
    """Whether following parents leads back here: then nobody started anybody."""
    seen = {facts.session}
    name = parent
    while name and name not in seen:
        seen.add(name)
        entry = user_data.global_list().entries.get(name)
        records = (
            workspace.WorkspaceRecords(entry.header, Composer())
            if entry
            else _workspace_records(user_data, path, name)
        )
        name = workspace.parent_id(records) if records else None
    return name == facts.session


def _is_marked(facts: SessionFacts) -> bool:
    """Whether a session is called somebody's child, whoever that may be."""
    return (
        facts.session.startswith("task-")
        or (facts.entry is not None and facts.entry.is_subagent)
        or True in (facts.header.is_best_of_n_subcomposer, facts.composer.is_best_of_n_subcomposer)
    )


def _workspace_records(user_data: UserData, path: Path, session: str) -> workspace.WorkspaceRecords | None:
    """What another session's records say of its folder."""
    entry = user_data.entry(session)
    value = user_data.row_loader(path).value_by_key(f"composerData:{session}")
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


def _links(facts: SessionFacts) -> Iterator[SubagentLink]:
    """What ties this session to the call that started it."""
    for record in (facts.header.subagent_info, facts.composer.subagent_info):
        if call := as_text(as_map(record).get("toolCallId")):
            yield SubagentLink(agent_id=facts.session, tool_call_id=call, evidence="subagentInfo", strength=0)
            return
    if facts.session.startswith("task-"):
        call = facts.session.removeprefix("task-")
        yield SubagentLink(agent_id=facts.session, tool_call_id=call, evidence="composer id", strength=2)


def _guess(
    user_data: UserData, path: Path, rows: SessionRows, session: str, parser: bubble.BubbleParser
) -> Workspace | None:
    """The folder by what was sent along with requests, else by the files that were named."""
    family = "messageRequestContext"
    if rows.others.get(family):
        sent = RelatedRows(user_data.row_loader(path), session).values(family)
        if found := workspace.from_requests(user_data, sent):
            return found
    return workspace.from_files(user_data, parser.files)
