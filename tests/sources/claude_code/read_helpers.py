"""Functions that read files written by a builder."""

from pathlib import Path

from backscroll.model.message import Message, ToolCall
from backscroll.model.store import Unit
from backscroll.model.stream import Closing, Item, Opening, RecordCounts
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Transcript
from tests.oracle.fold import ParsedSession, UnitContent, fold


def read_file(path: Path, kind: str = "session") -> UnitContent:
    """Return the content of one file."""
    return fold(ClaudeCode().read(Unit("claude-code", "", str(path), kind=kind)))


def read_session(transcript: Transcript, root: Path) -> ParsedSession:
    """Write a transcript and return its only session."""
    (parsed,) = read_file(transcript.write(root)).sessions
    return parsed


def read_root(root: Path) -> dict[str, UnitContent]:
    """Return the content of all units below a root, by file name."""
    source = ClaudeCode()
    return {Path(unit.path).name: fold(source.read(unit)) for unit in source.units(root)}


def texts_of(messages: tuple[Message, ...], role: str, *, active: bool = True) -> list[str]:
    """Return the texts of the messages with a role, by default only those of active messages."""
    return [m.content for m in messages if m.role == role and (m.is_active or not active)]


def calls_of(messages: tuple[Message, ...]) -> list[ToolCall]:
    return [m.tool for m in messages if m.tool is not None]


def read_in_two_steps(path: Path, cut: int, kind: str = "session") -> UnitContent:
    """Return the content of a file that is read up to ``cut``, and then from the checkpoint on."""
    unit = Unit("claude-code", "", str(path), kind=kind)
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    first = list(ClaudeCode().read(unit))
    path.write_bytes(whole)
    counts = first[-1]
    assert isinstance(counts, RecordCounts)
    second = list(ClaudeCode().read(unit, counts.checkpoint))
    return fold(_merge_reads([*first, *second]))


def _merge_reads(items: list[Item]) -> list[Item]:
    """Merge two reads of one session as the archive does: the first opening and the last closing count."""
    openings = [item for item in items if isinstance(item, Opening)]
    closings = [item for item in items if isinstance(item, Closing)]
    between = [item for item in items if not isinstance(item, Opening | Closing)]
    return [*openings[:1], *between, *closings[-1:]]
