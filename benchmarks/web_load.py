"""Response times of the web app under load: 50 clients that search or read once per second during a sync."""

import asyncio
import random
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import quote

from benchmarks.benchmark_context import BACKSCROLL_COMMAND, BenchmarkContext
from benchmarks.generated_histories import MB, cursor_history
from benchmarks.measurement import anonymous_memory, cpu_seconds, percentile
from benchmarks.result_table import Result
from benchmarks.word_search import sample_words

CLIENTS = 50
SECONDS = 30
_WARM_UP_SECONDS = 4.0
_START_TIMEOUT_SECONDS = 30.0


class _Server(NamedTuple):
    process: "subprocess.Popen[bytes]"
    host: str
    port: int


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Measure searches and pages of sessions. Meanwhile, another process reads a Cursor history of 500 MB."""
    words = sample_words(random.Random(3), context.root)
    with context.open_history() as history:
        refs = [session.ref for session in history.list_sessions(limit=200).data]
    with _running_server(context) as server, _running_sync(context):
        load = asyncio.run(_run_clients(server, words, refs))
    for kind, found in load.times.items():
        yield Result(
            key=f"web {kind}",
            label=f"Web app, {CLIENTS} clients, {kind}, p95",
            value=percentile(found, 0.95) * 1000,
            unit="ms",
            target=100,
        )
    yield Result(
        key="web memory",
        label="Web app under load, peak memory without file pages",
        value=load.peak_bytes / MB,
        unit="MB",
        target=500,
    )
    yield Result(
        key="web cpu",
        label="Web app under load, CPU time of a request",
        value=load.cpu_seconds_per_request * 1000,
        unit="ms",
    )


class _Load(NamedTuple):
    times: dict[str, list[float]]  # of the requests after the warm-up, by kind
    peak_bytes: int  # of all processes of the server
    cpu_seconds_per_request: float  # during the warm-up, too


async def _run_clients(server: _Server, words: Sequence[str], refs: Sequence[str]) -> _Load:
    """Send requests until the time is over."""
    times: dict[str, list[float]] = {"search": [], "session": []}
    peak = request_count = 0
    cpu_before = cpu_seconds(server.process.pid)
    start = time.perf_counter() + _WARM_UP_SECONDS

    async def client(number: int) -> None:
        nonlocal request_count
        rng = random.Random(number)
        await asyncio.sleep(rng.random())
        end = start + SECONDS
        while (begin := time.perf_counter()) < end:
            if rng.random() < 0.5:
                query = " ".join(rng.sample(words, rng.choice((1, 2, 3))))
                kind, path = "search", f"/search?q={quote(query)}"
            else:
                kind, path = "session", f"/sessions/{quote(rng.choice(refs))}"
            await _request(server, path)
            request_count += 1
            seconds = time.perf_counter() - begin
            if begin >= start:
                times[kind].append(seconds)
            await asyncio.sleep(max(0.0, 1.0 - seconds))

    async def watch_memory() -> None:
        nonlocal peak
        while time.perf_counter() < start + SECONDS:
            peak = max(peak, anonymous_memory(server.process.pid))
            await asyncio.sleep(0.25)

    await asyncio.gather(watch_memory(), *map(client, range(CLIENTS)))
    cpu = cpu_seconds(server.process.pid) - cpu_before
    return _Load(times, peak, cpu / request_count)


async def _request(server: _Server, path: str) -> None:
    """Request a page. Raises `RuntimeError` if the response is not complete or not successful."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    host = f"{server.host}:{server.port}"
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    response = await reader.read()
    writer.close()
    if not response.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{path}: {response[:100]!r}")


@contextmanager
def _running_server(context: BenchmarkContext) -> Iterator[_Server]:
    options = ["--home", str(context.home), "--root", f"claude-code={context.root}"]
    command = [*BACKSCROLL_COMMAND, *options, "serve", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        try:
            address = _read_address(process.stdout, time.monotonic() + _START_TIMEOUT_SECONDS)
            yield _Server(process, *address)
        finally:
            process.terminate()


def _read_address(output: Iterator[bytes], deadline: float) -> tuple[str, int]:
    for line in output:
        found = re.search(rb"http://([\d.]+):(\d+)", line)
        if found:
            return found[1].decode(), int(found[2])
        if time.monotonic() > deadline:
            break
    raise RuntimeError("The web app did not start.")


@contextmanager
def _running_sync(context: BenchmarkContext) -> Iterator[None]:
    roots = [f"claude-code={context.root}", f"cursor={cursor_history()}"]
    options = [option for root in roots for option in ("--root", root)]
    command = [*BACKSCROLL_COMMAND, "--home", str(context.home), *options, "sync"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        yield
        process.terminate()
