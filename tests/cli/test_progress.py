"""The progress bar on a terminal."""

import sys

import pytest

from backscroll.cli import progress
from backscroll.cli.progress import ProgressBar


class Clock:
    """Replaces `time.monotonic`."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    return clock


def remaining(bar: ProgressBar) -> object:
    assert bar._progress is not None
    return bar._progress.tasks[0].fields["remaining"]


def test_the_first_seconds_show_no_estimate(clock: Clock) -> None:
    with ProgressBar("Syncing") as bar:
        bar.step(0, 1000)
        for _ in range(4):
            clock.seconds += 0.7
            bar.step(100, 1000)
            assert remaining(bar) == ""
        clock.seconds += 17.2
        bar.step(500, 1000)
        assert remaining(bar) == "about 20 s left"


def test_the_speed_of_a_sync_that_was_running_before_is_not_overestimated(clock: Clock) -> None:
    with ProgressBar("Syncing") as bar:
        bar.step(900, 1000)
        clock.seconds += 10
        bar.step(901, 1000)
        assert remaining(bar) == ""
        clock.seconds += 10
        bar.step(950, 1000)
        assert remaining(bar) == "about 20 s left"


def test_the_estimate_starts_again_with_another_task(clock: Clock) -> None:
    with ProgressBar("Syncing") as bar:
        bar.step(0, 1000)
        clock.seconds += 10
        bar.step(900, 1000)
        assert remaining(bar) == "about 5 s left"
        clock.seconds += 1
        bar.step(0, 200)
        clock.seconds += 1
        bar.step(100, 200)
        assert remaining(bar) == ""
