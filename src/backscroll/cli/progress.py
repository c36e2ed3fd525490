"""Progress bar with remaining time, on standard error. Prints nothing if that is not a terminal."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from backscroll.model.sync import estimate_remaining_seconds

if TYPE_CHECKING:
    from rich.progress import Progress


DELAY_SECONDS = 0.2


class ProgressBar:
    """Progress bar that appears on a terminal after a short delay."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._started = time.monotonic()
        self._progress: Progress | None = None
        self._is_terminal = sys.stderr.isatty()
        self._first = (self._started, 0)  # time and progress of the first step, from which the speed is known
        self._done: int | None = None

    def phase(self, label: str, done: int, total: int) -> None:
        """Change the label and update the bar. Without a total, the bar shows no percentage."""
        self._label = label
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], description=label)
        self.step(done, total)

    def step(self, done: int, total: int) -> None:
        """Update the bar."""
        now = time.monotonic()
        if self._done is None or done < self._done:  # the first step, or another task
            self._first = (now, done)
        self._done = done
        if self._progress is None:
            if not self._is_terminal or now - self._started < DELAY_SECONDS:
                return
            self._progress = _make_progress(self._label)
            self._progress.start()
        started, first = self._first
        seconds = estimate_remaining_seconds(now - started, done - first, total - first)
        remaining = ""
        if seconds is not None:
            from backscroll.render.humanize import format_remaining

            remaining = f"{format_remaining(seconds)} left"
        self._progress.update(
            self._progress.task_ids[0], completed=done, total=max(total, 1), remaining=remaining
        )

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()


def _make_progress(label: str) -> "Progress":
    from rich.console import Console  # start-up time: loaded only after DELAY_SECONDS
    from rich.progress import BarColumn, Progress, TextColumn

    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[remaining]}"),
        console=Console(stderr=True),
        transient=True,
    )
    progress.add_task(label, total=None, remaining="")
    return progress
