"""The session list: which sessions are shown, their entries, and the widget.

The widget is virtualized: it builds only the visible entries.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal, get_args

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from backscroll.model.search import SearchMatch
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.annotations import format_tags, starred_title
from backscroll.render.humanize import compact_count, format_age
from backscroll.render.session_header import searchable_text
from backscroll.render.terminal_text import truncate, wrap_spans
from backscroll.tui.colors import component_styles

Order = Literal["newest", "oldest", "longest", "tokens", "title"]
ORDERS: tuple[Order, ...] = get_args(Order)
STYLE_NAMES = ("title", "details", "excerpt", "match", "selected", "bar", "notice")
MAX_FIELD_CHARS = 400
MAX_CHARS_BEFORE_MATCH = 24  # keeps the first match visible in a narrow list
MAX_CACHED_ENTRIES = 512
_MIN_TIME = datetime.min.replace(tzinfo=UTC)


class ListFilter(Struct, frozen=True):
    """Conditions that the listed sessions meet."""

    source: str | None = None
    workspace: str | None = None  # path
    is_starred: bool = False
    text: str = ""  # words that the session's metadata contains

    @property
    def label(self) -> str:
        """The conditions for the status line, without `text`."""
        parts = [self.source, _folder_name(self.workspace) if self.workspace else None]
        return " · ".join([part for part in parts if part] + (["★"] if self.is_starred else []))

    @property
    def search_filters(self) -> dict[str, str]:
        """The conditions as search filters, without `text`."""
        filters = {"source": self.source, "workspace": self.workspace}
        filters["is"] = "starred" if self.is_starred else None
        return {name: value for name, value in filters.items() if value is not None}


class Choice(Struct, frozen=True):
    """A value to filter by, and the number of sessions that have it."""

    name: str
    value: str
    session_count: int


class SessionListModel:
    """All sessions, newest first."""

    def __init__(self) -> None:
        self.summaries: Sequence[SessionSummary] = ()
        self._searchable_texts: list[str] | None = None
        self._by_ref: dict[str, SessionSummary] | None = None

    def replace_all(self, summaries: Sequence[SessionSummary]) -> None:
        """Replace all sessions. `summaries` must be sorted, newest first."""
        self.summaries = summaries
        self._searchable_texts = self._by_ref = None

    def find(self, ref: str) -> SessionSummary | None:
        """Return the session with this ref."""
        if self._by_ref is None:
            self._by_ref = {summary.ref: summary for summary in self.summaries}
        return self._by_ref.get(ref)

    def update(self, summary: SessionSummary) -> None:
        """Insert a session at its time. Replace the session with the same ref, if any."""
        known = self.find(summary.ref)
        if known is not None and known.updated_at == summary.updated_at:
            self.replace_all([summary if one.ref == summary.ref else one for one in self.summaries])
            return
        others = [one for one in self.summaries if one.ref != summary.ref]
        time = summary.updated_at or _MIN_TIME
        index = next(
            (n for n, one in enumerate(others) if (one.updated_at or _MIN_TIME) <= time), len(others)
        )
        self.replace_all([*others[:index], summary, *others[index:]])

    def select(self, list_filter: ListFilter, order: Order) -> list[SessionSummary]:
        """Return the sessions that match the filter, in this order."""
        candidates: Iterable[SessionSummary] = self.summaries
        if words := list_filter.text.casefold().split():
            if self._searchable_texts is None:
                self._searchable_texts = list(map(searchable_text, self.summaries))
            pairs = zip(self.summaries, self._searchable_texts, strict=True)
            candidates = (one for one, text in pairs if all(word in text for word in words))
        selected = [
            one
            for one in candidates
            if (list_filter.source is None or one.source == list_filter.source)
            and (list_filter.workspace is None or one.workspace_path == list_filter.workspace)
            and (one.is_starred or not list_filter.is_starred)
        ]
        return _sort(selected, order)

    def source_choices(self) -> list[Choice]:
        """Return the sources of all sessions, the one with most sessions first."""
        counts = Counter(summary.source for summary in self.summaries)
        return [Choice(name, name, count) for name, count in counts.most_common()]

    def workspace_choices(self) -> list[Choice]:
        """Return the workspaces of all sessions, the most recently used first."""
        counts = Counter(summary.workspace_path for summary in self.summaries if summary.workspace_path)
        return [Choice(_folder_name(path) or path, path, count) for path, count in counts.items()]


def _folder_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _sort(summaries: list[SessionSummary], order: Order) -> list[SessionSummary]:
    match order:
        case "newest":
            return summaries
        case "oldest":
            return summaries[::-1]
        case "longest":
            return sorted(summaries, key=lambda one: -one.message_count)
        case "tokens":
            return sorted(summaries, key=lambda one: -(one.total_tokens or 0))
        case "title":
            return sorted(summaries, key=lambda one: (not one.title, (one.title or "").casefold()))


class Entry(Struct, frozen=True):
    """One entry: title, details and, for a search match, an excerpt. Each takes one line."""

    ref: str
    title: str
    details: str
    excerpt: str = ""
    highlights: tuple[tuple[int, int], ...] = ()  # spans in the excerpt
    position: int | None = None  # of the matching message


def session_entry(summary: SessionSummary, now: datetime) -> Entry:
    """Return the entry of a session."""
    details = [
        format_age(summary.updated_at, now),
        summary.workspace_name or "no workspace",
        summary.source,
        compact_count(summary.message_count, "message"),
        compact_count(summary.total_tokens, "token") if summary.total_tokens else "",
        "gone" if summary.is_gone else "",
        "" if summary.completeness == "complete" else summary.completeness,
        format_tags(summary),
    ]
    untitled = summary.first_message_preview or "(untitled)"
    return Entry(
        summary.ref,
        starred_title(summary, MAX_FIELD_CHARS, untitled),
        _join_details(details),
    )


def match_entry(match: SearchMatch, now: datetime) -> Entry:
    """Return the entry of a search match."""
    details = [
        format_age(match.timestamp, now),
        match.workspace_name or "no workspace",
        match.source,
        "subagent" if match.parent_ref is not None else "",
        match.place,
        pluralize(match.match_count, "match", "matches") if match.match_count > 1 else "",
    ]
    excerpt, highlights = _excerpt(match)
    return Entry(
        match.session_ref,
        one_line(match.title or match.session_ref, MAX_FIELD_CHARS),
        _join_details(details),
        excerpt,
        highlights,
        None if match.is_note else match.message_index,
    )


def _join_details(details: list[str]) -> str:
    return " · ".join(one_line(detail, MAX_FIELD_CHARS) for detail in details if detail)


def _excerpt(match: SearchMatch) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the sanitized text around the first highlight, and the highlights in it."""
    text, start = match.match, 0
    if match.highlights and match.highlights[0][0] > MAX_CHARS_BEFORE_MATCH:
        start = match.highlights[0][0] - MAX_CHARS_BEFORE_MATCH
    start += len(text[start:]) - len(text[start:].lstrip())
    parts, highlights, offset = ["…" if text[:start].strip() else ""], [], start
    for first, end in match.highlights:
        if first < offset or first - start > MAX_FIELD_CHARS:
            continue
        parts.append(_in_one_line(text[offset:first]))
        length = sum(map(len, parts))
        parts.append(_in_one_line(text[first:end]))
        highlights.append((length, length + len(parts[-1])))
        offset = end
    parts.append(_in_one_line(text[offset : start + MAX_FIELD_CHARS]))
    return "".join(parts), tuple(highlights)


def _in_one_line(text: str) -> str:
    return sanitize(text).replace("\n", " ").replace("\t", " ")


class SessionList(ScrollView, can_focus=True):
    """Vertical list of entries with one selected entry."""

    COMPONENT_CLASSES = {f"sessions--{name}" for name in STYLE_NAMES}  # noqa: RUF012
    BINDINGS = [  # noqa: RUF012
        Binding("up,k", "move(-1)", "Up"),
        Binding("down,j", "move(1)", "Down"),
        Binding("pageup,ctrl+b,b", "page(-1)", "Page up"),
        Binding("pagedown,ctrl+f,space", "page(1)", "Page down"),
        Binding("home,g", "go_to_edge(-1)", "First"),
        Binding("end,G", "go_to_edge(1)", "Last"),
        Binding("enter,right,l", "open", "Open"),
    ]
    selected_index = reactive(0, repaint=False)

    class Selected(Message):
        """Another entry was selected, or the list has changed."""

    class EndReached(Message):
        """The last entry became visible. Posted once for each list."""

    class Opened(Message):
        """The user opens the selected entry."""

    def __init__(self) -> None:
        super().__init__(id="sessions")
        self._refs: Sequence[str] = ()
        self._make_entry: Callable[[int], Entry] | None = None
        self._entry_height = 2  # lines
        self._notice: Sequence[str] = ()
        self._has_posted_end = False
        self._cached_styles: dict[str, Style] = {}

    def show_entries(
        self,
        refs: Sequence[str],
        make_entry: Callable[[int], Entry],
        *,
        entry_height: int = 2,
        notice: Sequence[str] = (),
        keep_selection: bool = True,
    ) -> None:
        """Replace the entries. `make_entry` builds an entry by index; `notice` replaces an empty list.

        With `keep_selection`, the same session stays selected, on the same line of the screen.
        """
        old_ref = self.selected_ref
        screen_offset = self.selected_index * self._entry_height - self.scroll_offset.y
        self._refs, self._entry_height, self._notice = refs, entry_height, notice
        self._has_posted_end = False
        self._make_entry = lru_cache(maxsize=MAX_CACHED_ENTRIES)(make_entry)
        index = 0
        if keep_selection and old_ref is not None:
            index = self.selected_index
            if index >= len(refs) or refs[index] != old_ref:
                index = next((n for n, ref in enumerate(refs) if ref == old_ref), 0)
        self.virtual_size = Size(self._text_width, len(refs) * entry_height)
        self.selected_index = index
        line = index * entry_height
        self.scroll_to(y=line - screen_offset if keep_selection else 0, animate=False, force=True)
        self._scroll_to_selected()
        self.refresh()
        self.post_message(self.Selected())

    @property
    def selected_ref(self) -> str | None:
        """Return the ref of the selected entry."""
        return self._refs[self.selected_index] if self.selected_index < len(self._refs) else None

    @property
    def entry_count(self) -> int:
        return len(self._refs)

    @property
    def selected_entry(self) -> Entry | None:
        if self._make_entry is None or self.selected_ref is None:
            return None
        return self._make_entry(self.selected_index)

    @property
    def _text_width(self) -> int:
        return max(self.scrollable_content_region.width, 1)

    # --- selection ----------------------------------------------------------------------------------------

    def select(self, index: int) -> None:
        """Select the entry at this index, or the nearest one, and scroll to it."""
        index = min(max(index, 0), max(len(self._refs) - 1, 0))
        if index != self.selected_index:
            self.selected_index = index
            self.post_message(self.Selected())
        self._scroll_to_selected()
        self.refresh()

    def _scroll_to_selected(self) -> None:
        first, end = self.selected_index * self._entry_height, (self.selected_index + 1) * self._entry_height
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if first < top or height <= self._entry_height:
            self.scroll_to(y=first, animate=False, force=True)
        elif end > top + height:
            self.scroll_to(y=end - height, animate=False, force=True)

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(self._text_width, len(self._refs) * self._entry_height)
        self._scroll_to_selected()

    def action_move(self, entries: int) -> None:
        self.select(self.selected_index + entries)

    def action_page(self, pages: int) -> None:
        self.select(self.selected_index + pages * max(self.size.height // self._entry_height - 1, 1))

    def action_go_to_edge(self, direction: int) -> None:
        self.select(len(self._refs) if direction > 0 else 0)

    def action_open(self) -> None:
        if self.selected_ref is not None:
            self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        index = (self.scroll_offset.y + event.y) // self._entry_height
        if index >= len(self._refs):
            return
        was_selected = index == self.selected_index
        self.select(index)
        if was_selected or event.chain > 1:
            self.action_open()

    # --- rendering ----------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._cached_styles = {}

    def _style(self, name: str) -> Style:
        if not self._cached_styles:
            self._cached_styles = component_styles(self, "sessions", STYLE_NAMES)
        return self._cached_styles[name]

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        index, line = divmod(y + self.scroll_offset.y, self._entry_height)
        if self._make_entry is None or index >= len(self._refs):
            notice = self._notice_lines(width - 2)
            text = f" {notice[y]}" if not self._refs and y < len(notice) else ""
            segments = [Segment(text, self._style("notice"))] if text else []
            return Strip(Segment.apply_style(Strip(segments).adjust_cell_length(width), base), width)
        if index + 1 == len(self._refs) and not self._has_posted_end:
            self._has_posted_end = True
            # Deferred: a message posted during rendering bubbles only up to the screen, not to the app.
            self.call_later(self._post_end_reached)
        is_selected = index == self.selected_index
        bar = Segment("▌" if is_selected else " ", self._style("bar"))
        segments = [bar, *self._entry_segments(self._make_entry(index), line, width - 2)]
        strip = Strip(segments).adjust_cell_length(width)
        if is_selected:
            strip = strip.apply_style(self._style("selected"))
        return Strip(Segment.apply_style(strip, base), width)

    def _post_end_reached(self) -> None:
        self.post_message(self.EndReached())

    def _notice_lines(self, width: int) -> list[str]:
        return [line[start:end] for line in self._notice for start, end in wrap_spans(line, max(width, 1))]

    def _entry_segments(self, entry: Entry, line: int, width: int) -> list[Segment]:
        """Return one line of an entry."""
        if line == 0:
            return [Segment(truncate(entry.title, width), self._style("title"))]
        if line == 1:
            return [Segment(truncate(entry.details, width), self._style("details"))]
        text, plain = truncate(entry.excerpt, width), self._style("excerpt")
        segments, offset = [], 0
        for start, end in entry.highlights:
            if start >= len(text):
                break
            segments += [Segment(text[offset:start], plain), Segment(text[start:end], self._style("match"))]
            offset = end
        return [*segments, Segment(text[offset:], plain)]
