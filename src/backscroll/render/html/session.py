"""Sessions as HTML: messages, tool calls, diffs and subagents, and a session as a single file."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, tzinfo
from html import escape
from urllib.parse import quote

from backscroll.model.message import Message, ToolCall
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, sanitize
from backscroll.render.html.diff import DiffHtml
from backscroll.render.html.highlighting import CodeHighlighter, language_of_path, spans_to_html
from backscroll.render.html.markdown import markdown_to_html, preformatted_html
from backscroll.render.html.pages import page_end, page_start
from backscroll.render.session_header import (
    attachment_label,
    format_time,
    header_fields,
    message_heading,
    session_title,
    speaker_label,
    subagent_facts,
)
from backscroll.render.tool_calls import (
    argument_lines,
    call_outcome,
    command_param,
    describe_call,
    path_param,
)
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

_MAX_OPEN_DIFF_LINES = 60  # longer diffs are collapsed
_MAX_PROMPT_CHARS = 90  # in the list of turns
_MAX_SUBJECT_CHARS = 100  # of a call
_MAX_EXCERPT_CHARS = 160  # of a folded text
_MAX_ANSWER_CHARS = 80  # results of one line are shown in the summary of a call
_MAX_HIGHLIGHTED_CHARS = 200_000  # of edits, and of files that were read
_WRAPPED = re.compile(r"<(\w+)>(.*)</\1>", re.DOTALL)  # Claude Code wraps errors in an element
_CLOCK_CHARS = len("08:05")
# "     7→code" and "     7\tcode", as Claude Code writes them.
_NUMBERED_LINE = re.compile(r" *(\d{1,7})(?:→|\t)(.*)")
_READING_TOOL = re.compile(r"read|view", re.IGNORECASE)

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
_HELP = (
    "<p><kbd>/</kbd> search, <kbd>Enter</kbd> next match, <kbd>j</kbd> <kbd>k</kbd> next and previous turn,"
    " <kbd>e</kbd> expand or collapse all, <kbd>t</kbd> light or dark</p>"
)

# Returns HTML for the end of a message. The summary is that of the subagent, None in the session itself.
_MessageFooter = Callable[[SessionSummary | None, MessageItem], str]


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
    body = TranscriptHtml(highlights_folded=False)  # highlighting them takes three times as long as the rest
    for item in items:
        yield body.render(item)
    yield body.end_turn()
    yield "</main>\n"
    yield from _turn_list(body.prompts)
    yield f"<footer>{_HELP}\n<p>Exported by Backscroll. Times are in UTC; ~ marks an inferred time.</p>\n"
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


def _no_footer(agent: SessionSummary | None, item: MessageItem) -> str:
    return ""


class TranscriptHtml:
    """Renders the items of a transcript one by one. Collects the prompts.

    Times are in the ``zone``; None is local time. ``footer`` adds HTML to the end of each message. Without
    ``has_turns``, a turn is no element, so that rendering can start and end anywhere. Subagents are numbered
    from ``first_subagent``; their numbers are in the ids of their messages. With ``has_short_times``, a time
    has its date as a tooltip. Paths below the ``folder`` are shown relative to it. Up to
    ``max_highlighted_chars`` of edits are highlighted, and as many of files that were read. Without
    ``highlights_folded``, code in folded calls is not highlighted; with ``marks_plain``, these calls have
    ``data-plain``.
    """

    def __init__(
        self,
        *,
        zone: tzinfo | None = UTC,
        footer: _MessageFooter = _no_footer,
        has_turns: bool = True,
        first_subagent: int = 1,
        has_short_times: bool = False,
        folder: str | None = None,
        max_highlighted_chars: int = _MAX_HIGHLIGHTED_CHARS,
        highlights_folded: bool = True,
        marks_plain: bool = False,
    ) -> None:
        self.prompts: list[tuple[str, str]] = []  # element id and text
        self._zone = zone
        self._footer = footer
        self._has_turns = has_turns
        self._has_short_times = has_short_times
        self._folder = f"{folder.rstrip('/')}/" if folder and folder.startswith("/") else ""
        self._code = _Code(max_highlighted_chars, self._folder)
        self._folded_code = (
            self._code if highlights_folded else _Code(_MAX_HIGHLIGHTED_CHARS, self._folder, is_plain=True)
        )
        self._marks_plain = marks_plain
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
        return (
            '<details class="agent"><summary><b>Subagent</b> '
            f"<span>{escape(session_title(summary))}</span> "
            f"<small>{subagent_facts(summary, is_placed=item.is_placed)}</small>"
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
            return self._folded_text(message, element_id, f"{role}{abandoned}", footer)
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

    def _folded_text(self, message: Message, element_id: str, css_class: str, footer: str) -> str:
        """Return a text that is folded to its author, its first words and its time."""
        label = "Compaction" if message.kind == "compaction" else speaker_label(message)
        excerpt = escape(one_line(message.content, _MAX_EXCERPT_CHARS))
        time = f" {self._time(message)}" if message.timestamp is not None else ""
        return (
            f'<details class="{css_class}" id="{element_id}"><summary><b>{escape(label)}</b>'
            f' <span class="excerpt">{excerpt}</span>{time}</summary>'
            f"{preformatted_html(message.content, 'text')}{_attachments(message)}{footer}</details>\n"
        )

    def _tool_call(self, message: Message, tool: ToolCall, id_: str, abandoned: str, footer: str) -> str:
        line_count = sum(len(hunk.removed) + len(hunk.added) for edit in tool.edits for hunk in edit.hunks)
        is_open = 0 < line_count <= _MAX_OPEN_DIFF_LINES
        code = self._code if is_open else self._folded_code
        plain_count = code.plain_count
        diff = code.diff.render(tool.edits)
        answer = _short_answer(tool)
        subject = describe_call(tool, _MAX_SUBJECT_CHARS).removeprefix(self._folder)
        notes = call_outcome(tool, with_size=not answer)
        failed = " failed" if tool.status in ("failed", "cancelled") else ""
        body = [diff or _arguments(tool, code.commands)]
        if tool.result and tool.result.strip():
            result = result_html(tool, code.listings)
            body.append(f"<details><summary>Result</summary>{result}</details>\n" if diff else result)
        is_marked = self._marks_plain and code.plain_count > plain_count
        state = " open" if is_open else " data-plain" if is_marked else ""
        parts = [
            f'<details class="tool{failed}{abandoned}" {id_}{state}><summary>',
            f"<b>{escape(one_line(tool.name, 100))}</b> ",
            f"<code>{escape(subject)}</code> " if subject else "",
            f"<small>{escape(notes)}</small> " if notes else "",
            f'<small class="answer">{escape(answer)}</small> ' if answer else "",
            self._time(message) if message.timestamp is not None else "",
            "</summary>\n",
        ]
        if message.content.strip():
            parts.append(preformatted_html(message.content, "text"))
        parts += [*body, _attachments(message), footer, "</details>\n"]
        return "".join(parts)

    def _time(self, message: Message) -> str:
        """Return the time element of a message, with a ~ before an inferred time."""
        is_inferred = message.has_inferred_time
        text = escape(format_time(message.timestamp, is_inferred=is_inferred, zone=self._zone))
        if not self._has_short_times or not text:
            return f"<time>{text}</time>"
        basis = f", inferred from: {message.timestamp_source}" if is_inferred else ""
        clock = f"{'~' if is_inferred else ''}{text[-_CLOCK_CHARS:]}"
        return f'<time title="{text.removeprefix("~")}{basis}">{clock}</time>'


def _short_answer(tool: ToolCall) -> str:
    """Return a result that fits into the summary of its call; empty if it does not."""
    result = (tool.result or "").strip()
    if wrapped := _WRAPPED.fullmatch(result):
        result = wrapped[2]
    is_short = len(result) <= _MAX_ANSWER_CHARS and "\n" not in result and not tool.edits
    return f"→ {one_line(result, _MAX_ANSWER_CHARS)}" if result and is_short else ""


def _attachments(message: Message) -> str:
    if not message.attachments:
        return ""
    items = "".join(f"<li>{escape(attachment_label(attachment))}</li>" for attachment in message.attachments)
    return f'<ul class="attachments">{items}</ul>'


class _Code:
    """The code of tool calls: edits, files that were read, and commands."""

    def __init__(self, max_chars: int, folder: str, *, is_plain: bool = False) -> None:
        self._edits = CodeHighlighter(max_chars, is_plain=is_plain)
        self.diff = DiffHtml(self._edits, folder)
        self.listings = CodeHighlighter(max_chars, is_plain=is_plain)
        self.commands = CodeHighlighter(sys.maxsize, is_plain=is_plain)

    @property
    def plain_count(self) -> int:
        """Number of texts that could be highlighted and were not."""
        return self._edits.plain_count + self.listings.plain_count + self.commands.plain_count


def _arguments(tool: ToolCall, highlighter: CodeHighlighter) -> str:
    """Return the arguments: a command as highlighted code, the others with their names.

    A path as the only argument is in the summary.
    """
    command, path = command_param(tool), path_param(tool)
    if path is not None and len(tool.params) == 1 and len(path) <= _MAX_SUBJECT_CHARS:
        return ""
    lines = list(argument_lines(tool, without=command))
    arguments = preformatted_html("\n".join(lines), "arguments") if lines else ""
    if command is None:
        return arguments
    text = sanitize(tool.params[command])
    spans = highlighter.spans(text.split("\n"), "bash") if not text.startswith("\n") else None
    if spans is None:
        return preformatted_html(text, "command") + arguments
    code = "\n".join(map(spans_to_html, spans))
    return f'<pre class="command">{code}</pre>\n{arguments}'


def result_html(tool: ToolCall, highlighter: CodeHighlighter) -> str:
    """Return the result of a call: code if it is the content of a file, else plain text."""
    result = tool.result or ""
    path = path_param(tool)
    if path is None or command_param(tool) is not None or tool.status != "completed" or tool.edits:
        return preformatted_html(result, "result")
    lines = sanitize(result).split("\n")
    numbers, code = _numbered_lines(lines)
    if not code and _READING_TOOL.search(tool.name):
        code = lines
    spans = highlighter.spans(code, language_of_path(path)) if code else None
    if spans is None:
        return preformatted_html(result, "result")
    numbered = " numbered" if numbers else ""
    html = "".join(
        f'<span class="line"{_line_number(numbers, index)}>{spans_to_html(line)}\n</span>'
        for index, line in enumerate(spans)
    )
    rest = escape("\n".join(lines[len(code) :]))
    return f'<pre class="result listing{numbered}">{html}{rest}</pre>\n'


def _numbered_lines(lines: list[str]) -> tuple[list[str], list[str]]:
    """Return the numbers and the text of the first lines that have a number."""
    numbers, code = [], []
    for line in lines:
        if (found := _NUMBERED_LINE.fullmatch(line)) is None:
            break
        numbers.append(found[1])
        code.append(found[2])
    return numbers, code


def _line_number(numbers: list[str], index: int) -> str:
    return f' data-line="{numbers[index]}"' if numbers else ""
