"""A session as one HTML file that needs nothing but a browser."""

from collections.abc import Iterable, Iterator
from html import escape

from backscroll.model import Message, SessionSummary, ToolCall
from backscroll.model.sanitize import one_line, sanitize
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
from backscroll.render.tool_calls import argument_lines, call_outcome, describe_call
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

__all__ = ["html"]

_SHORT_DIFF = 60  # lines that are shown unfolded
_PROMPT = 90  # characters of a prompt in the list of turns
_COMMANDS = ("command", "cmd")
_TOOLBAR = """\
<div class="bar" role="toolbar" aria-label="Page">
<input id="search" type="search" placeholder="Search this session" aria-label="Search this session">
<output id="found"></output>
<button id="previous" type="button" title="Previous match (Shift+Enter)">↑</button>
<button id="next" type="button" title="Next match (Enter)">↓</button>
<button id="unfold" type="button" title="Unfold or fold everything (e)">Unfold</button>
<button id="theme" type="button" title="Light or dark (t)">◐</button>
</div>
"""
_KEYS = (
    "<p><kbd>/</kbd> search, <kbd>Enter</kbd> next match, <kbd>j</kbd> <kbd>k</kbd> next and previous turn,"
    " <kbd>e</kbd> unfold, <kbd>t</kbd> light or dark</p>"
)


def html(summary: SessionSummary, events: Iterable[TranscriptItem]) -> Iterator[str]:
    """The page, piece by piece."""
    title = session_title(summary)
    yield page_start(title, "session")
    yield f"{_TOOLBAR}<main>\n<header>\n<h1>{escape(title)}</h1>\n<dl>\n"
    for name, value in header_fields(summary):
        yield f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>\n"
    yield "</dl>\n</header>\n"
    body = _Body()
    for event in events:
        yield body.piece(event)
    yield body.end()
    yield "</main>\n"
    yield from _turns(body.prompts)
    yield f"<footer>{_KEYS}\n<p>Written by Backscroll. Times are in UTC; ~ marks an inferred one.</p>\n"
    yield "</footer>\n"
    yield page_end("session")


def _turns(prompts: list[tuple[str, str]]) -> Iterator[str]:
    """The list of turns; it comes last, and the style puts it beside."""
    if len(prompts) < 2:
        return
    yield '<nav aria-label="Turns">\n<ol>\n'
    for place, words in prompts:
        yield f'<li><a href="#{place}">{escape(words)}</a></li>\n'
    yield "</ol>\n</nav>\n"


class _Body:
    """What was opened and is to be closed."""

    def __init__(self) -> None:
        self.prompts: list[tuple[str, str]] = []
        self.depth = 0
        self.agents = 0
        self.prefixes = ["m"]  # ids of messages, in the session and in each subagent
        self.is_turn_open = False
        self.previous = ""

    def piece(self, event: TranscriptItem) -> str:
        match event:
            case SubagentStart():
                return self._begin(event)
            case SubagentEnd():
                self.depth -= 1
                self.prefixes.pop()
                self.previous = ""
                return "</div></details>\n"
            case MessageItem():
                return self._said(event)

    def end(self) -> str:
        return "</section>\n" if self.is_turn_open else ""

    def _begin(self, event: SubagentStart) -> str:
        self.depth += 1
        self.agents += 1
        self.prefixes.append(f"a{self.agents}-m")
        self.previous = ""
        summary = event.summary
        tokens = f", {summary.total_tokens:,} tokens" if summary.total_tokens is not None else ""
        unplaced = "" if event.is_placed else ", started at an unknown place"
        return (
            '<details class="agent"><summary><b>Subagent</b> '
            f"<span>{escape(session_title(summary))}</span> <small>{summary.message_count:,} messages{tokens}"
            f'{unplaced}</small></summary><div class="nested">\n'
        )

    def _said(self, event: MessageItem) -> str:
        message = event.message
        place = f"{self.prefixes[-1]}{event.position}"
        opening = ""
        if message.role == "user" and not self.depth:
            opening = f'{self.end()}<section class="turn">\n'
            self.is_turn_open = True
            words = one_line(message.content, _PROMPT) or "(no words)"
            self.prompts.append((place, words))
        return opening + self._message(message, place)

    def _message(self, message: Message, place: str) -> str:
        faded = "" if message.is_active else " abandoned"
        if message.tool is not None:
            self.previous = ""
            return _tool(message, message.tool, place, faded)
        name = message_heading(message, is_agent=self.depth > 0)
        role = "task" if message.role == "user" and self.depth else message.role
        if role in ("thinking", "system"):
            self.previous = ""
            return (
                f'<details class="{role}{faded}" id="{place}"><summary>{escape(name)}</summary>'
                f"{preformatted_html(message.content, 'said')}{_attachments(message)}</details>\n"
            )
        who = escape(speaker_label(message, is_agent=self.depth > 0))
        is_inferred = message.timestamp_source not in (None, "stored")
        time = escape(format_time(message.timestamp, is_inferred=is_inferred))
        line = (
            f'<p class="who"><a href="#{place}">{who}</a> <time>{time}</time></p>'
            if name != self.previous
            else ""
        )
        self.previous = name if role == "assistant" else ""
        said = (
            markdown_to_html(message.content)
            if role == "assistant"
            else preformatted_html(message.content, "said")
        )
        return (
            f'<article class="{role}{faded}" id="{place}">{line}<div class="words">{said}</div>'
            f"{_attachments(message)}</article>\n"
        )


def _attachments(message: Message) -> str:
    if not message.attachments:
        return ""
    items = "".join(f"<li>{escape(attachment_label(one))}</li>" for one in message.attachments)
    return f'<ul class="attachments">{items}</ul>'


def _tool(message: Message, tool: ToolCall, place: str, faded: str) -> str:
    changed = [line for edit in tool.edits for line in diff_lines(edit)]
    about, notes, time = describe_call(tool), call_outcome(tool), format_time(message.timestamp)
    is_open = " open" if 0 < len(changed) <= _SHORT_DIFF else ""
    failed = " failed" if tool.status in ("failed", "cancelled") else ""
    parts = [
        f'<details class="tool{failed}{faded}" id="{place}"{is_open}><summary>',
        f"<b>{escape(one_line(tool.name, 100))}</b> ",
        f"<code>{escape(about)}</code> " if about else "",
        f"<small>{escape(notes)}</small> " if notes else "",
        f"<time>{escape(time)}</time>" if time else "",
        "</summary>\n",
    ]
    if message.content.strip():
        parts.append(preformatted_html(message.content, "said"))
    parts.append(_diff(changed) if changed else _asked(tool))
    if tool.result and tool.result.strip():
        result = preformatted_html(tool.result, "result")
        parts.append(f"<details><summary>Result</summary>{result}</details>\n" if changed else result)
    parts += [_attachments(message), "</details>\n"]
    return "".join(parts)


def _diff(lines: list[str]) -> str:
    kinds = {"+": "ins", "-": "del"}
    out = []
    for line in lines:
        text = escape(line) + "\n"
        if line.startswith(("--- ", "+++ ", "@@")):
            out.append(f'<span class="place">{text}</span>')
        elif (kind := kinds.get(line[:1])) is not None:
            out.append(f"<{kind}>{text}</{kind}>")
        else:
            out.append(text)
    return f'<pre class="diff">{"".join(out)}</pre>\n'


def _asked(tool: ToolCall) -> str:
    """The arguments: a command as one, everything else by name."""
    command = next((key for key in _COMMANDS if isinstance(tool.params.get(key), str)), None)
    rest = {key: value for key, value in tool.params.items() if key != command}
    lines = list(argument_lines(ToolCall(id=None, name=tool.name, params=rest)))
    shown = preformatted_html("\n".join(lines), "asked") if lines else ""
    if command is None:
        return shown
    text = sanitize(tool.params[command])
    coloured = highlight_code(text, "bash") if not text.startswith("\n") else ""
    return (
        f'<pre class="command">{coloured}</pre>\n' if coloured else preformatted_html(text, "command")
    ) + shown
