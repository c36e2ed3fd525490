"""Hooks: the time of an assistant's hook, and how much the git hook delays a commit."""

import json
import os
import resource
import shlex
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.hooks.shell_command import hook_command
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.result_table import Result

COMMITS = 100
RUNS = 30
LARGE_BODY_LINES = 170_000  # two copies of it are an event of 6 MB


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Measure a small and a large event, and 100 commits in a row with and without the hook."""
    del context
    with TemporaryDirectory() as folder:
        yield from _measure_events(Path(folder))
    with TemporaryDirectory() as folder:
        yield from _measure_commits(Path(folder))


def _measure_events(folder: Path) -> Iterator[Result]:
    body = "value = 1  # a line\n" * LARGE_BODY_LINES
    written = {"filePath": "/a.py", "content": body, "type": "create"}
    small = {"session_id": "s", "hook_event_name": "Stop"}
    large = {**small, "tool_name": "Write", "tool_input": {"content": body}, "tool_response": written}
    for key, label, event in (("hook", "hook of an assistant", small), ("hook-6mb", "the same, 6 MB", large)):
        data = json.dumps(event).encode()
        times = [_run_hook(folder, data) for _ in range(RUNS)]
        yield Result(
            key=key,
            label=label,
            value=statistics.median(wall for wall, _ in times) * 1000,
            unit="ms",
            target=50,
            cpu_seconds=statistics.median(cpu for _, cpu in times),
        )


def _run_hook(folder: Path, data: bytes) -> tuple[float, float]:
    """Return the time and the processor time of a hook, with the start of its interpreter."""
    started, cpu = time.perf_counter(), _cpu_seconds()
    subprocess.run(["sh", "-c", hook_command(folder / "spool")], input=data, check=True)
    return time.perf_counter() - started, _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _measure_commits(folder: Path) -> Iterator[Result]:
    plain, hooked = _make_repository(folder / "plain"), _make_repository(folder / "hooked")
    home, root = folder / "home", folder / "claude"
    home.mkdir()
    root.mkdir()
    roots = [NamedRoot("claude-code", root)]
    with History(home=home, roots=roots) as history:
        history.hooks.apply_git_change(history.hooks.plan_git_install(hooked))
    # Alternately, so that the load of the machine affects both alike.
    pairs = [(_commit(plain, number), _commit(hooked, number)) for number in range(COMMITS)]
    delays = sorted((with_hook - without) * 1000 for without, with_hook in pairs)
    yield Result(
        key="git-hook-median",
        label="delay of a commit by the git hook, median",
        value=statistics.median(delays),
        unit="ms",
        target=20,
    )
    yield Result(
        key="git-hook-p95",
        label="delay of a commit by the git hook, 95th percentile",
        value=delays[int(COMMITS * 0.95)],
        unit="ms",
        target=20,
    )
    yield Result(
        key="git-hook-missing",
        label=f"commits without a link after {COMMITS} in a row",
        value=COMMITS - _wait_for_links(home, roots),
        unit="commits",
        target=0,
    )


def _make_repository(folder: Path) -> Path:
    folder.mkdir()
    _git(folder, "init", "-q")
    return folder


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Robin Vale", "-c", "user.email=robin@example.invalid"]
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *identity, *arguments], cwd=folder, env=environ, check=True, capture_output=True)


def _commit(folder: Path, number: int) -> float:
    (folder / f"file{number}.txt").write_text(f"line {number}\n")
    _git(folder, "add", "--all")
    started = time.perf_counter()
    _git(folder, "commit", "-q", "-m", shlex.quote(f"commit {number}"))
    return time.perf_counter() - started


def _wait_for_links(home: Path, roots: list[NamedRoot]) -> int:
    """Return the number of commits that were processed in the background within five minutes."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        with History(home=home, roots=roots) as history:
            done = history.hooks.processed_commit_count()
        if done >= COMMITS:
            return done
        time.sleep(0.5)
    return done
