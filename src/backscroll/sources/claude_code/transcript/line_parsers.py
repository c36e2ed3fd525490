"""Parser of each type of line. A new type belongs in one of these tables.

TREE_PARSERS    lines that form the tree of messages
RECORD_PARSERS  other lines with a prompt, a tool call or a title
IGNORED_TYPES   lines without content that the archive shows

`state_lines.STATE_HANDLERS` is the table of lines with facts about the session. Those that a copy of the
session contains, too, are listed in `moved_lines`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from backscroll.model.message import Origin
from backscroll.model.stream import TitleHint
from backscroll.sources.claude_code.transcript import message_lines, queue, system_lines
from backscroll.sources.claude_code.transcript.line_structs import as_text
from backscroll.sources.claude_code.transcript.state import LineContext

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.reader import Transcript


TreeParser: TypeAlias = Callable[[LineContext], None]
# Takes the record, its origin and its position. Returns whether the line counts as parsed.
_RecordParser: TypeAlias = "Callable[[dict[str, Any], Origin, str, Transcript], bool]"

TREE_PARSERS: dict[str, TreeParser] = {
    "assistant": message_lines.parse_assistant,
    "user": message_lines.parse_user,
    "system": system_lines.parse_system,
    "attachment": system_lines.parse_attachment,
    "progress": system_lines.parse_progress,
}


def _parse_summary(record: dict[str, Any], origin: Origin, position: str, transcript: "Transcript") -> bool:
    title, leaf = as_text(record.get("summary")), as_text(record.get("leafUuid"))
    if title is not None and leaf is not None:
        transcript.add_title_hint(TitleHint(leaf, title, origin))
    return False


RECORD_PARSERS: dict[str, _RecordParser] = {
    "summary": _parse_summary,
    "queue-operation": queue.parse_queue_operation,
    "tool_use": system_lines.parse_bare_tool,
    "tool_result": system_lines.parse_bare_tool,
}

IGNORED_TYPES = frozenset(
    {
        "atis-latch",
        "isolation-latch",
        "attribution-snapshot",
        "observer-ref",
        "dev-mods",
        "memory-mode",
        "history-suppression",
        "speculation-accept",
        "agent_metadata",
        "content-replacement",
        "bridge-session",
        "started",
        "result",
        "rewind-pointer",
        "auto-mode-denial",
        "permission-denial",
        "tools-used",
    }
)
_IGNORED_PREFIXES = ("artifact-", "api-request", "marble-origami-", "workflow-")


def is_ignored(kind: str) -> bool:
    """Return whether lines of this type are ignored."""
    return kind in IGNORED_TYPES or kind.startswith(_IGNORED_PREFIXES)
