"""Conversations of the chat panel, which came before composers, and composers kept in a workspace's list."""

from collections.abc import Iterator
from sqlite3 import Connection
from typing import Any

import msgspec
from msgspec import Raw

from backscroll.model import Closing, Item, Message, Opening
from backscroll.sources.cursor.database import session_lists
from backscroll.sources.cursor.database.decode import Undecodable, as_map, as_text, decode, decode_each
from backscroll.sources.cursor.database.record_types import Bubble, Composer, Head, Tab
from backscroll.sources.cursor.session import bubble, composer, timestamps
from backscroll.sources.cursor.session.closing import Digest
from backscroll.sources.cursor.session.code_proposals import Proposals
from backscroll.sources.cursor.session.messages import timed
from backscroll.sources.cursor.session.record_counts import Notes
from backscroll.sources.cursor.session.session_facts import Facts, opening_line
from backscroll.sources.cursor.user_data import Library, Shelfmark
from backscroll.sources.cursor.workspace import from_files, stored

__all__ = ["read_inline", "read_tab"]


class _Chatter(Bubble, rename="camel", gc=False):
    """A message of the chat panel: a bubble's fields, and those that only the panel wrote."""

    id: Any = None
    role: Any = None
    init_text: Any = None
    delegate: Any = None
    image: Any = None


def read_tab(library: Library, mark: Shelfmark, tab_id: str, session: str) -> Iterator[Item]:
    """One tab of the chat panel. Its rows are counted by the account of the database."""
    notes = Notes(str(mark.path))
    tab = library.database(mark.path).read(lambda connection: _tab(connection, tab_id))
    latest = timestamps.latest_believable()
    home = stored(library, mark.storage, "workspace storage") if mark.storage else None
    voice = bubble.Voice(
        path=str(mark.path),
        agent_id=None,
        latest=latest,
        proposals=Proposals(),
        images=library.images,
        model=None,
        seeks_files=home is None,
    )
    yield Opening(source=composer.SOURCE, id=session, store="chat")
    bodies = tab.bubbles if len(memoryview(tab.bubbles)) > 2 else tab.messages
    digest = Digest()
    sent = next(
        (
            at
            for value in (tab.last_send_time, tab.timestamp, tab.created_at)
            if (at := timestamps.of_value(value, latest))
        ),
        None,
    )
    said = timed(_said(bodies, tab_id, voice, notes), sent)
    for message in said:
        yield from notes.flush()
        digest.take(message)
        yield message
    yield from notes.flush()
    title = as_text(tab.chat_title).strip() or as_text(tab.title).strip()
    begun = timestamps.of_value(tab.created_at, latest)
    yield Closing(
        title=title or (opening_line(digest.prompt) if digest.prompt else None),
        title_source="chat" if title else "first message" if digest.prompt else None,
        workspace=home or from_files(library, voice.files),
        created_at=begun or digest.first or sent,
        created_at_source="stored" if begun else "neighbour" if digest.first else "session" if sent else None,
        updated_at=max((at for at in (sent, digest.last) if at is not None), default=None),
        visibility="listed" if digest.count else "draft",
        metadata={"workspace_id": mark.storage} if mark.storage else {},
    )
    yield notes.tally


def _tab(connection: Connection, tab_id: str) -> Tab:
    for number, raw in enumerate(
        session_lists.tab_list(session_lists.item(connection, session_lists.CHAT_KEY) or b"null")
    ):
        try:
            tab = decode(raw, Tab)
        except Undecodable:
            continue
        if session_lists.tab_name(tab, number) == tab_id:
            return tab
    return Tab()


def _said(bodies: Raw, tab_id: str, voice: bubble.Voice, notes: Notes) -> Iterator[Message]:
    for number, raw in enumerate(decode_each(bodies, Raw)[0]):
        try:
            body = decode(raw, _Chatter)
        except Undecodable as error:
            notes.trouble(
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
        yield from voice.say(body, name, f"{session_lists.CHAT_KEY} {name}")


def read_inline(library: Library, mark: Shelfmark, session: str) -> Iterator[Item]:
    """A composer whose conversation lies in its workspace's own list, as the first builds kept it."""
    notes = Notes(str(mark.path), f"{session_lists.COMPOSERS_KEY} {session}")
    record = library.database(mark.path).read(lambda connection: session_lists.inline(connection, session))
    entry = library.lists(mark).entries.get(session)
    head = entry.head if entry else Head()
    facts = Facts(session, head, record or Composer(), entry, has_data=record is not None, has_row=False)
    yield from composer.tell(library, mark.path, facts, library.warehouse(mark.path).empty(session), notes)
