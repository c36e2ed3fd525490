"""What the source tells of a home, with the account of every unit checked on the way."""

from pathlib import Path

from backscroll.model import Message, RecordCounts, Unit
from backscroll.sources.cursor import Cursor
from backscroll.testing import cursor
from tests.oracle.fold import ParsedSession, UnitContent, fold


def tell(root: Path) -> dict[Unit, UnitContent]:
    """Everything below a root, unit by unit."""
    source = Cursor()
    told = {unit: fold(source.read(unit)) for unit in source.units(root)}
    for each in told.values():
        account = each.counts
        assert account.records == account.parsed + account.ignored + account.problems
        assert account.records == sum(account.kinds.values())
    source.close()
    return told


def read(root: Path) -> dict[str, ParsedSession]:
    """Every session below a root, by id."""
    found = [reading for told in tell(root).values() for reading in told.sessions]
    assert len({reading.opening.id for reading in found}) == len(found)
    return {reading.opening.id: reading for reading in found}


def read_one(root: Path, session: str) -> ParsedSession:
    return read(root)[session]


def converse(home: cursor.Home, *messages: cursor.Message, **how: object) -> ParsedSession:
    """The one session that holds these messages, written and read."""
    made = home.composer(messages, **how)  # type: ignore[arg-type]
    home.write()
    return read_one(home.root, made.id)


def said(reading: ParsedSession, *, is_active: bool = True) -> list[tuple[str, str]]:
    """Role and words of what was said; a tool's name and answer in place of its words."""
    return [(each.role, words(each)) for each in reading.messages if each.is_active is is_active]


def words(message: Message) -> str:
    return f"{message.tool.name}: {message.tool.result}" if message.tool else message.content


def total(root: Path) -> RecordCounts:
    """The accounts of all units in one."""
    whole = RecordCounts()
    for told in tell(root).values():
        whole.records += told.counts.records
        whole.problems += told.counts.problems
        for kind, number in told.counts.kinds.items():
            whole.kinds[kind] = whole.kinds.get(kind, 0) + number
        for name, number in told.counts.unknown.items():
            whole.unknown[name] = whole.unknown.get(name, 0) + number
    return whole
