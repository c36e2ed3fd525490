"""The list: all sessions or what a search finds, narrowed while somebody types."""

import gc
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace
from textual import on
from textual.timer import Timer
from textual.widgets import Input, Static

from backscroll.history import History
from backscroll.model import SearchResult, SessionSummary
from backscroll.tui.session_list.entry import of_match, of_session
from backscroll.tui.session_list.model import ORDERS, Narrowing, Order, Shelf
from backscroll.tui.session_list.widget import SessionList
from backscroll.tui.transcript.panel import Reading
from backscroll.tui.worker import Open

__all__ = ["PAUSE", "Listing", "Welcome", "as_typed"]

Welcome = Callable[[History], Iterable[str]]  # what somebody sees who has no history

_FIRST_PAGE = 60  # sessions: more than a screen has lines
_FOUND = 20  # sessions that a search shows at once: what a screen has room for
_MORE = 50  # and then, when somebody comes to the end of them
PAUSE = 0.06  # seconds without a key after which is searched
_PREVIEW = 0.08  # seconds that a session is chosen before it is read
_TYPING = 0.2  # the same while somebody types, who has the next letter answered first
_UNFINISHED = re.compile(r"(?:^|\s)[^\W_]{2,}$")
_FIRST = ("What the tools have left is read for the first time.", "", "What was read appears here.")
_LABELS = {"search": "Search", "filter": "Filter", "find": "Find here"}


def as_typed(words: str) -> str:
    """What is searched for while the last word may not be finished."""
    is_quoted = words.count('"') % 2 == 1
    return f"{words}*" if _UNFINISHED.search(words) and not is_quoted else words


class Listing(Reading):
    """An app with a list of sessions."""

    def __init__(self, open_history: Open, welcome: Welcome) -> None:
        super().__init__(open_history)
        self._welcome = welcome
        self.shelf = Shelf()
        self.narrowing = Narrowing()
        self.order: Order = "newest"
        self.is_listed = False  # every session is on the shelf
        self.welcome: Sequence[str] = ("Opening the archive …",)
        self.words = ""  # what is searched for
        self.found: SearchResult | None = None
        self._asking = "search"  # what the line is for
        self._searching = 0
        self._pause: Timer | None = None

    @property
    @abstractmethod
    def is_syncing(self) -> bool:
        """Whether what changed is being read."""

    # --- the list -----------------------------------------------------------------------------------------

    def first_list(self) -> None:
        """Show the newest sessions at once, and then all of them."""
        self.ask("list", lambda history: history.list_sessions(limit=_FIRST_PAGE).data, self._first_listed)

    def _first_listed(self, summaries: Sequence[SessionSummary]) -> None:
        self.shelf.fill(summaries)
        self.show_list()
        self.set_timer(_PREVIEW, self.relist)

    def relist(self) -> None:
        """Bring the list up to date, the place in it kept."""

        def listed(answer: tuple[list[SessionSummary], list[str]]) -> None:
            summaries, welcome = answer
            if not self.is_listed:
                # All that was loaded and made so far stays: looking through it for garbage, time and again,
                # would hold up whoever types.
                gc.freeze()
            self.is_listed = True
            self.shelf.fill(summaries)
            self.welcome = _FIRST if self.is_syncing else welcome
            self.show_list()

        def work(history: History) -> tuple[list[SessionSummary], list[str]]:
            summaries = history.all_sessions()
            return summaries, [] if summaries else list(self._welcome(history))

        self.ask("list", work, listed)

    def show_list(self, *, keeps_place: bool = True) -> None:
        """Show what is wanted: matches while there is a search, else sessions."""
        now = datetime.now(UTC)
        if self.found is not None:
            matches = self.found.data
            self.sessions.show(
                [match.session_ref for match in matches],
                lambda place: of_match(matches[place], now),
                height=3,
                notice=("Nothing was found.", "", "Esc shows all sessions again."),
                keeps_place=keeps_place,
            )
        else:
            wanted = self.shelf.wanted(self.narrowing, self.order)
            self.sessions.show(
                [summary.ref for summary in wanted],
                lambda place: of_session(wanted[place], now),
                notice=("No session fits.", "", "Esc shows all of them again.")
                if self.shelf.every
                else self.welcome,
                keeps_place=keeps_place,
            )
        self.tell_state()

    @on(SessionList.Chosen)
    def _chosen(self) -> None:
        if self._preview is not None:
            self._preview.stop()
        if self.is_wide or self.is_reading:
            patience = _TYPING if self.line.has_focus else _PREVIEW
            self._preview = self.set_timer(patience, self.read_chosen)

    @on(SessionList.Opened)
    def _opened(self) -> None:
        self.is_reading = True
        self.read_chosen()
        self.transcript.focus()

    def read_chosen(self) -> None:
        """Read the session that is chosen, at the place where something was found."""
        entry = self.sessions.entry
        if entry is None:
            return
        target = (entry.ref, entry.position) if entry.position is not None else None
        self.read(entry.ref, target=target, words=as_typed(self.words) if self.found is not None else "")

    # --- the line to write in -----------------------------------------------------------------------------

    @property
    def line(self) -> Input:
        """The line to write in."""
        return self.query_one("#question Input", Input)

    def action_question(self, asking: str) -> None:
        """Begin to search, to filter, or to look for something in the session that is read."""
        if asking == "filter" and self.transcript.has_focus:
            asking = "find"
        self._asking = asking
        self.query_one("#question Static", Static).update(_LABELS[asking])
        self.query_one("#question").add_class("-asked")
        self.line.value = {"search": self.words, "filter": self.narrowing.words}.get(asking, "")
        self.set_focus(self.line)  # at once: the next key may already wait
        if asking == "search":
            # The index is opened while the first letter is still to be typed.
            self.ask("search", lambda history: history.search_sessions("", limit=1), lambda _: None)

    @on(Input.Changed, "#question Input")
    def _typed(self, event: Input.Changed) -> None:
        if not self.line.has_focus:
            return
        if self._asking == "filter":
            self.narrow(words=event.value)
        elif self._asking == "search":
            self.words = event.value
            for timer in (self._pause, self._preview):  # whoever types on does not read yet
                if timer is not None:
                    timer.stop()
            self._pause = self.set_timer(PAUSE, self.search)

    @on(Input.Submitted, "#question Input")
    def _submitted(self, event: Input.Submitted) -> None:
        if self._asking == "find":
            self.close_line()
            if self.read_summary is not None and event.value.strip():
                self.read(self.read_summary.ref, words=event.value.strip())
                self.action_next(1)
            self.transcript.focus()
            return
        self.sessions.focus()
        if not event.value.strip():
            self.close_line()

    def close_line(self) -> None:
        """Put the line away."""
        self.query_one("#question").remove_class("-asked")

    def search(self) -> None:
        """Search for what is written; an answer that comes after the next question is dropped."""
        self._searching += 1
        number, words = self._searching, self.words
        if not words.strip():
            if self.found is not None:
                self.found = None
                self.show_list(keeps_place=False)
            return

        def show(found: SearchResult | None) -> None:
            if found is not None and self._searching == number:
                self.found = found
                self.show_list(keeps_place=False)

        self.ask("search", self._page(number, words, _FOUND, 0), show)

    def _page(
        self, number: int, words: str, limit: int, offset: int
    ) -> "Callable[[History], SearchResult | None]":
        """What finds a page, as long as nothing else was asked for."""
        conditions = self.narrowing.conditions

        def work(history: History) -> SearchResult | None:
            if self._searching != number:
                return None
            return history.search_sessions(
                as_typed(words), limit=limit, offset=offset, context=0, filters=conditions
            )

        return work

    @on(SessionList.Ending)
    def _find_more(self) -> None:
        """Somebody comes to the end of what was found."""
        found, number = self.found, self._searching
        if found is None or not found.has_more:
            return

        def show(more: SearchResult | None) -> None:
            if more is not None and self._searching == number and self.found is found:
                self.found = replace(found, data=found.data + more.data, has_more=more.has_more)
                self.show_list()

        self.ask("search", self._page(number, self.words, _MORE, len(found.data)), show)

    # --- narrowing ----------------------------------------------------------------------------------------

    def narrow(self, **changes: object) -> None:
        """Show only what has something in common."""
        values = {name: getattr(self.narrowing, name) for name in Narrowing.__struct_fields__}
        self.narrowing = Narrowing(**(values | changes))
        if self.found is not None or self.words.strip():
            self.search()
        self.show_list(keeps_place=True)

    def action_pick(self, what: str) -> None:
        """Choose a workspace or a source."""
        from backscroll.tui.dialogs import Pick

        choices = self.shelf.workspaces() if what == "workspace" else self.shelf.sources()
        if not choices:
            self.say(f"No session has a {what} yet.")
            return

        def taken(value: str | None) -> None:
            if value is not None:
                self.narrow(**{what: value or None})
                self.sessions.focus()

        self.push_screen(Pick(f"Only sessions of this {what}:", choices), taken)

    def action_starred(self) -> None:
        """Show only starred sessions, or all again."""
        self.narrow(is_starred=not self.narrowing.is_starred)

    def action_order(self) -> None:
        """Show the sessions in another order."""
        if self.found is not None:
            self.say("What a search finds is shown best first.")
            return
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self.show_list(keeps_place=False)

    # --- which pane ---------------------------------------------------------------------------------------

    @property
    def is_wide(self) -> bool:
        """Whether list and transcript stand side by side."""
        return not any(screen.has_class("-narrow") for screen in self.screen_stack[:1])

    @property
    def is_reading(self) -> bool:
        """Whether the transcript is shown where there is room for one only."""
        return any(screen.has_class("-reading") for screen in self.screen_stack[:1])

    @is_reading.setter
    def is_reading(self, value: bool) -> None:
        self.screen_stack[0].set_class(value, "-reading")
