"""Time to find the sessions of all commits, of a new commit, and of the lines of a large file."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tests.builders.git_repository import GitRepository

from backscroll.config import NamedRoot
from backscroll.history.history import History
from benchmarks.benchmark_context import BACKSCROLL_COMMAND, BenchmarkContext
from benchmarks.generated_histories import CACHE_FOLDER, cached_history
from benchmarks.measurement import ProcessRun, run_process
from benchmarks.result_table import Result, duration_result
from benchmarks.simulated_code import LARGE_FILE
from benchmarks.simulated_project import Options, simulate

_SESSION_COUNT = {"S": 1000, "M": 1000, "L": 10_000}
_GENERATOR_VERSION = 1
_OWN_SHARE = 0.35  # sessions in the repository; each leads to about three commits


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Measure the commands in their own processes. The sessions are in the archive already."""
    count = _SESSION_COUNT[context.scale]
    name = f"commits-{count}-v{_GENERATOR_VERSION}"
    folder = cached_history(name, lambda folder: _write(folder, CACHE_FOLDER / name, count))
    home = CACHE_FOLDER / f"commits-home-{count}"
    shutil.rmtree(home, ignore_errors=True)
    with History(roots=[NamedRoot("claude-code", folder / "claude")], home=home) as history:
        history.sync()
    checkout = folder / "work" / "shop"
    run = _run(home, "commits", "--repo", checkout, "--all", "--json")
    commits = run.stdout.count(b'"sha"')
    is_large = context.scale == "L"
    yield _result("first time", f"{commits:,} commits, {count:,} sessions", run, 60_000 if is_large else None)
    _forget_last_commit(home, checkout)
    run = _run(home, "commits", "--repo", checkout, "--all", "--json")
    yield _result("one new commit", f"{count:,} sessions", run, 1000)
    with sqlite3.connect(home / "archive.db") as db:  # the scans of the sessions stay
        db.execute("delete from git_commit")
    run = _run(home, "blame", checkout / LARGE_FILE, "--json")
    lines = run.stdout.count(b'"line"')
    yield _result("blame, first time", f"{lines:,} lines, {count:,} sessions", run, 2000)
    run = _run(home, "survival", "--repo", checkout, "--json")
    yield _result("survival", f"{commits:,} commits, {count:,} sessions", run, None)


def _write(folder: Path, target: Path, count: int) -> None:
    """Write one project with its repository, and sessions of two others without one.

    The folder is renamed to ``target``, which is what the sessions name.
    """
    own = round(count * _OWN_SHARE)
    root = folder / "claude"
    root.mkdir()
    project = simulate(
        Options(session_count=own, sessions_per_day=8, seed=1, large_file=0.04), target / "work" / "shop"
    )
    project.write(root, folder / "work" / "shop")
    for number, name in enumerate(("api", "site")):
        others = (count - own) // 2
        options = Options(
            session_count=others, sessions_per_day=8, seed=2 + number, first_number=own + number * others
        )
        for session in simulate(options, target / "work" / name).sessions:
            session.save(root)


def _run(home: Path, *arguments: str | Path) -> ProcessRun:
    return run_process([*BACKSCROLL_COMMAND, "--home", str(home), *map(str, arguments), "--no-sync"])


def _forget_last_commit(home: Path, checkout: Path) -> None:
    """Delete what is stored about the last commit, as if it were new."""
    sha = GitRepository(checkout, is_existing=True).head()
    with sqlite3.connect(home / "archive.db") as db:
        for table in ("git_commit", "commit_link"):
            db.execute(f"delete from {table} where sha = ?", [sha])  # noqa: S608 - a constant


def _result(name: str, extent: str, run: ProcessRun, target: float | None) -> Result:
    return duration_result(
        f"commits {name}",
        f"Commits, {name} ({extent})",
        run.wall_seconds,
        cpu_seconds=run.cpu_seconds,
        target=target,
    )
