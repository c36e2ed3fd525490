"""One session, put together from its rows, the lists that name it, and what lies beside them."""

from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec.structs import replace

from backscroll.model import Item, Message, Opening, Problem, SubagentLink, ToolResult, Workspace
from backscroll.sources.cursor import workspace
from backscroll.sources.cursor.database.decode import Undecodable, as_int, as_map, as_text, decode
from backscroll.sources.cursor.database.record_types import KNOWN_COMPOSER, Composer, Head
from backscroll.sources.cursor.database.session_lists import COMPOSERS_KEY, Entry
from backscroll.sources.cursor.database.session_rows import Beside, Damaged, Shelf
from backscroll.sources.cursor.session import bubble, closing, recovery, session_facts, timestamps
from backscroll.sources.cursor.session.agent_record import Memory
from backscroll.sources.cursor.session.code_proposals import Proposals
from backscroll.sources.cursor.session.messages import Talk, timed
from backscroll.sources.cursor.session.order import Order, arrange
from backscroll.sources.cursor.session.record_counts import Notes
from backscroll.sources.cursor.session.session_facts import Facts
from backscroll.sources.cursor.user_data import Library

__all__ = ["SOURCE", "is_agent", "read", "tell"]

SOURCE = "cursor"

_Said: TypeAlias = Message | ToolResult | Problem


def is_agent(session: str, head: Head, entry: Entry | None = None) -> bool:
    """Whether a session was started by another one, as far as a list tells."""
    return (
        session.startswith("task-")
        or isinstance(head.subagent_info, dict)
        or head.is_best_of_n_subcomposer is True
        or bool(as_text(head.parent_composer_id))
        or (entry is not None and entry.is_subagent)
    )


def read(library: Library, path: Path, session: str) -> Iterator[Item]:
    """A session that has rows of its own, or of which at least the global list knows."""
    notes = Notes(str(path), f"composerData:{session}")
    shelf = library.warehouse(path).take(session)
    facts = _facts(library, shelf, session, notes)
    _count_others(shelf, facts, notes)
    if not shelf.bubbles and not _has_words(facts.composer) and (copy := library.inline(session)):
        # The workspace's own list still has the conversation, which the global record has lost.
        place, composer = copy
        facts = facts._replace(composer=composer)
        notes.path, notes.record = str(place), f"{COMPOSERS_KEY} {session}"
    yield from tell(library, path, facts, shelf, notes)


def _has_words(composer: Composer) -> bool:
    lists = (composer.conversation, composer.full_conversation_headers_only, composer.conversation_map)
    return any(len(each) > len(b"null") for each in lists)


def _facts(library: Library, shelf: Shelf, session: str, notes: Notes) -> Facts:
    entry = library.entry(session)
    value = shelf.data()
    composer = Composer()
    has_data = False
    if isinstance(value, Damaged):
        notes.trouble(f"composerData:{session}", "damaged-database", value.reason)
    elif value is not None:
        try:
            composer = decode(value, Composer)
            has_data = True
        except Undecodable as error:
            notes.trouble(f"composerData:{session}", "not-json", f"not readable as JSON: {error}")
    if shelf.data_rowid:
        empty: Literal["ignored", "problems"] = "ignored" if value is None else "problems"
        notes.tally.count("composerData", "parsed" if has_data else empty)
    version = as_int(composer.v)
    if version is not None and version > KNOWN_COMPOSER:
        notes.tally.add_unknown(f"composerData _v {version}")
    head = entry.head if entry else Head()
    is_damaged = value is not None and not has_data
    return Facts(session, head, composer, entry, has_data, bool(shelf.data_rowid), is_damaged)


def _count_others(shelf: Shelf, facts: Facts, notes: Notes) -> None:
    for family, number in shelf.others.items():
        notes.tally.count(family, "ignored", number)
    if facts.entry is None or not facts.entry.is_row:
        return
    if facts.entry.fault:
        notes.tally.count("composerHeaders", "problems")
        notes.trouble(f"composerHeaders {facts.session}", *facts.entry.fault)
    else:
        notes.tally.count("composerHeaders", "ignored")


def tell(library: Library, path: Path, facts: Facts, shelf: Shelf, notes: Notes) -> Iterator[Item]:
    """The stream of one session, its tally last."""
    latest = timestamps.latest_believable()
    parent = workspace.parent_of(workspace.Claims(facts.head, facts.composer))
    is_child = (parent is not None or _is_marked(facts)) and not _is_circular(library, path, facts, parent)
    parent = parent if is_child else None
    agent_id = facts.session if is_child else None
    model, is_auto = _model(library, facts)
    memory = Memory(library.warehouse(path), facts.session, facts.composer.conversation_state, model, notes)
    claims = workspace.Claims(
        facts.head,
        facts.composer,
        facts.entry.workspace_id if facts.entry else "",
        lambda: memory.workspace_uris,
    )
    home = workspace.attribute(
        library, facts.session, claims, parent=parent, claims_of=lambda name: _claims(library, path, name)
    )
    order = arrange(facts.composer, shelf, latest)
    _note_faults(order, notes)
    voice = _voice(
        library, path, facts, notes, agent_id, model, latest, is_auto=is_auto, is_lost=home is None
    )
    talk = Talk(facts.session, order, shelf, voice, memory, notes, latest)
    begun, _ = session_facts.span(facts, latest)
    spoken: Iterator[_Said] = chain(
        timed(talk.conversation(facts.composer), begun), timed(talk.abandoned(facts.composer), begun)
    )
    held, store = _first_words(spoken, "bubbles" if shelf.bubbles else "inline")
    reasons: list[str] = []
    storages = home.storage_ids if home else ()
    if not store and (rescued := recovery.recover(library, facts, memory, storages, latest)):
        store, held, spoken = rescued.store, [], iter(rescued.items)
        reasons.append(rescued.reason)
    yield Opening(
        source=SOURCE,
        id=facts.session,
        store=store or ("inline" if facts.has_data and not shelf.bubbles else "bubbles"),
        agent_id=agent_id,
        parent_id=parent,
    )
    digest = closing.Digest()
    for item in chain(held, spoken):
        if notes.problems:
            yield from notes.flush()
        if isinstance(item, Message):
            item = replace(item, agent_id=agent_id) if item.agent_id != agent_id else item
            digest.take(item)
        yield item
    yield from notes.flush()
    yield from voice.links
    yield from _links(facts)
    if home is None:
        home = _guess(library, path, shelf, facts.session, voice)
    remains = closing.Remains(
        talk.missing, talk.emptied, talk.orphans, order.is_inferred, tuple(reasons), store
    )
    yield closing.close(
        library, facts, digest, home, remains, voice.decisions, parent, latest, is_child=is_child
    )
    yield from library.side.problems()
    yield notes.tally


def _first_words(spoken: Iterator[_Said], store: str) -> tuple[list[_Said], str]:
    """Messages up to the first that is really there; an empty store when there is none."""
    held: list[_Said] = []
    for item in spoken:
        held.append(item)
        if isinstance(item, Message) and item.kind not in ("missing", "recovered"):
            return held, store
    return held, ""


def _note_faults(order: Order, notes: Notes) -> None:
    for fault in order.faults:
        notes.trouble(
            notes.record, "unexpected-shape", f"an entry of its message list could not be read: {fault}"
        )


def _model(library: Library, facts: Facts) -> tuple[str | None, bool]:
    """The model chosen last; where that was "Auto", the one that wrote most of the code, and True."""
    named = as_text(as_map(facts.composer.model_config).get("modelName"))
    return (library.side.model(facts.session), True) if named in bubble.AUTO else (named, False)


def _voice(
    library: Library,
    path: Path,
    facts: Facts,
    notes: Notes,
    agent_id: str | None,
    model: str | None,
    latest: datetime,
    *,
    is_auto: bool,
    is_lost: bool,
) -> bubble.Voice:
    warehouse = library.warehouse(path)
    return bubble.Voice(
        path=notes.path,
        agent_id=agent_id,
        latest=latest,
        proposals=Proposals(facts.composer.code_block_data, Beside(warehouse, facts.session).get),
        images=library.images,
        model=model,
        is_auto=is_auto,
        seeks_files=is_lost,
    )


def _is_circular(library: Library, path: Path, facts: Facts, parent: str | None) -> bool:
    """Whether following parents leads back here: then nobody started anybody."""
    seen = {facts.session}
    name = parent
    while name and name not in seen:
        seen.add(name)
        entry = library.heads().entries.get(name)
        claims = workspace.Claims(entry.head, Composer()) if entry else _claims(library, path, name)
        name = workspace.parent_of(claims) if claims else None
    return name == facts.session


def _is_marked(facts: Facts) -> bool:
    """Whether a session is called somebody's child, whoever that may be."""
    return (
        facts.session.startswith("task-")
        or (facts.entry is not None and facts.entry.is_subagent)
        or True in (facts.head.is_best_of_n_subcomposer, facts.composer.is_best_of_n_subcomposer)
    )


def _claims(library: Library, path: Path, session: str) -> workspace.Claims | None:
    """What another session's records say of its folder."""
    entry = library.entry(session)
    value = library.warehouse(path).value_at(f"composerData:{session}")
    composer = Composer()
    if isinstance(value, bytes):
        try:
            composer = decode(value, Composer)
        except Undecodable:
            value = None
    if entry is None and value is None:
        return None
    return workspace.Claims(entry.head if entry else Head(), composer, entry.workspace_id if entry else "")


def _links(facts: Facts) -> Iterator[SubagentLink]:
    """What ties this session to the call that started it."""
    for record in (facts.head.subagent_info, facts.composer.subagent_info):
        if call := as_text(as_map(record).get("toolCallId")):
            yield SubagentLink(agent_id=facts.session, tool_call_id=call, evidence="subagentInfo", strength=0)
            return
    if facts.session.startswith("task-"):
        call = facts.session.removeprefix("task-")
        yield SubagentLink(agent_id=facts.session, tool_call_id=call, evidence="composer id", strength=2)


def _guess(library: Library, path: Path, shelf: Shelf, session: str, voice: bubble.Voice) -> Workspace | None:
    """The folder by what was sent along with requests, else by the files that were named."""
    family = "messageRequestContext"
    if shelf.others.get(family):
        sent = Beside(library.warehouse(path), session).values(family)
        if found := workspace.from_requests(library, sent):
            return found
    return workspace.from_files(library, voice.files)
