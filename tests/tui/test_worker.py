"""Tests of the background threads."""

from concurrent.futures import Future
from pathlib import Path
from threading import Event, get_ident

from backscroll.history.history import History
from backscroll.tui.workers import HistoryWorker


def test_a_result_is_reported_after_all_messages_of_its_job(tmp_path: Path) -> None:
    worker = HistoryWorker("read", lambda: History(home=tmp_path, roots=[]))
    reported: list[object] = []
    ended = Event()

    def work(_: History) -> int:
        reported.append("progress")
        return get_ident()

    def on_done(future: Future[int]) -> None:
        reported.append("result")
        reported.append(get_ident() == future.result())  # two threads could report in any order
        ended.set()

    worker.submit(work, on_done)
    assert ended.wait(10)
    worker.close().result(10)
    assert reported == ["progress", "result", True]
