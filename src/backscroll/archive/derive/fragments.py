"""Fragments of sessions: which of them provide the content of a session, and their closings.

A closing contains the facts that are known at the end of a read, such as title and workspace.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from backscroll.archive.session_key import PARENT, SessionKey
from backscroll.archive.storage.codec import compress, decompress
from backscroll.model.store import HOOK_EVENTS, store_content, store_rank
from backscroll.model.stream import Closing, best_title, is_titled
from backscroll.model.workspace import PathMaps, mapped_workspace

MAX_TITLE_CHARS = 100
HOOK_FACTS = ("window", "window_started_at", "hook_ended_at")
_NO_TIME = datetime.max.replace(tzinfo=UTC)
_decoder = msgspec.msgpack.Decoder(Closing)
_QUERY = (
    "select f.id, f.source, f.store, f.external_id, f.closing, f.message_count, f.preview, u.modified_at,"
    " u.path, u.is_gone, f.status <> 'current', f.is_subagent, iif(u.is_gone, u.folder_moves, null)"
    " from fragment f join unit u on u.id = f.unit_id where length(f.closing)"
)


class Fragment(msgspec.Struct):
    """Content that one unit contributes to one session: a row of `_QUERY`."""

    id: int
    source: str
    store: str
    external_id: str
    closing: Closing
    message_count: int
    preview: str | None
    modified_at: int | None  # milliseconds
    path: str
    is_gone: bool
    is_superseded: bool  # read from an earlier version of the unit
    is_subagent: bool


def session_fragments(db: sqlite3.Connection, session: SessionKey) -> list[Fragment]:
    """Return every fragment of a session, best first."""
    rows = db.execute(
        f"{_QUERY} and f.external_id = ? and f.platform = ? and (not f.is_subagent or {PARENT} is null)",
        [session.id, session.platform],
    )
    return sorted(map(_from_row, rows), key=_rank)


def subagent_fragments(db: sqlite3.Connection, session: SessionKey) -> dict[str, list[Fragment]]:
    """Return the fragments of every subagent of a session that has a unit of its own, best first."""
    rows = db.execute(
        f"{_QUERY} and {PARENT} = ? and f.platform = ? and f.is_subagent = 1",
        [session.id, session.platform],
    )
    found: dict[str, list[Fragment]] = {}
    for fragment in sorted(map(_from_row, rows), key=_rank):
        found.setdefault(fragment.external_id, []).append(fragment)
    return found


def _from_row(row: tuple[Any, ...]) -> Fragment:
    *row_fields, moves = row
    closing = _decode_closing(row[4])
    if moves is not None and closing.workspace is not None:
        maps = PathMaps(()).followed_by_each(msgspec.json.decode(moves))
        closing = replace(closing, workspace=mapped_workspace(closing.workspace, maps))
    fields = [*row_fields[:4], closing, *row_fields[5:9], *map(bool, row_fields[9:])]
    return Fragment(*fields)


def _rank(fragment: Fragment) -> tuple[bool, int, bool, bool, float, str, int]:
    updated = fragment.closing.updated_at
    newest = -updated.timestamp() if updated is not None else 0.0
    store = store_rank(fragment.store)
    is_past = fragment.is_superseded, fragment.is_gone  # current content before removed content
    return not fragment.message_count, store, *is_past, newest, fragment.path, fragment.id


def content_fragments(fragments: Sequence[Fragment]) -> list[Fragment]:
    """Return the fragments that provide messages: the best one and others of the same kind of store."""
    return [fragment for fragment in fragments if fragment.store == fragments[0].store] if fragments else []


def are_gone(fragments: Sequence[Fragment]) -> bool:
    """Return whether no unit contains the content of these fragments any more."""
    with_messages = [fragment for fragment in fragments if fragment.message_count] or fragments
    return all(fragment.is_gone or fragment.is_superseded for fragment in with_messages)


def first_preview(fragments: Sequence[Fragment]) -> str | None:
    """Return the first prompt of a session, from the part with the earliest start."""
    parts = [*_parts_by_start(fragments), *fragments] if len(fragments) > 1 else fragments
    return next((part.preview for part in parts if part.preview), None)


def merged_closing(fragments: Sequence[Fragment]) -> Closing:
    """Return the best fragment's closing, with missing facts filled in from the others.

    The start, and a title that is the first message, come from the part with the earliest start.
    """
    best = fragments[0].closing
    if len(fragments) == 1:
        return best
    filled: dict[str, Any] = {}
    titled = best_title(fragment.closing for fragment in fragments)
    first = next((part.closing for part in _parts_by_start(fragments)), best)
    if titled is not None or first.title is not None:
        title = titled or first
        filled |= {"title": title.title, "title_source": title.title_source}
    if _has_fact(first, "created_at"):
        filled |= {"created_at": first.created_at, "created_at_source": first.created_at_source}
    for name in ("workspace", "created_at", "updated_at", "git_branch", "version"):
        if name in filled or _has_fact(best, name):
            continue
        known = next((each.closing for each in fragments if _has_fact(each.closing, name)), None)
        if known is not None:
            source = f"{name}_source"
            filled |= {field: getattr(known, field) for field in (name, source) if hasattr(known, field)}
    if best.visibility in ("hidden", "deleted"):
        # The session is not listed only if no other content fragment makes it visible.
        visibilities = (one.closing.visibility for one in content_fragments(fragments) if one.message_count)
        visible = (v for v in visibilities if v in ("listed", "archived"))
        filled["visibility"] = next(visible, best.visibility)
    if reported := _facts_of_hooks(fragments):
        filled["metadata"] = best.metadata | reported
    others = (one for one in fragments[1:] if not one.is_superseded)
    for notes in (one.closing for one in others if store_content(one.store) == "notes"):
        filled["metadata"] = notes.metadata | filled.get("metadata", best.metadata)
        if notes.visibility == "archived" and best.visibility == "listed":
            filled["visibility"] = "archived"
    return replace(best, **filled)


def _parts_by_start(fragments: Sequence[Fragment]) -> list[Fragment]:
    """Return the content fragments in the order of their start times, without other versions of the content.

    The file of a session may continue in another folder. Superseded fragments and inactive copies, which have
    no time of change, are not parts of the session.
    """
    parts = [
        one
        for one in content_fragments(fragments)
        if one.message_count
        and one.is_superseded == fragments[0].is_superseded
        and one.closing.updated_at is not None
        and _has_fact(one.closing, "created_at")
    ]
    return sorted(parts, key=lambda part: part.closing.created_at or _NO_TIME)


def _has_fact(closing: Closing, name: str) -> bool:
    """Return whether a fact is known from the content. The modification time of the file does not count."""
    return getattr(closing, name) is not None and not (
        name == "created_at" and closing.created_at_source == "file"
    )


def _facts_of_hooks(fragments: Sequence[Fragment]) -> dict[str, Any]:
    """Return the facts that only hooks know: the window of a session, and when it ended."""
    metadata = next((one.closing.metadata for one in fragments if one.store == HOOK_EVENTS.name), {})
    return {name: value for name, value in metadata.items() if name in HOOK_FACTS}


def closing_from_subagents(subagents: Iterable[Sequence[Fragment]]) -> Closing:
    """Return a closing for a session that has only subagents."""
    groups = sorted(
        subagents, key=lambda group: (str(merged_closing(group).created_at or "~"), group[0].external_id)
    )
    closings = [merged_closing(group) for group in groups]
    created = [closing.created_at for closing in closings if closing.created_at is not None]
    updated = [closing.updated_at for closing in closings if closing.updated_at is not None]
    return Closing(
        title=next(filter(None, map(_subagent_title, groups)), None),
        title_source="subagent",
        workspace=next((closing.workspace for closing in closings if closing.workspace is not None), None),
        created_at=min(created, default=None),
        created_at_source="neighbour" if created else None,
        updated_at=max(updated, default=None),
        git_branch=next((closing.git_branch for closing in closings if closing.git_branch), None),
        version=next((closing.version for closing in closings if closing.version), None),
        completeness="lossy",
        reasons=("only its subagents are left",),
        visibility="listed" if any(closing.visibility == "listed" for closing in closings) else "hidden",
    )


def _subagent_title(group: Sequence[Fragment]) -> str | None:
    """Return a subagent's title, its description, or the start of its prompt."""
    closing = merged_closing(group)
    descriptions = (a.description for a in closing.agents if a.agent_id == group[0].external_id)
    preview = " ".join((first_preview(group) or "").split())[:MAX_TITLE_CHARS]
    return closing.title or next(descriptions, None) or preview


def closings_of_sessions(db: sqlite3.Connection, fragment_ids: Iterable[int]) -> dict[int, Closing]:
    """Return the closings of fragments that are sessions, not subagents, by fragment."""
    found: dict[int, Closing] = {}
    for fragment_id in fragment_ids:
        row = db.execute(
            "select closing from fragment where id = ? and length(closing)"
            " and (not is_subagent or coalesce(parent_external_id, inferred_parent_external_id) is null)",
            [fragment_id],
        ).fetchone()
        if row is not None:
            found[fragment_id] = _decode_closing(row[0])
    return found


def load_closing(db: sqlite3.Connection, fragment_id: int) -> Closing | None:
    """Return the closing of a fragment; None if it has none yet."""
    (body,) = db.execute("select closing from fragment where id = ?", [fragment_id]).fetchone()
    return decode_closing(body)


def retain_title(db: sqlite3.Connection, body: bytes, fragment_id: int) -> None:
    """Copy the title of an encoded closing into a fragment that has none."""
    before, now = decode_closing(body), load_closing(db, fragment_id)
    if before is None or now is None or is_titled(now) or not is_titled(before):
        return
    titled = replace(now, title=before.title, title_source=before.title_source)
    db.execute("update fragment set closing = ? where id = ?", [encode_closing(titled), fragment_id])


def decode_closing(body: bytes) -> Closing | None:
    """Decode a stored closing; None if the fragment has no closing yet."""
    return _decode_closing(body) if body else None


def _decode_closing(body: bytes) -> Closing:
    return _decoder.decode(decompress(body))


def encode_closing(closing: Closing) -> bytes:
    """Encode a closing for storage."""
    return compress(msgspec.msgpack.encode(closing))


def undone_fragments(db: sqlite3.Connection) -> frozenset[int]:
    """Return the ids of the fragments of all undone copies and their subagents."""
    if db.execute("select 1 from undone_copy limit 1").fetchone() is None:
        return frozenset()
    rows = db.execute(
        "select fragment_id from fragment_session where (platform, session_external_id) in undone_copy"
    )
    return frozenset(id_ for (id_,) in rows)
