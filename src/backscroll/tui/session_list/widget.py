"""The list of sessions, of any length: only the entries that are seen are made."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from backscroll.render.terminal.width import truncate, wrap_spans
from backscroll.tui.colors import tones_of
from backscroll.tui.session_list.entry import Entry

__all__ = ["SessionList"]

_STYLES = ("title", "facts", "found", "match", "chosen", "bar", "note")
_KEPT = 512


class SessionList(ScrollView, can_focus=True):
    """Entries one below the other, one of them chosen."""

    COMPONENT_CLASSES = {f"sessions--{name}" for name in _STYLES}  # noqa: RUF012
    BINDINGS = [  # noqa: RUF012
        Binding("up,k", "move(-1)", "Up"),
        Binding("down,j", "move(1)", "Down"),
        Binding("pageup,ctrl+b,b", "page(-1)", "Page up"),
        Binding("pagedown,ctrl+f,space", "page(1)", "Page down"),
        Binding("home,g", "edge(-1)", "First"),
        Binding("end,G", "edge(1)", "Last"),
        Binding("enter,right,l", "open", "Read"),
    ]
    chosen = reactive(0, repaint=False)

    class Chosen(Message):
        """Another entry is chosen, or the same after the list has changed."""

    class Ending(Message):
        """The last entries are seen. Told once for each list."""

    class Opened(Message):
        """The chosen entry is to be read."""

    def __init__(self) -> None:
        super().__init__(id="sessions")
        self._refs: Sequence[str] = ()
        self._make: Callable[[int], Entry] | None = None
        self._height = 2  # lines of an entry
        self._notice: Sequence[str] = ()
        self._is_ending = False
        self._colours: dict[str, Style] = {}

    def show(
        self,
        refs: Sequence[str],
        make: Callable[[int], Entry],
        *,
        height: int = 2,
        notice: Sequence[str] = (),
        keeps_place: bool = True,
    ) -> None:
        """Show other entries, made when they are seen; a notice when there are none.

        With its place kept, the same session stays chosen, on the same line of the screen.
        """
        before = self.ref
        offset = self.chosen * self._height - self.scroll_offset.y
        self._refs, self._height, self._notice, self._is_ending = refs, height, notice, False
        self._make = lru_cache(maxsize=_KEPT)(make)
        place = 0
        if keeps_place and before is not None:
            is_there = self.chosen < len(refs) and refs[self.chosen] == before
            place = self.chosen if is_there else next((n for n, ref in enumerate(refs) if ref == before), 0)
        self.virtual_size = Size(self._columns, len(refs) * height)
        self.chosen = place
        line = place * height
        self.scroll_to(y=line - offset if keeps_place else 0, animate=False, force=True)
        self._keep_in_sight()
        self.refresh()
        self.post_message(self.Chosen())

    @property
    def ref(self) -> str | None:
        """The ref of the chosen entry."""
        return self._refs[self.chosen] if self.chosen < len(self._refs) else None

    @property
    def count(self) -> int:
        """How many entries there are."""
        return len(self._refs)

    @property
    def entry(self) -> Entry | None:
        """The chosen entry."""
        return self._make(self.chosen) if self._make is not None and self.ref is not None else None

    @property
    def _columns(self) -> int:
        return max(self.scrollable_content_region.width, 1)

    # --- moving -------------------------------------------------------------------------------------------

    def choose(self, place: int) -> None:
        """Choose an entry and have it seen."""
        place = min(max(place, 0), max(len(self._refs) - 1, 0))
        if place != self.chosen:
            self.chosen = place
            self.post_message(self.Chosen())
        self._keep_in_sight()
        self.refresh()

    def _keep_in_sight(self) -> None:
        first, last = self.chosen * self._height, (self.chosen + 1) * self._height
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if first < top or height <= self._height:
            self.scroll_to(y=first, animate=False, force=True)
        elif last > top + height:
            self.scroll_to(y=last - height, animate=False, force=True)

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(self._columns, len(self._refs) * self._height)
        self._keep_in_sight()

    def action_move(self, entries: int) -> None:
        self.choose(self.chosen + entries)

    def action_page(self, pages: int) -> None:
        self.choose(self.chosen + pages * max(self.size.height // self._height - 1, 1))

    def action_edge(self, side: int) -> None:
        self.choose(len(self._refs) if side > 0 else 0)

    def action_open(self) -> None:
        if self.ref is not None:
            self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        place = (self.scroll_offset.y + event.y) // self._height
        if place >= len(self._refs):
            return
        is_again = place == self.chosen
        self.choose(place)
        if is_again or event.chain > 1:
            self.action_open()

    # --- painting -----------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._colours = {}

    def _style(self, name: str) -> Style:
        if not self._colours:
            self._colours = tones_of(self, "sessions", _STYLES)
        return self._colours[name]

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        place, part = divmod(y + self.scroll_offset.y, self._height)
        if self._make is None or place >= len(self._refs):
            notice = self._notice_lines(width - 2)
            text = f" {notice[y]}" if not self._refs and y < len(notice) else ""
            segments = [Segment(text, self._style("note"))] if text else []
            return Strip(Segment.apply_style(Strip(segments).adjust_cell_length(width), base), width)
        if place + 1 == len(self._refs) and not self._is_ending:
            self._is_ending = True
            # Not from here: what is told while the screen paints ends at the screen.
            self.call_later(self._tell_ending)
        is_chosen = place == self.chosen
        mark = Segment("▌" if is_chosen else " ", self._style("bar"))
        strip = Strip([mark, *self._line(self._make(place), part, width - 2)]).adjust_cell_length(width)
        if is_chosen:
            strip = strip.apply_style(self._style("chosen"))
        return Strip(Segment.apply_style(strip, base), width)

    def _tell_ending(self) -> None:
        self.post_message(self.Ending())

    def _notice_lines(self, width: int) -> list[str]:
        return [line[start:end] for line in self._notice for start, end in wrap_spans(line, max(width, 1))]

    def _line(self, entry: Entry, part: int, width: int) -> list[Segment]:
        if part == 0:
            return [Segment(truncate(entry.title, width), self._style("title"))]
        if part == 1:
            return [Segment(truncate(entry.facts, width), self._style("facts"))]
        text, found = truncate(entry.found, width), self._style("found")
        segments, at = [], 0
        for start, end in entry.marks:
            if start >= len(text):
                break
            segments += [Segment(text[at:start], found), Segment(text[start:end], self._style("match"))]
            at = end
        return [*segments, Segment(text[at:], found)]
