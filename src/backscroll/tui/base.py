"""What everything on the screen stands on: desks that work beside it, and how their answers come back."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import cached_property
from threading import Event
from typing import Any, TypeVar

from textual import on
from textual.app import App
from textual.message import Message

from backscroll.errors import BackscrollError
from backscroll.history import History
from backscroll.model.sanitize import sanitize
from backscroll.tui.session_list.widget import SessionList
from backscroll.tui.transcript.widget import Transcript
from backscroll.tui.worker import Desk, Open

__all__ = ["Frame"]

T = TypeVar("T")


class Answered(Message):
    """A desk has done what it was asked for."""

    def __init__(self, answer: "Future[Any]", then: Callable[[Any], None]) -> None:
        super().__init__()
        self.answer, self.then = answer, then


class Told(Message):
    """Something happened beside the screen."""

    def __init__(self, do: Callable[[], None]) -> None:
        super().__init__()
        self.do = do


class Frame(App[None]):
    """An app whose work is done at desks, so that the screen never waits."""

    def __init__(self, open_history: Open) -> None:
        super().__init__()
        self._open_history = open_history
        self._desks: dict[str, Desk] = {}
        self._ends: list[Future[None]] = []
        self.closing = Event()

    def ask(self, desk: str, work: Callable[[History], T], then: Callable[[T], None]) -> None:
        """Have something done at a desk, and go on with its answer. What goes wrong is said."""
        if self.closing.is_set():
            return  # a timer went off while the screen was being left
        if desk not in self._desks:
            self._desks[desk] = Desk(desk, self._open_history)
        self._desks[desk].ask(work, lambda answer: self._post(Answered(answer, then)))

    def tell(self, do: Callable[[], None]) -> None:
        """Have something done on the screen, from a desk."""
        self._post(Told(do))

    def _post(self, message: Message) -> None:
        if not self.closing.is_set():
            self.post_message(message)

    @on(Answered)
    def _go_on(self, event: Answered) -> None:
        try:
            answer = event.answer.result()
        except (BackscrollError, OSError) as error:
            self.say(str(error), is_trouble=True)
            return
        event.then(answer)

    @on(Told)
    def _do(self, event: Told) -> None:
        event.do()

    def say(self, text: str, *, is_trouble: bool = False) -> None:
        """Show a sentence for a moment."""
        self.notify(sanitize(text), markup=False, severity="warning" if is_trouble else "information")

    def on_unmount(self) -> None:
        self.closing.set()
        self._ends = [desk.close() for desk in self._desks.values()]

    def has_ended(self, seconds: float) -> bool:
        """Whether all that was begun beside the screen has ended, waiting for it so long."""
        return not wait(self._ends, timeout=seconds).not_done

    @cached_property
    def sessions(self) -> SessionList:
        """The list."""
        return self.query_one(SessionList)

    @cached_property
    def transcript(self) -> Transcript:
        """The session that is read."""
        return self.query_one(Transcript)
