"""Conversations of the chat panel, which came before composers, and composers kept in a workspace's list."""

from collections.abc import Iterator
from sqlite3 import Connection
from typing import Any

import msgspec
from msgspec import Raw

from backscroll.model import Closing, Item, Message, Opening
from backscroll.sources.cursor.database import session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, as_text, decode, decode_each
from backscroll.sources.cursor.database.record_types import Bubble, Composer, ComposerHeader, Tab
from backscroll.sources.cursor.session import bubble, composer, timestamps
from backscroll.sources.cursor.session.closing import MessageStats
from backscroll.sources.cursor.session.code_proposals import CodeProposals
from backscroll.sources.cursor.session.messages import fill_timestamps
from backscroll.sources.cursor.session.session_facts import SessionFacts, title_from_text
from backscroll.sources.cursor.session.unit_report import UnitReport
from backscroll.sources.cursor.user_data import DatabaseFile, UserData
from backscroll.sources.cursor.workspace import from_files, from_storage

__all__ = ["read_inline", "read_tab"]


class _Chatter(Bubble, rename="camel", gc=False):
    """A message of the chat panel: a bubble's fields, and those that only the panel wrote."""

    id: Any = None
    role: Any = None
    init_text: Any = None
    delegate: Any = None
    image: Any = None


def read_tab(user_data: UserData, file: DatabaseFile, tab_id: str, session: str) -> Iterator[Item]:
    """One tab of the chat panel. Its rows are counted by the account of the database."""
    report = UnitReport(str(file.path))
    tab = user_data.database(file.path).read(lambda connection: _tab(connection, tab_id))
    latest = timestamps.latest_plausible()
    home = from_storage(user_data, file.storage, "workspace storage") if file.storage else None
    parser = bubble.BubbleParser(
        path=str(file.path),
        agent_id=None,
        latest=latest,
        proposals=CodeProposals(),
        images=user_data.images,
        model=None,
        collects_files=home is None,
    )
    yield Opening(source=composer.SOURCE, id=session, store="chat")
    bodies = tab.bubbles if len(memoryview(tab.bubbles)) > 2 else tab.messages
    stats = MessageStats()
    sent = next(
        (
            at
            for value in (tab.last_send_time, tab.timestamp, tab.created_at)
            if (at := timestamps.parse_time(value, latest))
        ),
        None,
    )
    said = fill_timestamps(_said(bodies, tab_id, parser, report), sent)
    for message in said:
        yield from report.take_problems()
        stats.take(message)
        yield message
    yield from report.take_problems()
    title = as_text(tab.chat_title).strip() or as_text(tab.title).strip()
    started_at = timestamps.parse_time(tab.created_at, latest)
    yield Closing(
        title=title or (title_from_text(stats.prompt) if stats.prompt else None),
        title_source="chat" if title else "first message" if stats.prompt else None,
        workspace=home or from_files(user_data, parser.files),
        created_at=started_at or stats.first or sent,
        created_at_source="stored"
        if started_at
        else "neighbour"
        if stats.first
        else "session"
        if sent
        else None,
        updated_at=max((at for at in (sent, stats.last) if at is not None), default=None),
        visibility="listed" if stats.count else "draft",
        metadata={"workspace_id": file.storage} if file.storage else {},
    )
    yield report.counts


def _tab(connection: Connection, tab_id: str) -> Tab:
    for number, raw in enumerate(
        session_lists.tab_list(session_lists.item(connection, session_lists.CHAT_KEY) or b"null")
    ):
        try:
            tab = decode(raw, Tab)
        except UndecodableError:
            continue
        if session_lists.tab_name(tab, number) == tab_id:
            return tab
    return Tab()


def _said(bodies: Raw, tab_id: str, parser: bubble.BubbleParser, report: UnitReport) -> Iterator[Message]:
    for number, raw in enumerate(decode_each(bodies, Raw)[0]):
        try:
            body = decode(raw, _Chatter)
        except UndecodableError as error:
            report.add_problem(
                f"{session_lists.CHAT_KEY} {tab_id}",
                "unexpected-shape",
                f"message {number} could not be read: {error}",
            )
            continue
        name = as_text(body.id) or as_text(body.bubble_id) or f"{tab_id}-{number}"
        if body.type is None:
            body.type = body.role
        is_user = bubble.role_of(body.type)[0] == "user"
        if is_user and not as_text(body.text).strip():
            body.text = bubble.document_text(body.init_text) or as_text(as_map(body.delegate).get("a"))
        if not is_user and as_text(body.raw_text).strip():
            body.text = body.raw_text
        if len(memoryview(body.context)) <= len(b"null"):
            body.context = raw  # the panel kept what was attached beside the text
        if path := as_text(as_map(body.image).get("path")):
            body.images = Raw(msgspec.json.encode([{"path": path}]))
        yield from parser.parse(body, name, f"{session_lists.CHAT_KEY} {name}")


def read_inline(user_data: UserData, file: DatabaseFile, session: str) -> Iterator[Item]:
    """A composer whose conversation lies in its workspace's own list, as the first builds kept it."""
    report = UnitReport(str(file.path), f"{session_lists.COMPOSERS_KEY} {session}")
    record = user_data.database(file.path).read(lambda connection: session_lists.inline(connection, session))
    entry = user_data.lists(file).entries.get(session)
    header = entry.header if entry else ComposerHeader()
    facts = SessionFacts(
        session, header, record or Composer(), entry, has_data=record is not None, has_row=False
    )
    yield from composer.read_session(
        user_data, file.path, facts, user_data.row_loader(file.path).empty(session), report
    )
