"""Read what a builder wrote."""

from pathlib import Path

from backscroll.model import Message, Reading, Told, Unit, fold
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Transcript

__all__ = ["everything", "only", "said", "tell"]


def tell(path: Path, kind: str = "session") -> Told:
    """All that one file tells."""
    return fold(ClaudeCode().read(Unit("claude-code", "", str(path), kind=kind)))


def only(transcript: Transcript, root: Path) -> Reading:
    """The one session a transcript tells."""
    (reading,) = tell(transcript.write(root)).readings
    return reading


def everything(root: Path) -> dict[str, Told]:
    """All that lies below a root, by file name."""
    source = ClaudeCode()
    return {Path(unit.path).name: fold(source.read(unit)) for unit in source.units(root)}


def said(messages: tuple[Message, ...], role: str, *, active: bool = True) -> list[str]:
    return [m.content for m in messages if m.role == role and (m.is_active or not active)]
