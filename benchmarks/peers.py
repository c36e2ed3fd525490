"""Other programs for the same, each in an environment of its own, on the same history.

`prepare` installs them from the package index that pip is set up with, which needs the network once;
measuring does not. What they keep differs, and docs/explain/performance.md says how.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.figures import Beside
from benchmarks.histories import FOLDER, MB, size_of
from benchmarks.measure import fastest, run
from benchmarks.stage import Stage
from benchmarks.words import COMMON

__all__ = ["agentsview", "fast_resume", "prepare", "version_of"]

_FOLDER = FOLDER / "peers"
_PORT = 8765
_RUNS = 5
_START = 30.0  # seconds that a server may take to answer


def prepare() -> list[str]:
    """Install what is not there yet. Returns what could not be, a sentence each."""
    missing = []
    for name in ("agentsview", "fast-resume"):
        place = _FOLDER / name
        if (place / "installed").exists():
            continue
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        pip = [
            str(place / "bin/python"),
            "-m",
            "pip",
            "--quiet",
            "--disable-pip-version-check",
            "install",
            name,
        ]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode:
            missing.append(f"{name} could not be installed: {done.stderr.strip().splitlines()[-1]}")
            continue
        (place / "installed").touch()
    return missing


def version_of(name: str) -> str:
    """The installed version, empty when it is not installed."""
    found = list((_FOLDER / name).glob(f"lib/*/site-packages/{name.replace('-', '_')}-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else ""


def agentsview(stage: Stage) -> Iterator[Beside]:
    """The program itself and not the script that starts it, which would add Python's start."""
    program = str(next((_FOLDER / "agentsview").glob("lib/*/site-packages/agentsview/**/agentsview")))
    env, home = _home("agentsview", stage), _FOLDER / f"home-agentsview-{stage.scale}"
    alone = {**env, "AGENTSVIEW_NO_DAEMON": "1"}
    size = size_of(stage.root)
    ran = run([program, "sync", "--full"], env=alone, memory=True)
    yield Beside(peer="agentsview", key="sync", value=size / MB / ran.wall, processor=ran.processor)
    yield Beside(peer="agentsview", key="memory", value=ran.memory / MB)
    yield Beside(peer="agentsview", key="room", value=size_of(home / ".agentsview") / size)
    yield _fastest("agentsview", "refresh", [program, "sync"], alone)
    with _serving(program, env) as url:
        yield Beside(
            peer="agentsview", key="common", value=_asked(f"{url}/api/v1/search?q={COMMON}&limit=20")
        )
        listing = [program, "session", "list", "--json", "--limit", "20"]
        yield _fastest("agentsview", "list-only", listing, env)
        finding = [program, "session", "search", "--json", "--limit", "20", COMMON]
        yield _fastest("agentsview", "search-only", finding, env)


def fast_resume(stage: Stage) -> Iterator[Beside]:
    program = str(_FOLDER / "fast-resume/bin/fr")
    env, home = _home("fast-resume", stage), _FOLDER / f"home-fast-resume-{stage.scale}"
    size = size_of(stage.root)
    page = [program, "--json", "--limit", "20"]
    ran = run([*page, "--rebuild"], env=env, memory=True)
    yield Beside(peer="fast-resume", key="sync", value=size / MB / ran.wall, processor=ran.processor)
    yield Beside(peer="fast-resume", key="memory", value=ran.memory / MB)
    yield Beside(peer="fast-resume", key="room", value=size_of(home / ".cache") / size)
    yield _fastest("fast-resume", "list-command", page, env)
    yield _fastest("fast-resume", "list-only", [*page, "--no-refresh"], env)
    yield _fastest("fast-resume", "search-command", [*page, COMMON], env)
    yield _fastest("fast-resume", "search-only", [*page, "--no-refresh", COMMON], env)


def _home(name: str, stage: Stage) -> dict[str, str]:
    """An empty home folder with nothing in it but the history."""
    home = _FOLDER / f"home-{name}-{stage.scale}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / ".claude").symlink_to(stage.root)
    return {"HOME": str(home), "PATH": os.environ["PATH"]}


def _fastest(peer: str, key: str, command: list[str], env: dict[str, str]) -> Beside:
    ran = fastest(run(command, env=env) for _ in range(_RUNS))
    return Beside(peer=peer, key=key, value=ran.wall * 1000, processor=ran.processor)


def _asked(url: str) -> float:
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        with urlopen(url) as answer:
            answer.read()
        times.append((time.perf_counter() - start) * 1000)
    return min(times)


@contextmanager
def _serving(program: str, env: dict[str, str]) -> Iterator[str]:
    options = ["--no-browser", "--no-update-check", "--no-sync", "--port", str(_PORT)]
    server = subprocess.Popen(
        [program, "serve", *options], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{_PORT}"
    try:
        _wait(f"{url}/api/v1/sessions?limit=1")
        yield url
    finally:
        server.terminate()
        server.wait()


def _wait(url: str) -> None:
    until = time.monotonic() + _START
    while True:
        try:
            with urlopen(url):
                return
        except URLError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
