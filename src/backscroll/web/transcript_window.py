"""A part of a session as HTML. Sessions of any length open at once, because only a part is read."""

from collections.abc import Iterator
from datetime import date
from html import escape
from itertools import chain, groupby

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from backscroll.errors import SessionNotFoundError
from backscroll.history.history import History
from backscroll.model.message import Attachment, Message, ToolCall
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, pluralize
from backscroll.render.html.session import TranscriptHtml
from backscroll.render.session_header import session_title
from backscroll.render.turns import (
    MessageItem,
    SubagentEnd,
    SubagentStart,
    TranscriptItem,
    is_visible,
)
from backscroll.web.urls import message_url, session_url

WINDOW_MESSAGES = 120
MAX_WINDOW_BYTES = 1_500_000
MAX_TEXT_CHARS = 60_000  # of a text or a result; the original record has all of it
MAX_HIGHLIGHTED_CHARS = 15_000  # of edits, and of files that were read; up to 0.1 s
MAX_INLINE_AGENT_MESSAGES = 40  # longer subagents are loaded when they are opened
_MAX_SUBAGENTS_PER_MESSAGE = 8
_KINDS_SHOWN = ("compaction",)  # of system messages


class Window(Struct, frozen=True):
    """Rendered messages of a session, and their range."""

    start: int
    end: int  # exclusive
    total: int
    html: Markup

    @property
    def has_earlier(self) -> bool:
        return self.start > 0

    @property
    def has_later(self) -> bool:
        return self.end < self.total


def read_window(
    history: History, summary: SessionSummary, start: int, end: int | None = None, *, everything: bool = False
) -> Window:
    """Render the messages from a position on, up to another one or a fixed number.

    A window ends earlier if it gets too large. ``everything`` includes text that the tool added itself.
    """
    total = history.transcript.count(summary)
    start = max(0, min(start, total))
    end = min(start + WINDOW_MESSAGES if end is None else end, start + WINDOW_MESSAGES, total)
    writer = _Writer(history, summary, start)
    parts: list[str] = []
    size, reached = 0, start
    items = _until(history.transcript.read(summary, everything=True, with_agents=False, start=start), end)
    if start and end == total:
        items = chain(items, _unplaced_subagents(history, summary))
    for is_active, group in groupby(_shown(items, everything=everything), _is_on_branch):
        rendered: list[str] = []
        count = 0
        for item in group:
            count += isinstance(item, MessageItem)
            html = writer.render(item)
            rendered.append(html)
            size += len(html)
            reached = item.position + 1 if isinstance(item, MessageItem) else reached
            if size > MAX_WINDOW_BYTES and isinstance(item, MessageItem):
                break
        parts.append("".join(rendered) if is_active else _branch("".join(rendered), count))
        if size > MAX_WINDOW_BYTES:
            break
    else:
        reached = end
    return Window(start, reached, total, Markup("".join(parts)))


def read_highlighted(history: History, summary: SessionSummary, position: int) -> Markup:
    """Render one message with all its code highlighted. A window leaves code in folded calls plain."""
    message = history.transcript.message_at(summary, position)
    if message is None:
        return Markup()
    writer = _Writer(history, summary, position, highlights_folded=True)
    return Markup(writer.render(MessageItem(position, 0, message)))


def _unplaced_subagents(history: History, summary: SessionSummary) -> Iterator[TranscriptItem]:
    """Yield the subagents that were started by an unknown call. A session ends with them."""
    for agent in history.transcript.unplaced_subagents(summary):
        yield SubagentStart(agent, is_placed=False)
        yield SubagentEnd(agent)


def _until(items: Iterator[TranscriptItem], end: int) -> Iterator[TranscriptItem]:
    """Yield items before a position, with the subagents of the last message."""
    for item in items:
        if isinstance(item, MessageItem) and item.position >= end:
            return
        yield item


def _shown(items: Iterator[TranscriptItem], *, everything: bool) -> Iterator[TranscriptItem]:
    """Yield what is shown: abandoned branches and compactions, but no text that the tool added itself."""
    for item in items:
        if (
            not isinstance(item, MessageItem)
            or everything
            or is_visible(replace(item.message, is_active=True))
            or item.message.kind in _KINDS_SHOWN
        ):
            yield item


def _is_on_branch(item: TranscriptItem) -> bool:
    return not isinstance(item, MessageItem) or item.message.is_active


def _branch(html: str, count: int) -> str:
    label = f"Abandoned branch, {pluralize(count, 'message')}"
    return f'<details class="branch"><summary>{label}</summary>\n{html}</details>\n'


class _Writer:
    """Renders the items of one window."""

    def __init__(
        self, history: History, summary: SessionSummary, start: int, *, highlights_folded: bool = False
    ) -> None:
        self._history = history
        self._summary = summary
        first_subagent = 1 + start * _MAX_SUBAGENTS_PER_MESSAGE  # element ids are unique in all windows
        self._html = TranscriptHtml(
            zone=None,
            footer=self._footer,
            has_turns=False,
            first_subagent=first_subagent,
            has_short_times=True,
            folder=summary.workspace_path,
            max_highlighted_chars=MAX_HIGHLIGHTED_CHARS,
            highlights_folded=highlights_folded,
            marks_plain=True,
        )
        self._day: date | None = None  # of the last message
        self._copied_from: str | None = None  # the same

    def render(self, item: TranscriptItem) -> str:
        if isinstance(item, MessageItem):
            item = replace(item, message=_shortened(item.message))
            html = self._compaction(item) if item.message.kind in _KINDS_SHOWN else self._html.render(item)
            return self._day_heading(item.message) + self._copy_note(item.message) + html
        html = self._html.render(item)
        return html + self._subagent(item.summary) if isinstance(item, SubagentStart) else html

    def _day_heading(self, message: Message) -> str:
        """Return a heading with the date, before the first message of each day."""
        if message.timestamp is None:
            return ""
        day = message.timestamp.astimezone().date()
        if day == self._day:
            return ""
        self._day = day
        return f'<h2 class="day">{day:%A}, {day.day} {day:%B %Y}</h2>\n'

    def _copy_note(self, message: Message) -> str:
        """Return a note where messages begin that a resume or fork repeated, and where they end."""
        if message.copied_from == self._copied_from:
            return ""
        self._copied_from = message.copied_from
        if message.copied_from is None:
            return '<p class="copy-note">End of the copied messages</p>\n'
        try:
            title = session_title(self._history.find(message.copied_from))
        except SessionNotFoundError:  # forgotten
            return '<p class="copy-note">Copied from another session</p>\n'
        url = escape(session_url(message.copied_from))
        return f'<p class="copy-note">Copied from <a href="{url}">{escape(title)}</a></p>\n'

    def _subagent(self, agent: SessionSummary) -> str:
        """Return the messages of a subagent, or a link to them if there are many."""
        url = session_url(_agent_ref(agent))
        link = f'<p class="agent-link"><a href="{escape(url)}">Open the subagent on its own page</a></p>\n'
        if self._history.transcript.count(agent) > MAX_INLINE_AGENT_MESSAGES:
            return link.replace('class="agent-link"', f'class="agent-link" data-src="{escape(url)}"')
        items = self._history.transcript.read(agent, with_agents=False)
        messages = (item for item in items if not isinstance(item, SubagentEnd))
        return link + "".join(
            self._html.render(replace(item, message=_shortened(item.message)))
            if isinstance(item, MessageItem)
            else self._nested_link(item)
            for item in messages
        )

    def _nested_link(self, item: TranscriptItem) -> str:
        assert isinstance(item, SubagentStart)
        url = escape(session_url(_agent_ref(item.summary)))
        title = escape(one_line(item.summary.title or item.summary.id, 100))
        return f'<p class="agent-link"><a href="{url}">Subagent: {title}</a></p>\n'

    def _compaction(self, item: MessageItem) -> str:
        message = replace(item.message, role="system")
        html = self._html.render(replace(item, message=message))
        return html.replace('class="system', 'class="system compaction', 1)

    def _footer(self, agent: SessionSummary | None, item: MessageItem) -> str:
        """Return the links of a message: to itself, and to its original record."""
        ref = _agent_ref(agent) if agent is not None else self._summary.ref
        link, record = message_url(ref, item.position), session_url(ref, f"messages/{item.position}")
        images = [attachment for attachment in item.message.attachments if attachment.kind == "image"]
        pictures = "".join(
            _picture(f"{record}/images/{number}", image, one_line(image.name or f"Image {number + 1}", 100))
            for number, image in enumerate(images)
        )
        return (
            (f'<p class="images">{pictures}</p>' if pictures else "") + f'<p class="links">'
            f'<a href="{escape(link)}" title="Link to this message">#{item.position}</a>'
            f' <a href="{escape(record)}" title="The record that the tool stored">raw</a></p>'
        )


def _picture(url: str, image: Attachment, name: str) -> str:
    """Return an image with a link to it. A browser could run scripts in an SVG."""
    if image.media_type == "image/svg+xml":
        return f'<span class="no-image">The image {escape(name)} is not shown, because it is an SVG.</span>'
    return f'<a href="{escape(url)}"><img src="{escape(url)}" alt="{escape(name)}" loading="lazy"></a>'


def _agent_ref(agent: SessionSummary) -> str:
    """Return a ref that means this subagent, also if a copied session has one with the same id."""
    if agent.parent_ref is None:
        return agent.ref
    return f"{agent.parent_ref}/{agent.id}"


def _shortened(message: Message) -> Message:
    """Return the message with at most MAX_TEXT_CHARS of each text."""
    tool = message.tool
    if len(message.content) > MAX_TEXT_CHARS:
        message = replace(message, content=_shorten(message.content))
    if tool is None:
        return message
    if tool.result is not None and len(tool.result) > MAX_TEXT_CHARS:
        tool = replace(tool, result=_shorten(tool.result))
    params = {key: _shorten_value(value) for key, value in tool.params.items()}
    if params != tool.params:
        tool = replace(tool, params=params)
    tool = _with_short_edits(tool)
    return message if tool is message.tool else replace(message, tool=tool)


def _shorten_value(value: object) -> object:
    return _shorten(value) if isinstance(value, str) and len(value) > MAX_TEXT_CHARS else value


def _with_short_edits(tool: ToolCall) -> ToolCall:
    """Return the call with at most MAX_TEXT_CHARS of changed lines."""
    remaining = MAX_TEXT_CHARS
    edits = []
    for edit in tool.edits:
        hunks = []
        for hunk in edit.hunks:
            size = sum(map(len, hunk.removed)) + sum(map(len, hunk.added))
            if size > remaining:
                break
            remaining -= size
            hunks.append(hunk)
        if len(hunks) != len(edit.hunks):
            edit = replace(edit, hunks=tuple(hunks), lines_added=edit.added, lines_removed=edit.removed)
        edits.append(edit)
    return tool if tuple(edits) == tool.edits else replace(tool, edits=tuple(edits))


def _shorten(text: str) -> str:
    rest = len(text) - MAX_TEXT_CHARS
    return f"{text[:MAX_TEXT_CHARS]}\n\n[{pluralize(rest, 'more character')}; open “raw” to see all]"
