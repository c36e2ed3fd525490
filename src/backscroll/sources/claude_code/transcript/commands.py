"""Tell slash commands that are prompts from commands that the tool runs itself.

Claude Code writes both as user lines with command tags. A command that starts a model turn is expanded to a
longer prompt, which follows as an injected line. Evidence, best first:

- ``turnOrigin`` (since 2.1.282) names who started the turn.
- ``sourceToolUseID``, or a parent with the result of a `Skill` or `SlashCommand` call: the model ran it.
- A caveat as parent announces a command that the tool runs itself.
- ``<command-message>`` before ``<command-name>``: the command is expanded.
- An expansion, an answer or an interruption below the command, for example of ``/plan`` with arguments.
"""

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from backscroll.model import Message
from backscroll.sources.claude_code.transcript.branches import (
    CAVEAT,
    COMMAND,
    COMMAND_INPUT,
    DIALOG,
    META,
)
from backscroll.sources.claude_code.transcript.line_structs import Line, LineOrigin
from backscroll.sources.claude_code.transcript.user_text import Part

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.line_context import LineContext

__all__ = ["COMMAND_TOOLS", "Commands", "classify", "confirm_above", "confirm_parent", "is_typed"]

COMMAND_TOOLS = frozenset({"Skill", "SlashCommand"})  # with these the model runs a command
MAX_UNCONFIRMED_COMMANDS = 16
MAX_COMMAND_RESULTS = 16
MAX_LINES_BEFORE_ANSWER = 100  # attachments and output between a command and its answer; 20 are common

# Commands of the tool that never start a model turn, in any version seen.
_LOCAL_COMMANDS = frozenset(
    {
        "add-dir", "agents", "clear", "compact", "config", "context", "cost", "exit", "export", "help",
        "hooks", "ide", "login", "logout", "mcp", "memory", "model", "permissions", "quit", "release-notes",
        "rename", "resume", "rewind", "status", "terminal-setup", "theme", "upgrade", "usage", "vim",
    }
)  # fmt: skip
_TYPED_TURNS = ("human", "sdk")
_TYPED_SOURCES = ("typed", "queued", "sdk", "suggestion_accepted")

# Injected lines that are not the expansion of a command, although they can follow one.
_OTHER_INJECTED_TEXT = re.compile(r"\s*(?:<system-reminder>|Continue from where you left off)")


class Commands(Struct):
    """Slash commands of which later lines decide whether they are prompts. Stored in the checkpoint."""

    # By line id: the message as a prompt. It is emitted when the command turns out to be one.
    unconfirmed: dict[str, Message] = field(default_factory=dict)
    result_ids: dict[str, None] = field(default_factory=dict)  # lines with the result of a command tool
    expanded_id: str | None = None  # line of the last command that is expanded
    refused_id: str | None = None  # line of the last command that the tool refused

    def add_result(self, id_: str) -> None:
        """Add a line with the result of a command tool."""
        self.result_ids[id_] = None
        if len(self.result_ids) > MAX_COMMAND_RESULTS:
            del self.result_ids[next(iter(self.result_ids))]

    def add_unconfirmed(self, line_id: str, message: Message) -> None:
        """Keep a message that becomes a prompt if a model turn follows."""
        self.unconfirmed[line_id] = replace(message, role="user", kind=None)
        if len(self.unconfirmed) > MAX_UNCONFIRMED_COMMANDS:
            del self.unconfirmed[next(iter(self.unconfirmed))]


def classify(parts: list[Part], context: "LineContext") -> tuple[list[Part], bool]:
    """Return the parts of a user line with commands resolved. Prompts have the kind None.

    The second value is True if the line becomes a prompt only if a model turn follows.
    """
    if len(parts) == 1 and parts[0].kind is None and context.parent is not None:
        part, is_unconfirmed = _classify_text(parts[0], context)
        return [part], is_unconfirmed
    kinds = [part.kind for part in parts]
    if kinds.count("command") != 1 or "command output" in kinds:
        return parts, False
    index = kinds.index("command")
    part, is_unconfirmed = _classify_command(parts[index], context)
    return [*parts[:index], part, *parts[index + 1 :]], is_unconfirmed


def _classify_command(part: Part, context: "LineContext") -> tuple[Part, bool]:
    value, commands = context.value, context.transcript.state.commands
    prompt = Part(None, part.content)
    if value.turn_origin is not None:
        return (prompt if value.turn_origin in _TYPED_TURNS else part), False
    if value.source_tool_use_id is not None or context.parent in commands.result_ids:
        return part, False
    if _is_below_caveat(context) or _name(part.content) in _LOCAL_COMMANDS:
        return part, False
    if part.is_expanded:
        commands.expanded_id = context.id
        return prompt, False
    return part, True


def _classify_text(part: Part, context: "LineContext") -> tuple[Part, bool]:
    """Classify a text without tags. Below a caveat or a command it can be from the tool."""
    commands = context.transcript.state.commands
    if _origin_kind(context.value) == "human":
        return part, False
    if context.parent == commands.expanded_id and _is_before_2(context.value):
        # A resumed session of 1.0 is a copy in which the expansion is not marked as injected.
        return Part("meta", part.content, is_expanded=True), False
    if context.parent == commands.refused_id:
        return Part("command output", part.content), True
    if not _is_below_caveat(context):
        return part, False
    # Unknown commands and those that only the model may run (2.0.0 to 2.1.105).
    if not part.content.startswith("/"):
        return Part("command output", part.content), True
    commands.refused_id = context.id
    return Part("command", part.content), True


def confirm_parent(context: "LineContext", text: str) -> None:
    """Make a command a prompt if this injected line is its expansion."""
    if context.parent in context.transcript.state.commands.unconfirmed and not _OTHER_INJECTED_TEXT.match(
        text
    ):
        _confirm(context.parent or "", context)


def confirm_above(context: "LineContext") -> None:
    """Make a command a prompt if this line answers it, directly or below its output and attachments."""
    tree, unconfirmed = context.transcript.tree, context.transcript.state.commands.unconfirmed
    node = tree.parents[context.node]
    for _ in range(MAX_LINES_BEFORE_ANSWER):  # a bound, because parents can form a cycle
        if node < 0:
            return
        if tree.ids[node] in unconfirmed:
            _confirm(tree.ids[node], context)
            return
        flags = tree.flags[node]
        if flags & (CAVEAT | COMMAND_INPUT) or flags & (DIALOG | META | COMMAND) == DIALOG:
            return
        node = tree.parents[node]


def _confirm(line_id: str, context: "LineContext") -> None:
    transcript = context.transcript
    message = transcript.state.commands.unconfirmed.pop(line_id)
    node = transcript.tree.find(line_id)
    transcript.tree.flags[node] &= ~(COMMAND | COMMAND_INPUT)
    transcript.emit(message)


def _is_below_caveat(context: "LineContext") -> bool:
    tree = context.transcript.tree
    node = tree.find(context.parent)
    return node >= 0 and bool(tree.flags[node] & CAVEAT)


def is_typed(value: Line) -> bool:
    """Return whether the tool marks a line as typed by the user. Since 2.1.212; commands have no mark."""
    source = value.prompt_source
    return source is not None and (source in _TYPED_SOURCES or _origin_kind(value) == "human")


def _origin_kind(value: Line) -> Any:
    return value.origin.kind if isinstance(value.origin, LineOrigin) else None


def _is_before_2(value: Line) -> bool:
    return isinstance(value.version, str) and value.version.startswith(("0.", "1."))


def _name(command: str) -> str:
    return command.split(maxsplit=1)[0].removeprefix("/") if command.strip() else ""
