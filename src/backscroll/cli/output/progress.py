"""Progress bar with remaining time, on standard error. Prints nothing if that is not a terminal."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["ProgressBar"]

DELAY_SECONDS = 0.2


class ProgressBar:
    """Progress bar that appears on a terminal after a short delay."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._started = time.monotonic()
        self._progress: Progress | None = None
        self._is_terminal = sys.stderr.isatty()

    def step(self, done: int, total: int) -> None:
        """Update the bar."""
        if self._progress is None:
            if not self._is_terminal or time.monotonic() - self._started < DELAY_SECONDS:
                return
            self._progress = _make_progress(self._label)
            self._progress.start()
        self._progress.update(self._progress.task_ids[0], completed=done, total=max(total, 1))

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()


def _make_progress(label: str) -> "Progress":
    from rich.console import Console  # start-up time: loaded only after DELAY_SECONDS
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    progress.add_task(label, total=None)
    return progress
