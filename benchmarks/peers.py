"""Other programs for the same purpose, measured on the same history.

`prepare` installs each one in a separate virtual environment and needs a network once. Measuring needs none.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.generated_histories import CACHE_FOLDER, MB, folder_size
from benchmarks.measurement import fastest, run_process
from benchmarks.result_table import PeerResult
from benchmarks.word_search import COMMON_WORD

_PEERS_FOLDER = CACHE_FOLDER / "peers"
_PORT = 8765
_RUNS = 5
_START_TIMEOUT_SECONDS = 30.0


def prepare() -> list[str]:
    """Install the programs that are missing. Return one sentence for each that could not be installed."""
    problems = []
    for name in ("agentsview", "fast-resume"):
        folder = _PEERS_FOLDER / name
        if (folder / "installed").exists():
            continue
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        installation = subprocess.run([*pip, "install", name], capture_output=True, text=True)
        if installation.returncode:
            problems.append(f"{name} could not be installed: {installation.stderr.strip().splitlines()[-1]}")
            continue
        (folder / "installed").touch()
    return problems


def installed_version(name: str) -> str:
    """Return the installed version, empty when the program is not installed."""
    distribution = name.replace("-", "_")
    found = list((_PEERS_FOLDER / name).glob(f"lib/*/site-packages/{distribution}-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else ""


def agentsview(context: BenchmarkContext) -> Iterator[PeerResult]:
    """Measure the agentsview binary. Its launcher script would add the start of Python."""
    program = str(next((_PEERS_FOLDER / "agentsview").glob("lib/*/site-packages/agentsview/**/agentsview")))
    yield from _agentsview_sync(program, context)
    yield from _agentsview_searches(program, context)
    if context.scale == "S":
        yield from _agentsview_sync(program, BenchmarkContext("M"), "multilingual ")


def _agentsview_sync(program: str, context: BenchmarkContext, prefix: str = "") -> Iterator[PeerResult]:
    env, home = _create_home("agentsview", context), _home("agentsview", context)
    without_daemon = {**env, "AGENTSVIEW_NO_DAEMON": "1"}
    size = folder_size(context.root)
    run = run_process([program, "sync", "--full"], env=without_daemon, sample_memory=True)
    yield PeerResult(
        peer="agentsview",
        key=f"{prefix}sync",
        value=size / MB / run.wall_seconds,
        cpu_seconds=run.cpu_seconds,
    )
    yield PeerResult(peer="agentsview", key=f"{prefix}memory", value=run.peak_bytes / MB)
    yield PeerResult(
        peer="agentsview", key=f"{prefix}archive size", value=folder_size(home / ".agentsview") / size
    )
    yield _time_command("agentsview", f"{prefix}sync command", [program, "sync"], without_daemon)


def _agentsview_searches(program: str, context: BenchmarkContext) -> Iterator[PeerResult]:
    env = _home_env("agentsview", context)
    with _running_server(program, env) as url:
        search_url = f"{url}/api/v1/search?q={COMMON_WORD}&limit=20"
        yield PeerResult(peer="agentsview", key="common word", value=_time_request(search_url))
        list_command = [program, "session", "list", "--json", "--limit", "20"]
        yield _time_command("agentsview", "list-only", list_command, env)
        search_command = [program, "session", "search", "--json", "--limit", "20", COMMON_WORD]
        yield _time_command("agentsview", "search-only", search_command, env)


def fast_resume(context: BenchmarkContext) -> Iterator[PeerResult]:
    program = str(_PEERS_FOLDER / "fast-resume/bin/fr")
    env, home = _create_home("fast-resume", context), _home("fast-resume", context)
    size = folder_size(context.root)
    list_command = [program, "--json", "--limit", "20"]
    run = run_process([*list_command, "--rebuild"], env=env, sample_memory=True)
    yield PeerResult(
        peer="fast-resume", key="sync", value=size / MB / run.wall_seconds, cpu_seconds=run.cpu_seconds
    )
    yield PeerResult(peer="fast-resume", key="memory", value=run.peak_bytes / MB)
    yield PeerResult(peer="fast-resume", key="archive size", value=folder_size(home / ".cache") / size)
    yield _time_command("fast-resume", "list-command", list_command, env)
    yield _time_command("fast-resume", "list-only", [*list_command, "--no-refresh"], env)
    yield _time_command("fast-resume", "search-command", [*list_command, COMMON_WORD], env)
    yield _time_command("fast-resume", "search-only", [*list_command, "--no-refresh", COMMON_WORD], env)


def _home(name: str, context: BenchmarkContext) -> Path:
    return _PEERS_FOLDER / f"home-{name}-{context.scale}"


def _home_env(name: str, context: BenchmarkContext) -> dict[str, str]:
    return {"HOME": str(_home(name, context)), "PATH": os.environ["PATH"]}


def _create_home(name: str, context: BenchmarkContext) -> dict[str, str]:
    """Create a home folder that contains only the history. Return the environment that selects it."""
    home = _home(name, context)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / ".claude").symlink_to(context.root)
    return _home_env(name, context)


def _time_command(peer: str, key: str, command: list[str], env: dict[str, str]) -> PeerResult:
    run = fastest(run_process(command, env=env) for _ in range(_RUNS))
    return PeerResult(peer=peer, key=key, value=run.wall_seconds * 1000, cpu_seconds=run.cpu_seconds)


def _time_request(url: str) -> float:
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        with urlopen(url) as response:
            response.read()
        times.append((time.perf_counter() - start) * 1000)
    return min(times)


@contextmanager
def _running_server(program: str, env: dict[str, str]) -> Iterator[str]:
    options = ["--no-browser", "--no-update-check", "--no-sync", "--port", str(_PORT)]
    server = subprocess.Popen(
        [program, "serve", *options], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{_PORT}"
    try:
        _wait_for_response(f"{url}/api/v1/sessions?limit=1")
        yield url
    finally:
        server.terminate()
        server.wait()


def _wait_for_response(url: str) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_SECONDS
    while True:
        try:
            with urlopen(url):
                return
        except URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
