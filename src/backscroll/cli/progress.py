"""A bar with an estimate, on standard error, for people who wait; nothing for programs."""

import sys
from types import TracebackType

__all__ = ["Bar"]


class Bar:
    """Shown only on a terminal, and only once there is something to show."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._progress = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._progress.add_task(label, total=None)

    def step(self, done: int, total: int) -> None:
        """So much of so much is done."""
        if self._progress is not None:
            self._progress.update(self._task, completed=done, total=max(total, 1))

    def __enter__(self) -> "Bar":
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
