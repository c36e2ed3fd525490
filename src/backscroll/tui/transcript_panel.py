"""The transcript panel in the app: loads a session in batches, reloads it after changes, finds matches."""

import time
from abc import abstractmethod

from msgspec import Struct
from textual import on
from textual.timer import Timer

from backscroll.errors import BackscrollError, SessionNotFoundError
from backscroll.history.history import History
from backscroll.model.session import SessionSummary
from backscroll.tui.blocks import Block, Body, Location, load_blocks, load_body, session_location
from backscroll.tui.transcript import Transcript
from backscroll.tui.workers import WorkerApp

FIND_DELAY_SECONDS = 0.25  # before all matches of a session are searched
MIN_RELOAD_DELAY_SECONDS = 0.2  # after a change of the session
RELOAD_DELAY_FACTOR = 4  # times the duration of the latest load, so that long sessions reload less often
MISSING_SESSION = "This session is no longer in the archive."


class FindRequest(Struct, frozen=True):
    """A query for matches in a session."""

    ref: str
    query: str
    requires_all: bool = False  # of the words, in one message


class TranscriptApp(WorkerApp):
    """An app that shows the transcript of a session."""

    shown_session: SessionSummary | None = None
    _load_id = 0  # of the latest load; results of earlier ones are discarded
    _loading_ref: str | None = None  # ref of the latest load, until its first blocks are shown
    _find_request = FindRequest("", "")
    _matches: tuple[Location, ...] | None = ()  # of the find request; None until they are known
    _queued_match_step = 0  # requested before the matches were known or their blocks were loaded
    _preview_timer: Timer | None = None
    _reload_timer: Timer | None = None
    _load_seconds = 0.0  # duration of the latest load

    def show_transcript(
        self,
        ref: str,
        *,
        target: Location | None = None,
        query: str = "",
        requires_all: bool = False,
        keep_position: bool = False,
    ) -> None:
        """Show a session at a target, with the words of a query highlighted.

        With `requires_all`, a message matches only if it has all words. A session that is already shown is
        loaded again only with `keep_position`.
        """
        self.transcript.highlight(query)
        if self.shown_session is not None and not keep_position and self._is_shown(ref):
            if self._loading_ref not in (None, self.shown_session.ref):
                self._load_id += 1  # cancel: the user returned before the other session was loaded
                self._loading_ref = None
            if target is not None:
                self.transcript.go_to(target)
            self._find_matches(FindRequest(self.shown_session.ref, query, requires_all))
            return
        self._load_id += 1
        self._loading_ref = ref
        load_id = self._load_id
        has_begun = False
        start_time = time.monotonic()

        def take_batch(summary: SessionSummary, blocks: list[Block]) -> bool:
            self.call_on_ui_thread(lambda: show(summary, blocks))
            return self._load_id == load_id and not self.closing.is_set()

        def show(summary: SessionSummary, blocks: list[Block]) -> None:
            nonlocal has_begun
            if self._load_id != load_id:
                return
            if not has_begun:
                # Only now, so that the previous session stays visible until there is something to show.
                has_begun = True
                self._loading_ref = None
                self.shown_session = summary
                self.transcript.begin_load(target=target, keep_position=keep_position)
                self._find_matches(FindRequest(summary.ref, query, requires_all))
            self.transcript.add_blocks(blocks)
            self.update_status()
            self._go_to_queued_match()

        def load(history: History) -> SessionSummary | None:
            if self._load_id != load_id:
                return None
            with_call_bodies = "call" in self.transcript.text_layout.expanded_kinds and keep_position
            try:
                return load_blocks(history, ref, take_batch, with_call_bodies=with_call_bodies)
            except SessionNotFoundError:
                self.call_on_ui_thread(lambda: self._show_missing(ref, load_id))
                return None

        def finish(summary: SessionSummary | None) -> None:
            if summary is not None and self._load_id == load_id:
                self._load_seconds = time.monotonic() - start_time
                self.transcript.finish_load()
                self.update_status()
                self._go_to_queued_match()

        self.run_in_worker("read", load, finish)

    def _is_shown(self, ref: str) -> bool:
        """Return whether a session is shown, completely or still loading."""
        is_current = self.transcript.is_complete or self._loading_ref is None
        return is_current and self.transcript.contains(ref)

    def reload_transcript(self) -> None:
        """Load the shown session again. The position is kept."""
        if self.shown_session is not None:
            request = self._find_request
            self.show_transcript(
                self.shown_session.ref,
                query=request.query,
                requires_all=request.requires_all,
                keep_position=True,
            )

    def schedule_reload(self) -> None:
        """Reload a live session soon. Frequent calls are combined into one reload."""
        if self._reload_timer is None:
            delay = max(MIN_RELOAD_DELAY_SECONDS, self._load_seconds * RELOAD_DELAY_FACTOR)
            self._reload_timer = self.set_timer(delay, self._reload_now)

    def _reload_now(self) -> None:
        self._reload_timer = None
        self.reload_transcript()

    def _show_missing(self, ref: str, load_id: int) -> None:
        if self._load_id != load_id:
            return
        self.shown_session = self._loading_ref = None
        self.transcript.show_block(Block("header", session_location(ref), body=((MISSING_SESSION, "dim"),)))
        # Also as a notice, because the preview of the next session soon replaces the block.
        self._report_missing()

    def show_error(self, error: BackscrollError | OSError) -> None:
        if isinstance(error, SessionNotFoundError):
            self._report_missing()
        else:
            super().show_error(error)

    def _report_missing(self) -> None:
        self.show_notice(MISSING_SESSION, is_warning=True)
        self.refresh_list()

    @abstractmethod
    def refresh_list(self) -> None:
        """Load the session list again, and the search results if there are any."""

    @abstractmethod
    def update_status(self) -> None:
        """Update the status line."""

    # --- matches ------------------------------------------------------------------------------------------

    def _find_matches(self, request: FindRequest) -> None:
        if self._find_request == request:
            return
        self._find_request, self._queued_match_step = request, 0
        self._matches = None if request.query else ()
        if not request.query:
            return

        def take_matches(matches: list[Location]) -> None:
            if self._find_request == request:
                self._matches = tuple(matches)
                self.update_status()
                self._go_to_queued_match()

        def find(history: History) -> list[Location]:
            if self._find_request != request:
                return []
            summary = history.find(request.ref)
            return history.find_in_session(summary, request.query, requires_all=request.requires_all)

        # Delayed, because the user may still be typing.
        self.set_timer(FIND_DELAY_SECONDS, lambda: self.run_in_worker("find", find, take_matches))

    @property
    def has_matches(self) -> bool:
        """Return whether the transcript has a query whose matches are known or being searched."""
        return bool(self._find_request.query)

    def action_go_to_match(self, step: int) -> None:
        """Go to the next match, or the previous one if `step` is negative."""
        if not self._find_request.query:
            self.show_notice(
                "No search is active. Press / to search all sessions, or f in a transcript to find text."
            )
            return
        if self._matches is None:
            self._queued_match_step = step
            return
        self._queued_match_step = 0
        if self.transcript.go_to_match(step, self._matches):
            return
        if self._matches and step > 0 and not self.transcript.is_complete:
            self._queued_match_step = step
            return
        if self._matches:
            self.show_notice("No more matches in this session.")
        elif self._find_request.requires_all and len(self._find_request.query.split()) > 1:
            self.show_notice("No message in this session has all words.")
        else:
            self.show_notice("No matches in this session.")

    def _go_to_queued_match(self) -> None:
        if self._queued_match_step and self._matches is not None:
            self.action_go_to_match(self._queued_match_step)

    # --- bodies of tool calls -----------------------------------------------------------------------------

    @on(Transcript.BodyRequested)
    def _load_body(self, event: Transcript.BodyRequested) -> None:
        location, load_id = event.location, self._load_id

        def show(body: Body | None) -> None:
            if self._load_id == load_id:
                self.transcript.set_body(location, body)

        def load(history: History) -> Body | None:
            try:
                return load_body(history, location)
            except SessionNotFoundError:
                return None

        self.run_in_worker("search", load, show)

    @on(Transcript.AllToggled)
    def _all_toggled(self) -> None:
        self.reload_transcript()
