"""The session list in the app: all sessions, or search results that follow the input.

Also which panel has the focus, and which is visible.
"""

import gc
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace
from textual import on
from textual.app import ScreenStackError
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from backscroll.history.history import History
from backscroll.model.search import SearchResult, has_words
from backscroll.model.session import SessionSummary
from backscroll.model.text import sanitize
from backscroll.tui.dialogs import ChoiceDialog
from backscroll.tui.session_list import (
    ORDERS,
    ListFilter,
    Order,
    SessionList,
    SessionListModel,
    match_entry,
    session_entry,
)
from backscroll.tui.transcript import Transcript
from backscroll.tui.transcript_panel import TranscriptApp
from backscroll.tui.workers import OpenHistory

Welcome = Callable[[History], Iterable[str]]  # returns the lines to show if there are no sessions
Found = tuple[str, SearchResult, Sequence[str]]  # query, first page, invalid filters
FIRST_PAGE_SESSIONS = 60  # more than a screen shows
FIRST_PAGE_MATCHES = 20
NEXT_PAGE_MATCHES = 50
SEARCH_DELAY_SECONDS = 0.06  # after the last key
FULL_LIST_DELAY_SECONDS = 0.08  # after the first page
PREVIEW_DELAY_SECONDS = 0.08  # after a session is selected
TYPING_PREVIEW_DELAY_SECONDS = 0.2  # while the input line has the focus: the next search has priority
UNFINISHED_WORD = re.compile(r"(?:^|\s)(?!(?:AND|OR|NOT)$)[^\W_]{2,}$")
EXCLUDED_WORD = re.compile(r"(?:^|\s)NOT\s+\S+$")
FIRST_SYNC_NOTICE = (
    "Reading your history for the first time.",
    "",
    "Sessions appear here as they are read.",
)
INPUT_LABELS = {"search": "Search", "filter": "Filter", "find": "Find"}
EXACT_TEXT_NOTE = "The query contains no words; searched for it as exact text."
EXACT_TEXT_HINT = "The query contains no words. Press Enter to search for it as exact text."
TIME_LIMIT_NOTE = "Time limit reached: results may be missing."
STARTS_OF_TERMS = ("-", '"', '-"')  # the user is about to type a word


class PanelApp(TranscriptApp):
    """An app with two panels. A narrow terminal shows only the one that has the focus."""

    input_mode = "search"  # or "filter" or "find"

    @property
    def input_line(self) -> Input:
        """Return the input for search, filter and find."""
        return self.query_one("#input-bar Input", Input)

    def focus_list(self) -> None:
        """Move the focus to the list, also while a dialog is open."""
        self.screen_stack[0].set_focus(self.sessions)
        self.show_focused_panel()

    def focus_transcript(self) -> None:
        """Move the focus to the transcript, also while a dialog is open."""
        self.screen_stack[0].set_focus(self.transcript)
        self.show_focused_panel()

    def show_focused_panel(self) -> None:
        """Show the panel that has the focus, if the terminal is too narrow for both."""
        self.is_transcript_open = self.is_transcript_focused

    @property
    def is_typing(self) -> bool:
        """Return whether the user types a query for all sessions."""
        return self._is_input_focused and self.input_mode == "search"

    @property
    def is_finding(self) -> bool:
        """Return whether the input finds text in the transcript."""
        return self.input_mode == "find"

    @property
    def is_reading(self) -> bool:
        """Return whether the user reads a session, or finds text in it. A change of the list keeps it."""
        return self.is_transcript_focused and self.shown_session is not None

    @property
    def is_transcript_focused(self) -> bool:
        """Return whether the focus is in the transcript, or in the input that finds text in it."""
        if self._is_input_focused:
            return self.is_finding
        return isinstance(self._focused_widget, Transcript)

    @property
    def _is_input_focused(self) -> bool:
        """Return whether the input line has the focus. It need not exist yet: a worker may be early."""
        return isinstance(self._focused_widget, Input)

    @property
    def _focused_widget(self) -> Widget | None:
        """Return the widget with the focus, also while a dialog is open."""
        return next((screen.focused for screen in self.screen_stack[:1]), None)

    @property
    def is_wide(self) -> bool:
        """Return whether the terminal is wide enough for list and transcript side by side."""
        return not any(screen.has_class("-narrow") for screen in self.screen_stack[:1])

    @property
    def is_transcript_open(self) -> bool:
        """Return whether a narrow terminal shows the transcript instead of the list."""
        return any(screen.has_class("-transcript-open") for screen in self.screen_stack[:1])

    @is_transcript_open.setter
    def is_transcript_open(self, value: bool) -> None:
        self.screen_stack[0].set_class(value, "-transcript-open")


class SessionListApp(PanelApp):
    """An app with a session list."""

    def __init__(self, open_history: OpenHistory, welcome: Welcome) -> None:
        super().__init__(open_history)
        self._welcome = welcome
        self.list_model = SessionListModel()
        self.list_filter = ListFilter()
        self.list_order: Order = "newest"
        self.is_list_complete = False  # the model contains all sessions, not only the first page
        self.empty_notice: Sequence[str] = ("Opening the archive …",)
        self.search_query = ""
        self.search_result: SearchResult | None = None
        self._found_query = ""  # of the results: as typed, or with the last word as a prefix
        self._invalid_filters: Sequence[str] = ()  # of the results
        self._search_id = 0  # of the latest search; results of earlier ones are discarded
        self._search_timer: Timer | None = None

    @property
    @abstractmethod
    def is_syncing(self) -> bool:
        """Return whether a sync is running."""

    # --- the list -----------------------------------------------------------------------------------------

    def load_list(self) -> None:
        """Show the newest sessions at once, then all sessions."""
        self.run_in_worker(
            "list",
            lambda history: history.list_sessions(limit=FIRST_PAGE_SESSIONS).data,
            self._show_first_page,
        )

    def _show_first_page(self, summaries: Sequence[SessionSummary]) -> None:
        self.list_model.replace_all(summaries)
        self.show_list()
        self.set_timer(FULL_LIST_DELAY_SECONDS, self.reload_list)

    def reload_list(self) -> None:
        """Load all sessions. The selection is kept."""

        def show(result: tuple[list[SessionSummary], list[str]]) -> None:
            summaries, welcome_lines = result
            if not self.is_list_complete:
                # Exclude all current objects from garbage collection, which would delay key presses.
                gc.freeze()
            self.is_list_complete = True
            self.list_model.replace_all(summaries)
            self.empty_notice = FIRST_SYNC_NOTICE if self.is_syncing else welcome_lines
            self.show_list()

        def load(history: History) -> tuple[list[SessionSummary], list[str]]:
            summaries = history.all_sessions()
            return summaries, [] if summaries else list(self._welcome(history))

        self.run_in_worker("list", load, show)

    def refresh_list(self) -> None:
        """Load the session list again, and the search results if there are any."""
        self.reload_list()
        if self.search_result is not None:
            self.search(keep_selection=True)

    def show_list(self, *, keep_selection: bool = True) -> None:
        """Show the search results, or the sessions that match the filter if there is no search."""
        now = datetime.now(UTC)
        if self.search_result is not None:
            matches = self.search_result.data
            self.sessions.show_entries(
                [match.session_ref for match in matches],
                lambda index: match_entry(matches[index], now),
                entry_height=3,
                notice=(
                    "No matches so far. The sync is not complete." if self.is_syncing else "No matches.",
                    "",
                    "Press Esc to show all sessions.",
                ),
                keep_selection=keep_selection,
            )
        else:
            summaries = self.list_model.select(self.list_filter, self.list_order)
            self.sessions.show_entries(
                [summary.ref for summary in summaries],
                lambda index: session_entry(summaries[index], now),
                notice=("No session matches the filter.", "", "Press Esc to show all sessions.")
                if self.list_model.summaries
                else self.empty_notice,
                keep_selection=keep_selection,
            )
        self.update_status()

    @on(SessionList.Selected)
    def _entry_selected(self) -> None:
        if self.is_reading:
            return  # only the list has changed
        if self._preview_timer is not None:
            self._preview_timer.stop()
        if self.is_wide or self.is_transcript_open:
            try:
                is_typing = isinstance(self.focused, Input)
            except ScreenStackError:
                return  # the app is closing
            delay = TYPING_PREVIEW_DELAY_SECONDS if is_typing else PREVIEW_DELAY_SECONDS
            self._preview_timer = self.set_timer(delay, self.open_selected)

    @on(SessionList.Opened)
    def _entry_opened(self) -> None:
        self.open_selected()
        self.focus_transcript()

    def action_go_to_match(self, step: int) -> None:
        """Go to the next match. In a list of results, first open the selected session at its match."""
        if self.search_result is None or self.is_transcript_focused or (self.is_wide and self.has_matches):
            super().action_go_to_match(step)
        elif self.sessions.selected_ref is None:
            self.show_notice("The search has no results.")
        elif self.is_wide:
            self.open_selected()
        else:
            self._entry_opened()

    def open_selected(self) -> None:
        """Show the transcript of the selected session, at the matching message if there is a search."""
        entry = self.sessions.selected_entry
        if entry is None:
            return
        target = (entry.ref, entry.position) if entry.position is not None else None
        query = self._found_query if self.search_result is not None else ""
        self.show_transcript(entry.ref, target=target, query=query)

    # --- the input line -----------------------------------------------------------------------------------

    def action_open_input(self, mode: str) -> None:
        """Start to search, to filter, or to find text in the open transcript."""
        if mode == "filter" and self.transcript.has_focus:
            mode = "find"
        self.input_mode = mode
        self.query_one("#input-bar Static", Static).update(INPUT_LABELS[mode])
        self.query_one("#input-bar").add_class("-visible")
        self.input_line.value = {"search": self.search_query, "filter": self.list_filter.text}.get(mode, "")
        self.set_focus(self.input_line)  # not deferred: the next key may already be in the queue
        self.show_focused_panel()
        if mode == "search":
            # Open the index while the user types the first letter. No session matches this filter.
            self.run_in_worker(
                "search", lambda history: history.search_sessions("source:none", limit=1), lambda _: None
            )

    @on(Input.Changed, "#input-bar Input")
    def _input_changed(self, event: Input.Changed) -> None:
        if not self.input_line.has_focus:
            return
        if self.input_mode == "filter":
            self.change_filter(text=event.value)
        elif self.input_mode == "search":
            self.search_query = event.value
            # Cancel the preview, too: loading it would delay the search.
            for timer in (self._search_timer, self._preview_timer):
                if timer is not None:
                    timer.stop()
            self._search_timer = self.set_timer(SEARCH_DELAY_SECONDS, self.search)

    @on(Input.Submitted, "#input-bar Input")
    def _input_submitted(self, event: Input.Submitted) -> None:
        if self.is_finding:
            self.close_input()
            if self.shown_session is not None and event.value.strip():
                self.show_transcript(self.shown_session.ref, query=event.value.strip(), requires_all=True)
                self.action_go_to_match(1)
            self.focus_transcript()
            return
        self.focus_list()
        if not event.value.strip():
            self.close_input()
        elif self.input_mode == "search" and not has_words(event.value):
            self.search_query = event.value
            self.search()

    def close_input(self) -> None:
        """Hide the input line."""
        self.query_one("#input-bar").remove_class("-visible")

    def search(self, *, keep_selection: bool = False) -> None:
        """Search for the current query and show the first page. Results of earlier searches are discarded.

        If no message has all words as typed, the last one may be unfinished and is searched as a prefix. A
        query without words is searched as exact text, which is slower: only after the user has typed it.
        """
        self._search_id += 1
        search_id, query = self._search_id, self.search_query
        if not query.strip() or (self.is_typing and not has_words(query)):
            is_found = self.search_result is not None and self._found_query == query
            if self.search_result is not None and not is_found:
                self.search_result, self._invalid_filters = None, ()
                self.show_list(keep_selection=False)
            self.update_search_note()
            return

        def show(found: Found | None) -> None:
            if found is not None and self._search_id == search_id:
                self._found_query, self.search_result, self._invalid_filters = found
                self.show_list(keep_selection=keep_selection)
                self.update_search_note()

        def load(history: History) -> Found | None:
            page = self._search_job(search_id, query, FIRST_PAGE_MATCHES, 0)(history)
            found_query, prefix_query = query, as_prefix_query(query)
            if page is not None and prefix_query != query and (not page.data or page.is_relaxed):
                found_query = prefix_query
                page = self._search_job(search_id, prefix_query, FIRST_PAGE_MATCHES, 0)(history)
            if page is None:
                return None
            return found_query, page, _find_invalid_filters(history, query, page)

        self.run_in_worker("search", load, show)

    def _search_job(
        self, search_id: int, query: str, limit: int, offset: int
    ) -> "Callable[[History], SearchResult | None]":
        """Return a job that loads one page of results, or None if a newer search was started."""
        filters = self.list_filter.search_filters

        def load(history: History) -> SearchResult | None:
            if self._search_id != search_id:
                return None
            return history.search_sessions(
                query if has_words(query) else query.strip(),
                limit=limit,
                offset=offset,
                context=0,
                pattern="words" if has_words(query) else "exact",
                filters=filters,
            )

        return load

    def update_search_note(self) -> None:
        """Show what is unusual about the query, in a line below the input."""
        if not self.is_running:
            return
        note = _describe_search(
            self.search_query, self.search_result, self._invalid_filters, is_typing=self.is_typing
        )
        line = self.query_one("#search-note", Static)
        line.update(sanitize(note))
        line.display = bool(note)

    @on(SessionList.EndReached)
    def _load_next_page(self) -> None:
        result, search_id = self.search_result, self._search_id
        if result is None or not result.has_more:
            return

        def show(page: SearchResult | None) -> None:
            if page is not None and self._search_id == search_id and self.search_result is result:
                self.search_result = replace(result, data=result.data + page.data, has_more=page.has_more)
                self.show_list()

        job = self._search_job(search_id, self._found_query, NEXT_PAGE_MATCHES, len(result.data))
        self.run_in_worker("search", job, show)

    # --- filter and order ---------------------------------------------------------------------------------

    def change_filter(self, **changes: object) -> None:
        """Change some conditions of the filter; repeat the search, if there is one."""
        values = {name: getattr(self.list_filter, name) for name in ListFilter.__struct_fields__}
        self.list_filter = ListFilter(**(values | changes))
        if self.search_result is not None or self.search_query.strip():
            self.search()
        self.show_list(keep_selection=True)

    def action_choose_filter(self, field: str) -> None:
        """Let the user choose a workspace or a source to filter by."""
        model = self.list_model
        choices = model.workspace_choices() if field == "workspace" else model.source_choices()
        if not choices:
            self.show_notice(f"No session has a {field} yet.")
            return

        def apply(value: str | None) -> None:
            if value is not None:
                self.focus_list()
                self.change_filter(**{field: value or None})

        self.push_screen(ChoiceDialog(f"Filter by {field}:", choices), apply)

    def action_toggle_starred_filter(self) -> None:
        """Show only starred sessions, or all sessions again."""
        self.change_filter(is_starred=not self.list_filter.is_starred)

    def action_change_order(self) -> None:
        """Sort the list by the next order."""
        if self.search_result is not None:
            self.show_notice("Search results are always sorted by relevance.")
            return
        self.list_order = ORDERS[(ORDERS.index(self.list_order) + 1) % len(ORDERS)]
        self.show_list(keep_selection=self.is_reading)


def as_prefix_query(query: str) -> str:
    """Return the query with its last word as a prefix, because the user may still be typing it.

    An excluded word stays as it is: as a prefix, it would exclude too much.
    """
    if not UNFINISHED_WORD.search(query) or EXCLUDED_WORD.search(query) or query.count('"') % 2 == 1:
        return query
    return f"{query}*"


def _find_invalid_filters(history: History, query: str, result: SearchResult) -> tuple[str, ...]:
    """Return the parts of a query that look like filters and were searched for as text."""
    if not has_words(query):
        return ()
    return tuple(
        invalid.text
        for invalid in history.invalid_filters(query)
        # An unknown name may be a word with a colon: it is mentioned only if the query did not match.
        if invalid.similar_name is None or result.is_relaxed or not result.data
    )


def _describe_search(
    query: str, result: SearchResult | None, invalid_filters: Sequence[str], *, is_typing: bool
) -> str:
    """Return the notes about a query; empty if there are none.

    While the user types, the last filter may be unfinished and is not mentioned.
    """
    query = query if is_typing else query.strip()
    if not query.strip():
        return ""
    if not has_words(query):
        if is_typing:
            return "" if query.strip() in STARTS_OF_TERMS else EXACT_TEXT_HINT
        if result is None:
            return ""
        return f"{EXACT_TEXT_NOTE} {TIME_LIMIT_NOTE}" if result.is_cut_short else EXACT_TEXT_NOTE
    return " ".join(
        f"{text!r} is not a valid filter; searched for it as text."
        for text in invalid_filters
        if not (is_typing and query.endswith(text))
    )
