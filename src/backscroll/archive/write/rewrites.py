"""A unit that is read again: keep the messages that it no longer contains.

If its stored original is parsed again, what is read now must not contain less than before.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct, field

from backscroll.archive.connection import transaction
from backscroll.archive.derive.fragments import decode_closing, retain_title
from backscroll.archive.derive.session_rows import delete_empty_session
from backscroll.archive.maintenance.relocation import apply_folder_maps
from backscroll.archive.query.messages import fragment_messages
from backscroll.archive.query.originals import Original
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.codec import decode_chunk
from backscroll.archive.storage.delta import read_messages, rebase_fragment_dependents
from backscroll.archive.storage.raw_files import delta_compress_file
from backscroll.archive.write import unit_rows
from backscroll.archive.write.unit_writer import UnitWriter
from backscroll.model.message import PLACEHOLDER_KINDS, message_texts
from backscroll.model.stream import Closing, Item

_PLACEHOLDERS = (
    "select record_hash from message join string on id = kind_string_id"  # noqa: S608 - constants
    f" where fragment_id = ? and text in ({', '.join('?' * len(PLACEHOLDER_KINDS))})"
)


def retain_removed_messages(db: sqlite3.Connection, unit_id: int, *, is_appended: bool) -> int:
    """Reduce the superseded fragments of a unit to the messages that the unit no longer contains.

    Called after the unit was read from the start or read on. A session that the unit no longer contains
    stays as if the unit had vanished. Return the number of messages that were removed and kept.
    """
    kept = 0
    if not is_appended:
        _restore_unchanged(db, unit_id)
        retain_deleted_sessions(db, unit_id)
    superseded = db.execute(
        "select id, platform, external_id, parent_external_id, store, closing from fragment"
        " where unit_id = ? and status <> 'current'",
        [unit_id],
    ).fetchall()
    for fragment_id, platform, external_id, parent_id, store, closing in superseded:
        # A session may turn out to be a subagent once its parent is known.
        current = db.execute(
            "select id, store = ? and message_count > 0 from fragment indexed by fragment_external_id"
            " where unit_id = ? and external_id = ? and platform = ? and status = 'current'"
            " order by 2 desc, parent_external_id is ? desc, id",
            [store, unit_id, external_id, platform, parent_id],
        ).fetchone()
        replacement = current if current is not None and current[1] else None
        if replacement is not None:
            _delete_repeated(db, fragment_id, replacement[0])
        query = "select count(*) from message where fragment_id = ?"
        (remaining,) = db.execute(query, [fragment_id]).fetchone()
        if not remaining and current is not None:
            retain_title(db, closing, current[0])
            _retain_reported_usage(db, fragment_id, current[0])
            session_before, session_now = _session_of(db, fragment_id), _session_of(db, current[0])
            rebase_fragment_dependents(db, [fragment_id])
            db.execute("delete from fragment where id = ?", [fragment_id])
            if session_before != session_now:
                delete_empty_session(db, session_before)
            continue
        kept += remaining
        db.execute(
            "update fragment set is_derived = 0, status = 'superseded', compared_count = 0 where id = ?",
            [fragment_id],
        )
        if replacement is not None:
            _release_responses(db, fragment_id, replacement[0])
            _deactivate(db, fragment_id, replacement[0])
    return kept


def _retain_reported_usage(db: sqlite3.Connection, fragment_id: int, new_id: int) -> None:
    """Move the totals that a tool reported to the new fragment if it has none."""
    db.execute(
        "update reported_usage set fragment_id = :new where fragment_id = :old"
        " and not exists (select 1 from reported_usage where fragment_id = :new)",
        {"old": fragment_id, "new": new_id},
    )


def _deactivate(db: sqlite3.Connection, fragment_id: int, new_id: int) -> None:
    """Make the messages of a superseded fragment inactive, except those whose record the unit has lost.

    The new fragment has placeholders for such records. Their earlier messages replace the placeholders.
    """
    db.execute(
        f"update message set is_active = 0 where fragment_id = ? and record_hash not in ({_PLACEHOLDERS})",  # noqa: S608
        [fragment_id, new_id, *PLACEHOLDER_KINDS],
    )
    db.execute(
        "delete from edit where fragment_id = :id and position not in"
        " (select position from message where fragment_id = :id and is_active)",
        {"id": fragment_id},
    )


def _release_responses(db: sqlite3.Connection, fragment_id: int, new_id: int) -> None:
    """Delete the responses of a superseded fragment that its new fragment repeats or that have no message.

    Other fragments with one of them are compared again: a fragment that still contains a response owns it.
    """
    rows = db.execute(
        "select o.fragment_id, o.response_hash"
        " from response r cross join response o on o.response_hash = r.response_hash where r.fragment_id = ?",
        [fragment_id],
    ).fetchall()
    db.executemany("update response set is_copy = null where fragment_id = ? and response_hash = ?", rows)
    db.executemany("update fragment set is_derived = 0 where id = ?", {(other,) for other, _ in rows})
    db.execute(
        "delete from response where fragment_id = :old and (response_hash in"
        " (select response_hash from response where fragment_id = :new) or record_hash not in"
        " (select record_hash from message where fragment_id = :old))",
        {"old": fragment_id, "new": new_id},
    )


def _restore_unchanged(db: sqlite3.Connection, unit_id: int) -> None:
    """Make pending fragments current again if the new ones are equal, so that nothing is derived again.

    A file with all sessions, such as a prompt log, seldom contains something new for more than one.
    """
    pairs = db.execute(
        "select f.id, n.id, u.is_gone from fragment f"
        " join fragment n indexed by fragment_external_id on n.external_id = f.external_id"
        " and n.platform = f.platform and n.unit_id = f.unit_id and n.status = 'current'"
        " and (n.parent_external_id, n.store, n.message_count, n.opening, n.closing) is"
        " (f.parent_external_id, f.store, f.message_count, f.opening, f.closing)"
        " join unit u on u.id = f.unit_id where f.unit_id = :unit and f.status = 'pending'"
        " and not exists (select 1 from title_hint where unit_id = :unit)"
        " and not exists (select 1 from subagent_evidence where unit_id = :unit)",
        {"unit": unit_id},
    ).fetchall()
    for pending, new, was_gone in pairs:
        if not _have_equal_chunks(db, pending, new):
            continue
        db.execute("delete from fragment where id = ?", [new])
        db.execute(
            "update fragment set status = 'current', is_derived = is_derived and not ? where id = ?",
            [was_gone, pending],
        )


def _have_equal_chunks(db: sqlite3.Connection, first: int, second: int) -> bool:
    """Return whether two fragments have equal messages. Delta-compressed fragments count as different."""
    return not any(
        db.execute(
            f"select 1 from (select position, body from {table} where fragment_id = :a"  # noqa: S608 - names are ours
            f" except select position, body from {table} where fragment_id = :b) limit 1",
            pair,
        ).fetchone()
        for table in ("message_chunk", "message_update")
        for pair in ({"a": first, "b": second}, {"a": second, "b": first})
    )


def _delete_repeated(db: sqlite3.Connection, fragment_id: int, new_id: int) -> None:
    """Delete the message rows of a superseded fragment that the new fragment repeats."""
    start = _equal_until(db, fragment_id, new_id)
    db.execute("delete from message where fragment_id = ? and position < ?", [fragment_id, start])
    rows = db.execute(
        "select position, record_hash from message where fragment_id = ? and record_hash in"
        " (select record_hash from message where fragment_id = ?)",
        [fragment_id, new_id],
    )
    record_hashes: dict[int, int] = dict(rows.fetchall())
    if not record_hashes and not _placeholder_records(db, fragment_id):
        return
    lost_records = _placeholder_records(db, new_id)
    new_texts = {
        hash(text) for message in fragment_messages(db, new_id, start) for text in message_texts(message)
    }
    repeated = []
    for position, message in enumerate(fragment_messages(db, fragment_id, start), start=start):
        missing = [text for text in message_texts(message) if hash(text) not in new_texts]
        record_hash = record_hashes.get(position)
        if message.kind in PLACEHOLDER_KINDS:
            is_repeated = record_hash is not None or not missing
        else:
            is_repeated = (
                record_hash is not None
                and record_hash not in lost_records
                and all(_record_contains(db, new_id, record_hash, text) for text in missing)
            )
        if is_repeated:
            repeated.append((fragment_id, position))
    db.executemany("delete from message where fragment_id = ? and position = ?", repeated)


def _placeholder_records(db: sqlite3.Connection, fragment_id: int) -> set[int]:
    """Return the records of a fragment that have only a placeholder."""
    return {record_hash for (record_hash,) in db.execute(_PLACEHOLDERS, [fragment_id, *PLACEHOLDER_KINDS])}


def _equal_until(db: sqlite3.Connection, fragment_id: int, new_id: int) -> int:
    """Return the position up to which two fragments have equal chunks, and need no comparison."""
    updates = "select 1 from message_update where fragment_id in (?, ?)"
    if db.execute(updates, [fragment_id, new_id]).fetchone():
        return 0
    (first_different,) = db.execute(
        "select min(f.position) from message_chunk f left join message_chunk n"
        " on n.fragment_id = ? and n.position = f.position and n.body = f.body"
        " where f.fragment_id = ? and n.position is null",
        [new_id, fragment_id],
    ).fetchone()
    if first_different is not None:
        return int(first_different)
    (count,) = db.execute("select message_count from fragment where id = ?", [fragment_id]).fetchone()
    return int(count)


def _record_contains(db: sqlite3.Connection, fragment_id: int, record_hash: int, text: str) -> bool:
    """Return whether a fragment's messages of a record contain a text."""
    query = "select position from message where fragment_id = ? and record_hash = ?"
    for (position,) in db.execute(query, [fragment_id, record_hash]).fetchall():
        message = next(fragment_messages(db, fragment_id, position))
        if text in message.content or text in ((message.tool and message.tool.result) or ""):
            return True
    return False


def retain_deleted_sessions(db: sqlite3.Connection, unit_id: int) -> None:
    """Keep the earlier fragments of sessions that are now marked as deleted but still have messages.

    A deleted session has lost the order of its messages, its title and its folder. Its earlier fragments stay
    whole. The new fragment is reduced to messages that they lack, and deleted if there are none.
    """
    fragments = db.execute(
        "select id, external_id, platform, store, closing from fragment"
        " where unit_id = ? and status = 'current' and message_count",
        [unit_id],
    ).fetchall()
    for fragment_id, external_id, platform, store, closing in fragments:
        if not _is_deleted(closing):
            continue
        rows = db.execute(
            "select id, closing from fragment f indexed by fragment_external_id where unit_id = ?"
            " and external_id = ? and platform = ? and store = ? and status <> 'current'"
            " and exists (select 1 from message where fragment_id = f.id) order by id",
            [unit_id, external_id, platform, store],
        ).fetchall()
        if all(_is_deleted(earlier_closing) for _, earlier_closing in rows):
            continue
        for earlier_id, _ in rows:
            _delete_repeated(db, fragment_id, earlier_id)
            _release_responses(db, fragment_id, earlier_id)
        query = "select 1 from message where fragment_id = ?"
        if db.execute(query, [fragment_id]).fetchone():
            db.execute("update fragment set status = 'superseded' where id = ?", [fragment_id])
        else:
            rebase_fragment_dependents(db, [fragment_id])
            db.execute("delete from fragment where id = ?", [fragment_id])


def _is_deleted(closing: bytes) -> bool:
    """Return whether the tool had deleted the session of an encoded closing."""
    decoded = decode_closing(closing)
    return decoded is not None and decoded.visibility == "deleted"


def _session_of(db: sqlite3.Connection, fragment_id: int) -> SessionKey:
    query = "select platform, session_external_id from fragment_session where fragment_id = ?"
    return SessionKey(*db.execute(query, [fragment_id]).fetchone())


class _LessContentError(Exception):
    """The new fragments contain less than the old ones."""


def replace_from_original(
    db: sqlite3.Connection, original: Original, items: Iterable[Item], file: Path, *, may_be_incomplete: bool
) -> bool:
    """Replace the current fragments of a unit. Superseded fragments stay.

    `may_be_incomplete` means that files next to the original no longer exist. New fragments are then rejected
    if they lack content of these files, or, for rows of a database, if they contain less than the old ones.
    Return False if they were rejected or the original is unreadable.
    """
    unit_id = original.id
    try:
        with transaction(db):
            before = _content_sizes(db, unit_id) if may_be_incomplete else {}
            sessions = db.execute(
                "select distinct platform, session_external_id from fragment_session where unit_id = ?",
                [unit_id],
            ).fetchall()
            replaced = db.execute(
                "select id, external_id, parent_external_id, store, closing from fragment"
                " where unit_id = ? and status = 'current'",
                [unit_id],
            ).fetchall()
            rebase_fragment_dependents(db, [fragment_id for fragment_id, *_ in replaced])
            db.execute("delete from fragment where unit_id = ? and status = 'current'", [unit_id])
            for table in ("subagent_evidence", "problem"):
                db.execute(f"delete from {table} where unit_id = ?", [unit_id])  # noqa: S608 - names are ours
            # After a rewrite, a title hint may come from an earlier version that is no longer complete.
            was_rewritten = "exists (select 1 from fragment where unit_id = :unit and status <> 'current')"
            db.execute(
                f"delete from title_hint where unit_id = :unit and not {was_rewritten}",  # noqa: S608
                {"unit": unit_id},
            )
            writer = UnitWriter(db, unit_id, original.platform)
            writer.write(items)
            if not writer.was_read:
                raise _LessContentError
            if may_be_incomplete and _has_less(_content_sizes(db, unit_id), before, is_file=not original.key):
                raise _LessContentError
            apply_folder_maps(db, unit_id)
            for _, *key, closing in replaced:
                _retain_title(db, [unit_id, *key], closing)
            retain_deleted_sessions(db, unit_id)
            delta_compress_file(db, unit_id)
            unit_rows.save_reparsed_unit(db, unit_id, writer.record_counts, file)
            for platform, session_id in sessions:
                delete_empty_session(db, SessionKey(platform, session_id))
    except _LessContentError:
        return False
    return True


def _retain_title(db: sqlite3.Connection, key: list[object], closing: bytes) -> None:
    """Keep the title of a replaced fragment. It may come from an earlier version of the original."""
    new = db.execute(
        "select id from fragment where unit_id = ? and external_id = ? and parent_external_id is ?"
        " and store = ? and status = 'current'",
        key,
    ).fetchone()
    if new is not None:
        retain_title(db, closing, new[0])


class _MessageSizes(Struct):
    """Amounts of content in the messages of a fragment."""

    chars: int = 0
    fact_count: int = 0  # known models, times, branches and attachment fields
    # By message id: what may be stored in other files, which are results and attachments.
    from_files: dict[str, tuple[int, int]] = field(default_factory=dict)


class _ContentSize(Struct, frozen=True):
    """Amounts of content that must not decrease when a fragment is replaced."""

    messages: _MessageSizes
    has_title: bool
    has_workspace: bool
    subagent_facts: int
    metadata_keys: int
    evidence: int

    def has_less_than(self, before: "_ContentSize", *, is_file: bool) -> bool:
        """Return whether content is missing.

        The messages of a file are all in it: if the reader no longer emits one, it was a duplicate.
        """
        new, old = self.messages, before.messages
        if is_file:
            is_less = any(
                new.from_files[id_][0] < chars or new.from_files[id_][1] < fact_count
                for id_, (chars, fact_count) in old.from_files.items()
                if id_ in new.from_files
            )
        else:
            is_less = new.chars < old.chars or new.fact_count < old.fact_count
        pairs = zip(msgspec.structs.astuple(self)[1:], msgspec.structs.astuple(before)[1:], strict=True)
        return is_less or any(now < then for now, then in pairs)


_ContentSizes = dict[tuple[str, str | None], _ContentSize]  # by external id and parent


def _content_sizes(db: sqlite3.Connection, unit_id: int) -> _ContentSizes:
    sizes: _ContentSizes = {}
    query = "select count(*) from subagent_evidence where unit_id = ?"
    (evidence,) = db.execute(query, [unit_id]).fetchone()
    for fragment_id, external_id, parent_id, body in db.execute(
        "select id, external_id, parent_external_id, closing from fragment"
        " where unit_id = ? and status = 'current'",
        [unit_id],
    ).fetchall():
        closing = decode_closing(body) or Closing()
        sizes[external_id, parent_id] = _ContentSize(
            _message_sizes(db, fragment_id),
            closing.title is not None,
            closing.workspace is not None,
            sum(value is not None for agent in closing.agents for value in msgspec.structs.astuple(agent)),
            len(closing.metadata),
            evidence,
        )
    return sizes


def _message_sizes(db: sqlite3.Connection, fragment_id: int) -> _MessageSizes:
    updates = {
        position: decode_chunk(body)[0]
        for position, body in db.execute(
            "select position, body from message_update where fragment_id = ?", [fragment_id]
        )
    }
    sizes = _MessageSizes()
    chunks = "select position, body from message_chunk where fragment_id = ?"
    for first, body in db.execute(chunks, [fragment_id]):
        for position, message in enumerate(read_messages(db, body), start=first):
            message = updates.get(position, message)
            result_chars = len((message.tool and message.tool.result) or "")
            sizes.chars += len(message.content) + result_chars
            known = [
                value
                for attachment in message.attachments
                for value in msgspec.structs.astuple(attachment)
                if value is not None
            ]
            if result_chars or known:
                sizes.from_files[message.id] = result_chars, len(known)
            facts = (message.model, message.timestamp, message.git_branch)
            sizes.fact_count += len(known) + sum(fact is not None for fact in facts)
    return sizes


def _has_less(now: _ContentSizes, before: _ContentSizes, *, is_file: bool) -> bool:
    return any(
        key not in now or now[key].has_less_than(size, is_file=is_file) for key, size in before.items()
    )
