"""A session as a single, self-contained HTML file."""

from collections.abc import Iterable, Iterator
from html import escape
from urllib.parse import quote

from backscroll.model import Message, SessionSummary, ToolCall
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.diffs import diff_lines
from backscroll.render.html_page import page_end, page_start
from backscroll.render.markdown_html import highlight_code, markdown_to_html, preformatted_html
from backscroll.render.session_header import (
    attachment_label,
    format_time,
    header_fields,
    message_heading,
    session_title,
    speaker_label,
)
from backscroll.render.tool_calls import argument_lines, call_outcome, command_param, describe_call
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

__all__ = ["html"]

_MAX_OPEN_DIFF_LINES = 60  # longer diffs are collapsed
_MAX_PROMPT_CHARS = 90  # in the list of turns
_TOOLBAR_START = '<div class="bar" role="toolbar" aria-label="Page">\n'
_TOOLBAR = """\
<input id="search" type="search" placeholder="Search this session" aria-label="Search this session">
<output id="found"></output>
<button id="previous" type="button" title="Previous match (Shift+Enter)">↑</button>
<button id="next" type="button" title="Next match (Enter)">↓</button>
<button id="expand" type="button" title="Expand or collapse all (e)">Expand</button>
<button id="theme" type="button" title="Switch between light and dark (t)">◐</button>
</div>
"""
_KEYS = (
    "<p><kbd>/</kbd> search, <kbd>Enter</kbd> next match, <kbd>j</kbd> <kbd>k</kbd> next and previous turn,"
    " <kbd>e</kbd> expand or collapse all, <kbd>t</kbd> light or dark</p>"
)


def html(
    summary: SessionSummary, items: Iterable[TranscriptItem], *, index_file: str | None = None
) -> Iterator[str]:
    """Yield the page in chunks. With an index page, the toolbar has a link to it."""
    title = session_title(summary)
    yield page_start(title, "session")
    link = f'<a href="{quote(index_file)}">All sessions</a>\n' if index_file is not None else ""
    yield f"{_TOOLBAR_START}{link}{_TOOLBAR}<main>\n<header>\n<h1>{escape(title)}</h1>\n<dl>\n"
    for name, value in header_fields(summary):
        yield f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>\n"
    yield "</dl>\n</header>\n"
    body = _Body()
    for item in items:
        yield body.render(item)
    yield body.end_turn()
    yield "</main>\n"
    yield from _turn_list(body.prompts)
    yield f"<footer>{_KEYS}\n<p>Exported by Backscroll. Times are in UTC; ~ marks an inferred time.</p>\n"
    yield "</footer>\n"
    yield page_end("session")


def _turn_list(prompts: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the list of turns. It is last in the file; the style sheet moves it to the side."""
    if len(prompts) < 2:
        return
    yield '<nav aria-label="Turns">\n<ol>\n'
    for element_id, prompt in prompts:
        yield f'<li><a href="#{element_id}">{escape(prompt)}</a></li>\n'
    yield "</ol>\n</nav>\n"


class _Body:
    """State while rendering: open elements, collected prompts, last heading."""

    def __init__(self) -> None:
        self.prompts: list[tuple[str, str]] = []  # element id and text
        self.depth = 0
        self.subagents = 0
        self.id_prefixes = ["m"]  # of messages in the session and in each open subagent
        self.is_turn_open = False
        self.previous_heading = ""

    def render(self, item: TranscriptItem) -> str:
        match item:
            case SubagentStart():
                return self._start_subagent(item)
            case SubagentEnd():
                self.depth -= 1
                self.id_prefixes.pop()
                self.previous_heading = ""
                return "</div></details>\n"
            case MessageItem():
                return self._message_item(item)

    def end_turn(self) -> str:
        return "</section>\n" if self.is_turn_open else ""

    def _start_subagent(self, item: SubagentStart) -> str:
        self.depth += 1
        self.subagents += 1
        self.id_prefixes.append(f"a{self.subagents}-m")
        self.previous_heading = ""
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
        element_id = f"{self.id_prefixes[-1]}{item.position}"
        opening = ""
        if message.role == "user" and not self.depth:
            opening = f'{self.end_turn()}<section class="turn">\n'
            self.is_turn_open = True
            self.prompts.append((element_id, one_line(message.content, _MAX_PROMPT_CHARS) or "(no text)"))
        return opening + self._message(message, element_id)

    def _message(self, message: Message, element_id: str) -> str:
        abandoned = "" if message.is_active else " abandoned"
        if message.tool is not None:
            self.previous_heading = ""
            return _tool_call(message, message.tool, element_id, abandoned)
        heading = message_heading(message, is_agent=self.depth > 0)
        role = "task" if message.role == "user" and self.depth else message.role
        if role in ("thinking", "system"):
            self.previous_heading = ""
            return (
                f'<details class="{role}{abandoned}" id="{element_id}"><summary>{escape(heading)}</summary>'
                f"{preformatted_html(message.content, 'text')}{_attachments(message)}</details>\n"
            )
        speaker = escape(speaker_label(message, is_agent=self.depth > 0))
        is_inferred = message.timestamp_source not in (None, "stored")
        time = escape(format_time(message.timestamp, is_inferred=is_inferred))
        author = (
            f'<p class="author"><a href="#{element_id}">{speaker}</a> <time>{time}</time></p>'
            if heading != self.previous_heading
            else ""
        )
        self.previous_heading = heading if role == "assistant" else ""
        is_markdown = role == "assistant"
        content = (
            markdown_to_html(message.content) if is_markdown else preformatted_html(message.content, "text")
        )
        return (
            f'<article class="{role}{abandoned}" id="{element_id}">{author}'
            f'<div class="content">{content}</div>{_attachments(message)}</article>\n'
        )


def _attachments(message: Message) -> str:
    if not message.attachments:
        return ""
    items = "".join(f"<li>{escape(attachment_label(attachment))}</li>" for attachment in message.attachments)
    return f'<ul class="attachments">{items}</ul>'


def _tool_call(message: Message, tool: ToolCall, element_id: str, abandoned: str) -> str:
    diff = [line for edit in tool.edits for line in diff_lines(edit)]
    subject, notes, time = describe_call(tool), call_outcome(tool), format_time(message.timestamp)
    is_open = " open" if 0 < len(diff) <= _MAX_OPEN_DIFF_LINES else ""
    failed = " failed" if tool.status in ("failed", "cancelled") else ""
    parts = [
        f'<details class="tool{failed}{abandoned}" id="{element_id}"{is_open}><summary>',
        f"<b>{escape(one_line(tool.name, 100))}</b> ",
        f"<code>{escape(subject)}</code> " if subject else "",
        f"<small>{escape(notes)}</small> " if notes else "",
        f"<time>{escape(time)}</time>" if time else "",
        "</summary>\n",
    ]
    if message.content.strip():
        parts.append(preformatted_html(message.content, "text"))
    parts.append(_diff(diff) if diff else _arguments(tool))
    if tool.result and tool.result.strip():
        result = preformatted_html(tool.result, "result")
        parts.append(f"<details><summary>Result</summary>{result}</details>\n" if diff else result)
    parts += [_attachments(message), "</details>\n"]
    return "".join(parts)


def _diff(lines: list[str]) -> str:
    tags = {"+": "ins", "-": "del"}
    out = []
    for line in lines:
        text = escape(line) + "\n"
        if line.startswith(("--- ", "+++ ", "@@")):
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
