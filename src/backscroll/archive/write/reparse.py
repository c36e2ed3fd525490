"""Accounts remade from the originals that were kept, when the way they are read has become better."""

import sqlite3
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from backscroll.archive.connection import transaction
from backscroll.archive.derive.session_rows import write_vanished
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.codec import decompress, unpack
from backscroll.archive.storage.delta import messages_in, release_accounts
from backscroll.archive.storage.delta_raw import lean_on_told
from backscroll.archive.storage.raw_files import SEGMENT
from backscroll.archive.write import units
from backscroll.archive.write.closings import keep_title
from backscroll.archive.write.unit_writer import UnitWriter
from backscroll.model import Closing, Item

__all__ = ["Original", "is_same", "is_same_lately", "kept_units", "originals", "retell"]


class Original(Struct, frozen=True):
    """A unit of which the file, or the rows of a database, are kept."""

    number: int
    source: str
    platform: str
    root: str
    path: str
    size: int
    modified_at: int | None
    key: str = ""
    fingerprint: str = ""  # when it was last read
    is_gone: bool = False


class _PoorerError(Exception):
    """The new account tells less than the old one."""


def originals(db: sqlite3.Connection) -> list[Original]:
    """Every unit of which the file is kept, those of one root together."""
    rows = db.execute(
        "select id, source, platform, root, path, size, modified_at from unit"
        " where id in (select unit_id from raw_segment) order by source, root, path"
    )
    return [Original(*row) for row in rows]


def kept_units(db: sqlite3.Connection, session_id: str | None = None) -> list[Original]:
    """Every unit of which rows are kept, those of one root together; or only those of a session."""
    rows = db.execute(
        "select id, source, platform, root, path, size, modified_at, key, fingerprint, is_gone"
        " from unit u where exists (select 1 from raw_row where unit_id = u.id) and (:id is null or exists"
        " (select 1 from fragment f where f.unit_id = u.id"
        "  and (f.external_id = :id or f.parent_external_id = :id)))"
        " order by source, root, path, key",
        {"id": session_id},
    )
    return [Original(*row) for row in rows]


def is_same(db: sqlite3.Connection, number: int, file: Path) -> bool:
    """Whether a file is, byte for byte, what was kept of it last."""
    rows = db.execute(
        "select size, sha256 from raw_segment where unit_id = :unit and version ="
        " (select max(version) from raw_segment where unit_id = :unit) order by offset",
        {"unit": number},
    )
    try:
        with file.open("rb") as opened:
            return all(sha256(opened.read(size)).digest() == digest for size, digest in rows) and (
                not opened.read(1)
            )
    except OSError:
        return False


def is_same_lately(db: sqlite3.Connection, number: int, file: Path, end: int) -> bool:
    """Whether a file is, for some way back from an end, byte for byte what was kept of it last."""
    rows = db.execute(
        "select offset, size, sha256 from raw_segment where unit_id = :unit and version ="
        " (select max(version) from raw_segment where unit_id = :unit) and offset + size <= :end"
        " order by offset desc",
        {"unit": number, "end": end},
    )
    with file.open("rb") as opened:
        for offset, size, digest in rows:
            opened.seek(offset)
            if sha256(opened.read(size)).digest() != digest:
                return False
            if end - offset >= SEGMENT:
                break
    return True


def retell(
    db: sqlite3.Connection, original: Original, items: Iterable[Item], file: Path, *, may_lack: bool
) -> bool:
    """Put a unit's accounts in the place of those it had; what it told before a rewrite stays.

    ``may_lack`` says that what lay beside the file is not there any more: then an account that tells less
    than the one there was is not taken. False when all stays as it was.
    """
    number = original.number
    try:
        with transaction(db):
            before = _sizes(db, number) if may_lack else {}
            told = db.execute(
                "select distinct platform, session_external_id from fragment_session where unit_id = ?",
                [number],
            ).fetchall()
            accounts = db.execute(
                "select id, external_id, parent_external_id, store, closing from fragment"
                " where unit_id = ? and status = 'current'",
                [number],
            ).fetchall()
            release_accounts(db, [account for account, *_ in accounts])
            db.execute("delete from fragment where unit_id = ? and status = 'current'", [number])
            for table in ("subagent_evidence", "problem"):
                db.execute(f"delete from {table} where unit_id = ?", [number])  # noqa: S608 - names are ours
            # A title may be all that is left of a state that the original had before.
            was_rewritten = "exists (select 1 from fragment where unit_id = :unit and status <> 'current')"
            db.execute(
                f"delete from title_hint where unit_id = :unit and not {was_rewritten}",  # noqa: S608
                {"unit": number},
            )
            writer = UnitWriter(db, number, original.platform)
            writer.write(items)
            if not writer.was_read or (may_lack and _is_poorer(_sizes(db, number), before)):
                raise _PoorerError
            for _, *same, closing in accounts:
                _keep_title(db, [number, *same], closing)
            lean_on_told(db, number)
            units.record_again(db, number, writer.tally, file)
            for platform, id_ in told:
                write_vanished(db, SessionKey(platform, id_))
    except _PoorerError:
        return False
    return True


def _keep_title(db: sqlite3.Connection, account: list[object], closing: bytes) -> None:
    """A title may be from a state that the original had before."""
    new = db.execute(
        "select id from fragment where unit_id = ? and external_id = ? and parent_external_id is ?"
        " and store = ? and status = 'current'",
        account,
    ).fetchone()
    if new is not None:
        keep_title(db, closing, new[0])


# Characters; title, workspace; what is known of messages, of subagents and else; links.
_Size = tuple[int, bool, bool, int, int, int, int]


def _sizes(db: sqlite3.Connection, unit: int) -> dict[tuple[str, str | None], _Size]:
    """How much each account of a unit tells."""
    found: dict[tuple[str, str | None], _Size] = {}
    links = db.execute("select count(*) from subagent_evidence where unit_id = ?", [unit]).fetchone()[0]
    for number, id_, parent, packed in db.execute(
        "select id, external_id, parent_external_id, closing from fragment"
        " where unit_id = ? and status = 'current'",
        [unit],
    ).fetchall():
        amended = {
            place: unpack(body)[0]
            for place, body in db.execute(
                "select position, body from message_update where fragment_id = ?", [number]
            )
        }
        size = details = 0
        for first, body in db.execute(
            "select position, body from message_chunk where fragment_id = ?", [number]
        ):
            for place, message in enumerate(messages_in(db, body), start=first):
                message = amended.get(place, message)
                size += len(message.content) + len((message.tool and message.tool.result) or "")
                known = [message.model, message.timestamp, message.git_branch]
                for attachment in message.attachments:
                    known += msgspec.structs.astuple(attachment)
                details += sum(one is not None for one in known)
        closing = msgspec.msgpack.decode(decompress(packed), type=Closing) if packed else Closing()
        facts = sum(value is not None for agent in closing.agents for value in msgspec.structs.astuple(agent))
        told = (closing.title is not None, closing.workspace is not None)
        found[id_, parent] = (size, *told, details, facts, len(closing.metadata), links)
    return found


def _is_poorer(now: dict[tuple[str, str | None], _Size], before: dict[tuple[str, str | None], _Size]) -> bool:
    return any(
        key not in now or any(less < more for less, more in zip(now[key], size, strict=True))
        for key, size in before.items()
    )
