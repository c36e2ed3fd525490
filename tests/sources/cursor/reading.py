"""Read a history with the source, and check the record counts of every unit."""

from pathlib import Path

from backscroll.model.message import Message
from backscroll.model.store import Unit
from backscroll.model.stream import RecordCounts
from backscroll.sources.cursor import Cursor
from backscroll.testing import cursor
from tests.oracle.fold import ParsedSession, UnitContent, fold


def read_units(root: Path) -> dict[Unit, UnitContent]:
    """Return the content of every unit below a root."""
    source = Cursor()
    units = {unit: fold(source.read(unit)) for unit in source.units(root)}
    for content in units.values():
        counts = content.counts
        assert counts.records == counts.parsed + counts.ignored + counts.problems
        assert counts.records == sum(counts.kinds.values())
    source.close()
    return units


def read_sessions(root: Path) -> dict[str, ParsedSession]:
    """Return every session below a root by id."""
    sessions = [session for content in read_units(root).values() for session in content.sessions]
    assert len({session.opening.id for session in sessions}) == len(sessions)
    return {session.opening.id: session for session in sessions}


def read_session(root: Path, session_id: str) -> ParsedSession:
    return read_sessions(root)[session_id]


def write_and_read(home: cursor.Home, *messages: cursor.Message, **options: object) -> ParsedSession:
    """Write a session with these messages and read it."""
    composer = home.composer(messages, **options)  # type: ignore[arg-type]
    home.write()
    return read_session(home.root, composer.id)


def contents(session: ParsedSession, *, is_active: bool = True) -> list[tuple[str, str]]:
    """Return role and content of each active or inactive message."""
    return [(each.role, message_content(each)) for each in session.messages if each.is_active is is_active]


def message_content(message: Message) -> str:
    """Return the content of a message; for a tool call its name and result."""
    return f"{message.tool.name}: {message.tool.result}" if message.tool else message.content


def total_counts(root: Path) -> RecordCounts:
    """Return the sum of the record counts of all units."""
    total = RecordCounts()
    for content in read_units(root).values():
        total.records += content.counts.records
        total.problems += content.counts.problems
        for kind, count in content.counts.kinds.items():
            total.kinds[kind] = total.kinds.get(kind, 0) + count
        for name, count in content.counts.unknown.items():
            total.unknown[name] = total.unknown.get(name, 0) + count
    return total
