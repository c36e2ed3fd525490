"""Parse stored originals again, after a source has become better at reading them."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct, field

from backscroll.archive.connection import transaction
from backscroll.archive.derive.session_rows import delete_empty_session
from backscroll.archive.maintenance.relocation import apply_folder_maps
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.codec import decode_chunk
from backscroll.archive.storage.delta import read_messages, rebase_fragment_dependents
from backscroll.archive.storage.delta_raw import delta_compress_file
from backscroll.archive.storage.originals import Original
from backscroll.archive.write import unit_rows
from backscroll.archive.write.closings import decode_closing, retain_title
from backscroll.archive.write.superseded import retain_deleted_sessions
from backscroll.archive.write.unit_writer import UnitWriter
from backscroll.model import Closing, Item

__all__ = ["replace_from_original"]


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
