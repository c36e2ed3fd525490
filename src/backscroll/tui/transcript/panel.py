"""The session that is read: brought piece by piece, kept up to date, searched."""

import time
from abc import abstractmethod

from textual import on
from textual.timer import Timer

from backscroll.errors import SessionNotFoundError
from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.tui.base import Frame
from backscroll.tui.transcript.blocks import Block, Place
from backscroll.tui.transcript.loader import read_blocks, read_body
from backscroll.tui.transcript.widget import Transcript

__all__ = ["Reading"]

_PATIENCE = 0.25  # seconds after which all places of what is looked for are wanted
_OFTEN = 0.2  # seconds at least between two looks at a session that is being held
_EASE = 4  # times as long as it takes to read it
_GONE = "This session is no longer in the archive."


class Reading(Frame):
    """An app that shows a session."""

    read_summary: SessionSummary | None = None  # of what is shown
    _reading = 0  # counts what was begun to be read, so that what comes late is known
    _awaited: str | None = None  # the ref of what was begun last, until something of it is shown
    _asked: tuple[str, str] = ("", "")  # a ref, and what is looked for in it
    _places: tuple[Place, ...] | None = ()  # where it was found; None while that is not known
    _queued_step = 0  # to be gone once it is
    _preview: Timer | None = None
    _refreshing: Timer | None = None
    _took = 0.0  # seconds that the last session took to be read

    def read(
        self, ref: str, *, target: Place | None = None, words: str = "", keeps_place: bool = False
    ) -> None:
        """Show a session, or more of the one that is shown."""
        self.transcript.mark(words)
        if self.read_summary is not None and not keeps_place and self._is_shown(ref):
            if self._awaited not in (None, self.read_summary.ref):
                self._reading += 1  # somebody came back before the other session was there
                self._awaited = None
            if target is not None:
                self.transcript.go_to(target)
            self._find_places(self.read_summary.ref, words)
            return
        self._reading += 1
        self._awaited = ref
        number = self._reading
        is_begun = False
        began = time.monotonic()

        def take(summary: SessionSummary, blocks: list[Block]) -> bool:
            self.tell(lambda: show(summary, blocks))
            return self._reading == number and not self.closing.is_set()

        def show(summary: SessionSummary, blocks: list[Block]) -> None:
            nonlocal is_begun
            if self._reading != number:
                return
            if not is_begun:
                # What was there stays until there is something else to show.
                is_begun = True
                self._awaited = None
                self.read_summary = summary
                self.transcript.begin(target=target, keeps_place=keeps_place)
                self._find_places(summary.ref, words)
            self.transcript.add(blocks)
            self.tell_state()

        def work(history: History) -> SessionSummary | None:
            if self._reading != number:
                return None
            is_full = "call" in self.transcript.layout_.is_open_by_default and keeps_place
            try:
                return read_blocks(history, ref, take, is_full=is_full)
            except SessionNotFoundError:
                self.tell(lambda: self._vanished(ref, number))
                return None

        def done(summary: SessionSummary | None) -> None:
            if summary is not None and self._reading == number:
                self._took = time.monotonic() - began
                self.transcript.end()
                self.tell_state()

        self.ask("read", work, done)

    def _is_shown(self, ref: str) -> bool:
        """Whether all of a session is on the screen, or will be."""
        is_coming = self.transcript.is_complete or self._awaited is None
        return is_coming and self.transcript.holds(ref)

    def refresh_read(self) -> None:
        """Read the session that is shown anew, the place in it kept."""
        if self.read_summary is not None:
            self.read(self.read_summary.ref, words=self._asked[1], keeps_place=True)

    def refresh_read_soon(self) -> None:
        """The same for a session that is being held, not more often than it can be read at ease."""
        if self._refreshing is None:
            self._refreshing = self.set_timer(max(_OFTEN, self._took * _EASE), self._refresh_now)

    def _refresh_now(self) -> None:
        self._refreshing = None
        self.refresh_read()

    def _vanished(self, ref: str, number: int) -> None:
        if self._reading != number:
            return
        self.read_summary = self._awaited = None
        self.transcript.tell(Block("front", (ref, -1), body=((_GONE, "dim"),)))
        self.say(_GONE, is_trouble=True)  # for the next session in the list soon takes its place
        self.relist()

    @abstractmethod
    def relist(self) -> None:
        """Bring the list of sessions up to date."""

    @abstractmethod
    def tell_state(self) -> None:
        """Show what is going on."""

    # --- what is looked for -------------------------------------------------------------------------------

    def _find_places(self, ref: str, words: str) -> None:
        if self._asked == (ref, words):
            return
        self._asked, self._queued_step = (ref, words), 0
        self._places = None if words else ()
        if not words:
            return

        def found(places: list[Place]) -> None:
            if self._asked == (ref, words):
                self._places = tuple(places)
                self.tell_state()
                if self._queued_step:
                    self.action_next(self._queued_step)

        def work(history: History) -> list[Place]:
            is_asked = self._asked == (ref, words)
            return history.find_in_session(history.find(ref), words) if is_asked else []

        # Whoever is still typing should not wait for it.
        self.set_timer(_PATIENCE, lambda: self.ask("find", work, found))

    def action_next(self, step: int) -> None:
        """Go to the next place where something was found, or to the one before."""
        if not self._asked[1]:
            self.say("Nothing is looked for. / searches everything, f in a transcript what is said there.")
            return
        if self._places is None:
            self._queued_step = step
            return
        self._queued_step = 0
        if self.transcript.step(step, self._places):
            return
        self.say("There is no other match in this session." if self._places else "Nothing was found here.")

    # --- bodies -------------------------------------------------------------------------------------------

    @on(Transcript.Wanted)
    def _fetch(self, event: Transcript.Wanted) -> None:
        place, number = event.place, self._reading

        def fill(block: Block | None) -> None:
            if self._reading == number:
                self.transcript.fill(place, block)

        def work(history: History) -> Block | None:
            try:
                return read_body(history, place)
            except SessionNotFoundError:
                return None

        self.ask("search", work, fill)

    @on(Transcript.Refolded)
    def _reread(self) -> None:
        self.refresh_read()
