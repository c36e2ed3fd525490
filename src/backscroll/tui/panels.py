"""List, transcript and input line: which of them has the focus, and which is visible."""

from textual.widget import Widget
from textual.widgets import Input

from backscroll.tui.transcript.panel import TranscriptApp
from backscroll.tui.transcript.widget import Transcript

__all__ = ["PanelApp"]


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
