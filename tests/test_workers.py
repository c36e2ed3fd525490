"""Worker threads run functions with their own History, and stop when nobody waits for the result."""

import sqlite3
from concurrent.futures import CancelledError
from concurrent.futures import wait as wait_for
from pathlib import Path
from threading import Event, get_ident

import anyio
import pytest

from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.workers import WorkerPool

TIMEOUT_SECONDS = 10
ENDLESS_QUERY = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"


class Pool(WorkerPool[History]):
    """A pool, and how often it opened a History."""

    def __init__(self, home: Path, max_threads: int = 1, *, keeps_open: bool = True) -> None:
        self.open_count = 0
        self._home = home
        super().__init__(self._open, max_threads, keeps_open=keeps_open)

    def _open(self) -> History:
        self.open_count += 1
        return History(home=self._home, roots=[])


def total(history: History) -> int:
    return history.list_sessions().pagination.total


def test_a_callback_runs_in_the_worker_after_all_that_the_job_has_reported(tmp_path: Path) -> None:
    pool, reported, may_start = Pool(tmp_path), list[object](), Event()

    def work(_: History) -> int:
        assert may_start.wait(TIMEOUT_SECONDS)
        reported.append("progress")
        return get_ident()

    pool.submit(work, lambda done: reported.append(("result", done.result() == get_ident())))
    may_start.set()
    pool.close()
    assert pool.join(TIMEOUT_SECONDS)
    assert reported == ["progress", ("result", True)]


def test_a_single_thread_runs_jobs_in_order(tmp_path: Path) -> None:
    pool, order = Pool(tmp_path), list[int]()
    jobs = [pool.submit(lambda _, number=number: order.append(number)) for number in range(50)]  # type: ignore[misc]
    wait_for([job.future for job in jobs], TIMEOUT_SECONDS)
    assert order == [*range(50)]
    assert pool.open_count == 1


def test_several_threads_run_jobs_at_the_same_time(tmp_path: Path) -> None:
    pool, first, second = Pool(tmp_path, 2), Event(), Event()
    one = pool.submit(lambda _: (first.set(), second.wait(TIMEOUT_SECONDS))[1])
    other = pool.submit(lambda _: (second.set(), first.wait(TIMEOUT_SECONDS))[1])
    assert one.future.result(TIMEOUT_SECONDS)
    assert other.future.result(TIMEOUT_SECONDS)


def test_a_history_stays_open_until_its_archive_is_replaced(tmp_path: Path) -> None:
    pool = Pool(tmp_path)
    assert [pool.submit(total).future.result(TIMEOUT_SECONDS) for _ in range(2)] == [0, 0]
    assert pool.open_count == 1
    archive = tmp_path / "archive.db"
    archive.rename(tmp_path / "old.db")
    with History(home=tmp_path, roots=[]) as other:
        assert total(other) == 0
    assert pool.submit(total).future.result(TIMEOUT_SECONDS) == 0
    assert pool.open_count == 2


def test_a_history_is_opened_again_after_an_error(tmp_path: Path) -> None:
    def fail(history: History) -> None:
        raise UsageError("no")

    pool = Pool(tmp_path)
    with pytest.raises(UsageError):
        pool.submit(fail).future.result(TIMEOUT_SECONDS)
    assert pool.submit(total).future.result(TIMEOUT_SECONDS) == 0
    assert pool.open_count == 2


def test_an_idle_thread_closes_its_history_if_wanted(tmp_path: Path) -> None:
    pool = Pool(tmp_path, keeps_open=False)
    histories = [pool.submit(lambda history: (total(history), history)[1]).future.result(TIMEOUT_SECONDS)]
    pool.submit(total).future.result(TIMEOUT_SECONDS)
    assert not histories[0]._stores.is_open


def test_a_cancelled_job_that_waits_does_not_run(tmp_path: Path) -> None:
    pool, may_end, ran = Pool(tmp_path), Event(), Event()
    running = pool.submit(lambda _: may_end.wait(TIMEOUT_SECONDS))
    waiting = pool.submit(lambda _: ran.set())
    waiting.cancel()
    may_end.set()
    assert running.future.result(TIMEOUT_SECONDS)
    with pytest.raises(CancelledError):
        waiting.future.result(TIMEOUT_SECONDS)
    pool.close()
    assert pool.join(TIMEOUT_SECONDS)
    assert not ran.is_set()


def test_a_cancelled_coroutine_interrupts_its_query(tmp_path: Path) -> None:
    has_started, has_ended = Event(), Event()

    def count(history: History) -> None:
        archive = history._stores.archive
        has_started.set()
        try:
            archive._db.execute(ENDLESS_QUERY).fetchone()
        except sqlite3.OperationalError:
            has_ended.set()
            raise

    async def main() -> int:
        pool = Pool(tmp_path)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.run, count)
            while not has_started.is_set():
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        with anyio.fail_after(TIMEOUT_SECONDS):
            return await pool.run(total)  # the thread is free again

    assert anyio.run(main) == 0
    assert has_ended.is_set()
