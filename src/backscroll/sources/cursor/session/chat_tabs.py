"""Read conversations of the chat panel, the predecessor of composers."""

from collections.abc import Iterator
from sqlite3 import Connection
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from backscroll.model.message import Message
from backscroll.model.stream import Closing, Item, Opening
from backscroll.sources.cursor.database import session_lists
from backscroll.sources.cursor.database.decode import (
    UndecodableError,
    UnitReport,
    as_int,
    as_map,
    as_text,
    decode,
    decode_each,
    latest_plausible,
    parse_time,
)
from backscroll.sources.cursor.database.records import Bubble, Tab
from backscroll.sources.cursor.locations import SOURCE
from backscroll.sources.cursor.session import bubble
from backscroll.sources.cursor.session.messages import fill_timestamps
from backscroll.sources.cursor.session.session_facts import MessageStats, title_from_text
from backscroll.sources.cursor.session.tool_calls import CodeProposals
from backscroll.sources.cursor.session.workspace import from_files, from_storage
from backscroll.sources.cursor.user_data import DatabaseFile, UserData


class _TabBubble(Bubble, rename="camel", gc=False):
    """Message of the chat panel: the fields of a bubble, and those of the panel."""

    id: Any = None
    role: Any = None
    init_text: Any = None
    delegate: Any = None
    image: Any = None


def read_tab(user_data: UserData, file: DatabaseFile, tab_id: str, session_id: str) -> Iterator[Item]:
    """Read a tab of the chat panel. The unit of the database counts its rows."""
    report = UnitReport(str(file.path))
    tab = user_data.database(file.path).read(lambda connection: _load_tab(connection, tab_id))
    latest = latest_plausible()
    workspace = from_storage(user_data, file.storage_id, "workspace storage") if file.storage_id else None
    parser = bubble.BubbleParser(
        path=str(file.path),
        agent_id=None,
        latest=latest,
        proposals=CodeProposals(),
        images=user_data.image_files,
        model=None,
        collects_files=workspace is None,
    )
    yield Opening(source=SOURCE, id=session_id, store="chat")
    bubbles = tab.bubbles if len(memoryview(tab.bubbles)) > 2 else tab.messages
    stats = MessageStats()
    sent_at = next(
        (
            at
            for value in (tab.last_send_time, tab.timestamp, tab.created_at)
            if (at := parse_time(value, latest))
        ),
        None,
    )
    copied = _copied_messages(_tab_messages(bubbles, tab_id, parser, report), tab.copied_from)
    started_at = parse_time(tab.created_at, latest)
    messages = fill_timestamps(copied, started_at, sent_at)
    for message in messages:
        yield from report.take_problems()
        stats.add(message)
        yield message
    yield from report.take_problems()
    title = as_text(tab.chat_title).strip() or as_text(tab.title).strip()
    yield Closing(
        title=title or (title_from_text(stats.prompt) if stats.prompt else None),
        title_source="chat" if title else "first message" if stats.prompt else None,
        workspace=workspace or from_files(user_data, parser.files),
        created_at=started_at or stats.first_at or sent_at,
        created_at_source="stored"
        if started_at
        else "neighbour"
        if stats.first_at
        else "session"
        if sent_at
        else None,
        updated_at=max((at for at in (sent_at, stats.last_at) if at is not None), default=None),
        visibility="listed" if stats.message_count else "draft",
        metadata={"workspace_id": file.storage_id} if file.storage_id else {},
    )
    yield report.counts


def _load_tab(connection: Connection, tab_id: str) -> Tab:
    for index, raw in enumerate(
        session_lists.raw_tabs(session_lists.read_item(connection, session_lists.CHAT_KEY) or b"null")
    ):
        try:
            tab = decode(raw, Tab)
        except UndecodableError:
            continue
        if session_lists.tab_id_of(tab, index) == tab_id:
            return tab
    return Tab()


def _copied_messages(messages: Iterator[tuple[int, Message]], copied_from: Any) -> Iterator[Message]:
    """Yield messages; those that were in the tab when it was copied, with the id of the original."""
    origin = as_map(copied_from)
    original_id, count = as_text(origin.get("composerId")), as_int(origin.get("messageCount")) or 0
    for index, message in messages:
        is_copied = bool(original_id) and index < count
        yield replace(message, copied_from=original_id) if is_copied else message


def _tab_messages(
    bubbles: Raw, tab_id: str, parser: bubble.BubbleParser, report: UnitReport
) -> Iterator[tuple[int, Message]]:
    """Yield messages with the index of their record."""
    for index, raw in enumerate(decode_each(bubbles, Raw)[0]):
        try:
            record = decode(raw, _TabBubble)
        except UndecodableError as error:
            report.add_problem(
                f"{session_lists.CHAT_KEY} {tab_id}",
                *error.fault(f"message {index} of the tab"),
            )
            continue
        bubble_id = as_text(record.id) or as_text(record.bubble_id) or f"{tab_id}-{index}"
        if record.type is None:
            record.type = record.role
        is_user = bubble.role_of(record.type)[0] == "user"
        if is_user and not as_text(record.text).strip():
            record.text = bubble.document_text(record.init_text) or as_text(as_map(record.delegate).get("a"))
        if not is_user and as_text(record.raw_text).strip():
            record.text = record.raw_text
        if len(memoryview(record.context)) <= len(b"null"):
            record.context = raw  # the panel stores attachments beside the text
        if path := as_text(as_map(record.image).get("path")):
            record.images = Raw(msgspec.json.encode([{"path": path}]))
        place = f"{session_lists.CHAT_KEY} {bubble_id}"
        yield from ((index, message) for message in parser.parse(record, bubble_id, place))
