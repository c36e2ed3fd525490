"""Expensive results are computed again when the archive changes, by one thread at a time."""

from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest

from backscroll.web.served_history import MAX_RESULTS, ResultCache


@pytest.fixture
def history(tmp_path: Path) -> Any:
    path = tmp_path / "archive.db"
    path.write_bytes(b"1")
    return SimpleNamespace(archive_path=path)


class Counter:
    """A computation that returns how often it ran."""

    def __init__(self, seconds: float = 0) -> None:
        self.count = 0
        self._seconds = seconds

    def __call__(self, history: Any, name: str, now: datetime) -> str:
        sleep(self._seconds)
        self.count += 1
        return f"{name}{self.count}"


def test_a_result_is_valid_until_the_archive_changes(history: Any) -> None:
    cache = ResultCache(Counter(), timedelta(minutes=1))
    assert [cache.get(history, "a"), cache.get(history, "a"), cache.get(history, "b")] == ["a1", "a1", "b2"]
    history.archive_path.with_name("archive.db-wal").write_bytes(b"a commit")
    assert cache.get(history, "a") == "a3"


def test_a_recent_result_is_used_although_the_archive_has_changed(history: Any) -> None:
    cache = ResultCache(Counter(), timedelta(minutes=1))
    assert cache.find_recent(history, "") is None
    assert cache.get_recent(history, "") == "1"
    history.archive_path.write_bytes(b"changed")
    assert (cache.find_recent(history, ""), cache.get_recent(history, ""), cache.get(history, "")) == (
        "1",
        "1",
        "2",
    )


def test_a_result_that_is_too_old_is_computed_again(history: Any) -> None:
    cache = ResultCache(Counter(), timedelta(0))
    assert cache.get_recent(history, "") == "1"
    history.archive_path.write_bytes(b"changed")
    assert cache.find_recent(history, "") is None
    assert cache.get_recent(history, "") == "2"


def test_threads_share_one_computation(history: Any) -> None:
    counter = Counter(seconds=0.05)
    cache = ResultCache(counter, timedelta(minutes=1))
    found: list[str] = []
    threads = [Thread(target=lambda: found.append(cache.get(history, ""))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["1"] * 4
    assert counter.count == 1


def test_the_number_of_results_is_limited(history: Any) -> None:
    cache: ResultCache[str, str] = ResultCache(Counter(), timedelta(minutes=1))
    for number in range(MAX_RESULTS + 1):
        cache.get(history, str(number))
    assert cache.find_recent(history, "0") is None
    assert cache.find_recent(history, "1") is not None
