"""Read what a builder wrote."""

from pathlib import Path

from backscroll.model import Closing, Item, Message, Opening, RecordCounts, ToolCall, Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Transcript
from tests.oracle.fold import ParsedSession, UnitContent, fold

__all__ = ["everything", "in_two", "only", "said", "tell", "tools"]


def tell(path: Path, kind: str = "session") -> UnitContent:
    """All that one file tells."""
    return fold(ClaudeCode().read(Unit("claude-code", "", str(path), kind=kind)))


def only(transcript: Transcript, root: Path) -> ParsedSession:
    """The one session a transcript tells."""
    (reading,) = tell(transcript.write(root)).sessions
    return reading


def everything(root: Path) -> dict[str, UnitContent]:
    """All that lies below a root, by file name."""
    source = ClaudeCode()
    return {Path(unit.path).name: fold(source.read(unit)) for unit in source.units(root)}


def said(messages: tuple[Message, ...], role: str, *, active: bool = True) -> list[str]:
    return [m.content for m in messages if m.role == role and (m.is_active or not active)]


def tools(messages: tuple[Message, ...]) -> list[ToolCall]:
    return [m.tool for m in messages if m.tool is not None]


def in_two(path: Path, cut: int, kind: str = "session") -> UnitContent:
    """All that a file tells when it was first read while it ended at ``cut``, and then from there on."""
    unit = Unit("claude-code", "", str(path), kind=kind)
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    first = list(ClaudeCode().read(unit))
    path.write_bytes(whole)
    tally = first[-1]
    assert isinstance(tally, RecordCounts)
    second = list(ClaudeCode().read(unit, tally.checkpoint))
    return fold(_joined([*first, *second]))


def _joined(items: list[Item]) -> list[Item]:
    """Two readings of one session as whoever keeps it puts them together: opened once, closed by the last."""
    openings = [item for item in items if isinstance(item, Opening)]
    closings = [item for item in items if isinstance(item, Closing)]
    between = [item for item in items if not isinstance(item, Opening | Closing)]
    return [*openings[:1], *between, *closings[-1:]]
