"""Messages, tool calls, diffs and subagents as HTML."""

from collections.abc import Callable
from datetime import UTC, tzinfo
from html import escape

from backscroll.model import Message, SessionSummary, ToolCall
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.diffs import diff_lines
from backscroll.render.html.markdown import highlight_code, markdown_to_html, preformatted_html
from backscroll.render.session_header import (
    attachment_label,
    format_time,
    message_heading,
    session_title,
    speaker_label,
)
from backscroll.render.tool_calls import argument_lines, call_outcome, command_param, describe_call
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

__all__ = ["MessageFooter", "TranscriptHtml"]

_MAX_OPEN_DIFF_LINES = 60  # longer diffs are collapsed
_MAX_PROMPT_CHARS = 90  # in the list of turns
_CLOCK_CHARS = len("08:05")

# Returns HTML for the end of a message. The summary is that of the subagent, None in the session itself.
MessageFooter = Callable[[SessionSummary | None, MessageItem], str]


def _no_footer(agent: SessionSummary | None, item: MessageItem) -> str:
    return ""


class TranscriptHtml:
    """Renders the items of a transcript one by one. Collects the prompts.

    Times are in the ``zone``; None is local time. ``footer`` adds HTML to the end of each message. Without
    ``has_turns``, a turn is no element, so that rendering can start and end anywhere. Subagents are numbered
    from ``first_subagent``; their numbers are in the ids of their messages. With ``has_short_times``, a time
    has its date as a tooltip. Paths below the ``folder`` are shown relative to it.
    """

    def __init__(
        self,
        *,
        zone: tzinfo | None = UTC,
        footer: MessageFooter = _no_footer,
        has_turns: bool = True,
        first_subagent: int = 1,
        has_short_times: bool = False,
        folder: str | None = None,
    ) -> None:
        self.prompts: list[tuple[str, str]] = []  # element id and text
        self._zone = zone
        self._footer = footer
        self._has_turns = has_turns
        self._has_short_times = has_short_times
        self._folder = f"{folder.rstrip('/')}/" if folder and folder.startswith("/") else None
        self._next_subagent = first_subagent
        self._id_prefixes = ["m"]  # of messages in the session and in each open subagent
        self._agents: list[SessionSummary | None] = [None]  # the session and each open subagent
        self._is_turn_open = False
        self._previous_heading = ""

    @property
    def depth(self) -> int:
        """The number of open subagents."""
        return len(self._agents) - 1

    def render(self, item: TranscriptItem) -> str:
        """Return the HTML of one item."""
        match item:
            case SubagentStart():
                return self._start_subagent(item)
            case SubagentEnd():
                self._agents.pop()
                self._id_prefixes.pop()
                self._previous_heading = ""
                return "</div></details>\n"
            case MessageItem():
                return self._message_item(item)

    def end_turn(self) -> str:
        """Return the end of the open turn, if there is one."""
        return "</section>\n" if self._is_turn_open else ""

    def _start_subagent(self, item: SubagentStart) -> str:
        self._agents.append(item.summary)
        self._id_prefixes.append(f"a{self._next_subagent}-m")
        self._next_subagent += 1
        self._previous_heading = ""
        summary = item.summary
        tokens = f", {pluralize(summary.total_tokens, 'token')}" if summary.total_tokens is not None else ""
        unplaced = "" if item.is_placed else ", started by an unknown call"
        return (
            '<details class="agent"><summary><b>Subagent</b> '
            f"<span>{escape(session_title(summary))}</span> "
            f"<small>{pluralize(summary.message_count, 'message')}{tokens}{unplaced}</small>"
            '</summary><div class="nested">\n'
        )

    def _message_item(self, item: MessageItem) -> str:
        message = item.message
        element_id = f"{self._id_prefixes[-1]}{item.position}"
        opening = ""
        if message.role == "user" and not self.depth:
            if self._has_turns:
                opening = f'{self.end_turn()}<section class="turn">\n'
                self._is_turn_open = True
            self.prompts.append((element_id, one_line(message.content, _MAX_PROMPT_CHARS) or "(no text)"))
        return opening + self._message(message, element_id, self._footer(self._agents[-1], item))

    def _message(self, message: Message, element_id: str, footer: str) -> str:
        abandoned = "" if message.is_active else " abandoned"
        if message.tool is not None:
            self._previous_heading = ""
            return self._tool_call(message, message.tool, f'id="{element_id}"', abandoned, footer)
        heading = message_heading(message, is_agent=self.depth > 0, zone=self._zone)
        role = "task" if message.role == "user" and self.depth else message.role
        if role in ("thinking", "system"):
            self._previous_heading = ""
            return (
                f'<details class="{role}{abandoned}" id="{element_id}"><summary>{escape(heading)}</summary>'
                f"{preformatted_html(message.content, 'text')}{_attachments(message)}{footer}</details>\n"
            )
        speaker = escape(speaker_label(message, is_agent=self.depth > 0))
        author = (
            f'<p class="author"><a href="#{element_id}">{speaker}</a> {self._time(message)}</p>'
            if heading != self._previous_heading
            else ""
        )
        self._previous_heading = heading if role == "assistant" else ""
        is_markdown = role == "assistant"
        content = (
            markdown_to_html(message.content) if is_markdown else preformatted_html(message.content, "text")
        )
        return (
            f'<article class="{role}{abandoned}" id="{element_id}">{author}'
            f'<div class="content">{content}</div>{_attachments(message)}{footer}</article>\n'
        )

    def _tool_call(self, message: Message, tool: ToolCall, id_: str, abandoned: str, footer: str) -> str:
        diff = [line for edit in tool.edits for line in diff_lines(edit)]
        subject, notes = self._relative(describe_call(tool)), call_outcome(tool)
        is_open = " open" if 0 < len(diff) <= _MAX_OPEN_DIFF_LINES else ""
        failed = " failed" if tool.status in ("failed", "cancelled") else ""
        parts = [
            f'<details class="tool{failed}{abandoned}" {id_}{is_open}><summary>',
            f"<b>{escape(one_line(tool.name, 100))}</b> ",
            f"<code>{escape(subject)}</code> " if subject else "",
            f"<small>{escape(notes)}</small> " if notes else "",
            self._time(message, is_marked=False) if message.timestamp is not None else "",
            "</summary>\n",
        ]
        if message.content.strip():
            parts.append(preformatted_html(message.content, "text"))
        parts.append(_diff(diff, self._folder or "") if diff else _arguments(tool))
        if tool.result and tool.result.strip():
            result = preformatted_html(tool.result, "result")
            parts.append(f"<details><summary>Result</summary>{result}</details>\n" if diff else result)
        parts += [_attachments(message), footer, "</details>\n"]
        return "".join(parts)

    def _time(self, message: Message, *, is_marked: bool = True) -> str:
        """Return the time element of a message. If it is inferred, ``is_marked`` puts a ~ before it."""
        is_inferred = is_marked and message.timestamp_source not in (None, "stored")
        text = escape(format_time(message.timestamp, is_inferred=is_inferred, zone=self._zone))
        if not self._has_short_times or not text:
            return f"<time>{text}</time>"
        basis = f", inferred from: {message.timestamp_source}" if is_inferred else ""
        clock = f"{'~' if is_inferred else ''}{text[-_CLOCK_CHARS:]}"
        return f'<time title="{text.removeprefix("~")}{basis}">{clock}</time>'

    def _relative(self, text: str) -> str:
        """Return a path relative to the folder; any other text as it is."""
        return text.removeprefix(self._folder) if self._folder is not None else text


def _attachments(message: Message) -> str:
    if not message.attachments:
        return ""
    items = "".join(f"<li>{escape(attachment_label(attachment))}</li>" for attachment in message.attachments)
    return f'<ul class="attachments">{items}</ul>'


def _diff(lines: list[str], folder: str) -> str:
    tags = {"+": "ins", "-": "del"}
    out = []
    for line in lines:
        text = escape(line) + "\n"
        if line.startswith(("--- ", "+++ ", "@@")):
            if folder and line[4:].startswith(folder):
                text = escape(line[:4] + line[4 + len(folder) :]) + "\n"
            out.append(f'<span class="location">{text}</span>')
        elif (tag := tags.get(line[:1])) is not None:
            out.append(f"<{tag}>{text}</{tag}>")
        else:
            out.append(text)
    return f'<pre class="diff">{"".join(out)}</pre>\n'


def _arguments(tool: ToolCall) -> str:
    """Return the arguments: a command as highlighted code, the others with their names."""
    command = command_param(tool)
    rest = {key: value for key, value in tool.params.items() if key != command}
    lines = list(argument_lines(ToolCall(id=None, name=tool.name, params=rest)))
    arguments = preformatted_html("\n".join(lines), "arguments") if lines else ""
    if command is None:
        return arguments
    text = sanitize(tool.params[command])
    highlighted = highlight_code(text, "bash") if not text.startswith("\n") else ""
    shown = (
        f'<pre class="command">{highlighted}</pre>\n' if highlighted else preformatted_html(text, "command")
    )
    return shown + arguments
