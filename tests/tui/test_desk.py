"""Work beside the screen."""

from concurrent.futures import Future
from pathlib import Path
from threading import Event, get_ident

from backscroll.history import History
from backscroll.tui.worker import Desk


def test_an_answer_is_told_after_all_that_the_work_told_on_the_way(tmp_path: Path) -> None:
    desk = Desk("read", lambda: History(home=tmp_path, roots=[]))
    told: list[object] = []
    ended = Event()

    def work(_: History) -> int:
        told.append("on the way")
        return get_ident()

    def tell(answer: Future[int]) -> None:
        told.append("the answer")
        told.append(get_ident() == answer.result())  # two threads would tell in any order
        ended.set()

    desk.ask(work, tell)
    assert ended.wait(10)
    desk.close().result(10)
    assert told == ["on the way", "the answer", True]
