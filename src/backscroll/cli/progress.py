"""A bar with an estimate, on standard error, for people who wait; nothing for programs."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Bar"]

_PATIENCE = 0.2  # seconds that nobody minds


class Bar:
    """Shown only on a terminal, and only to those who have waited a moment."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._began = time.monotonic()
        self._progress: Progress | None = None
        self._is_seen = sys.stderr.isatty()

    def step(self, done: int, total: int) -> None:
        """So much of so much is done."""
        if self._progress is None:
            if not self._is_seen or time.monotonic() - self._began < _PATIENCE:
                return
            self._progress = _shown(self._label)
            self._progress.start()
        self._progress.update(self._progress.task_ids[0], completed=done, total=max(total, 1))

    def __enter__(self) -> "Bar":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()


def _shown(label: str) -> "Progress":
    from rich.console import Console  # whoever need not wait should not wait for this either
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
