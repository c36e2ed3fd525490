"""Pages that other processes render are the same as those of the server, which does not depend on them."""

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE, Popen

import httpx2
import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.web.test_server import TIMEOUT_SECONDS, Server, arguments, serve

SESSION_ID = "10000000-0000-4000-8000-000000000008"
SESSION = f"/sessions/claude-code:{SESSION_ID}"
PAGES = [
    "/search?q=ferry",
    "/search?q=",
    "/search?q=fer&typing=1",
    "/search?q=ferry&mode=exact",
    "/search/facets?q=ferry",
    SESSION,
    f"{SESSION}?find=ferry",
    f"{SESSION}/window?from=1",
    f"{SESSION}/prompts",
    f"{SESSION}/messages/1/highlighted",
    "/search?q=a&page=x",  # 400
    "/search/facets?q=",  # 400
    "/sessions/none",  # 404
    f"/sessions/{SESSION_ID[:12]}",  # 303
]
CHANGING = re.compile(r'\d+ ms|data-revision="[^"]*"|<time .*?</time>')

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs fork and two cores"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    session = Transcript(SESSION_ID, seed=1, cwd="/home/zoe/quay").user("the first ferry")
    session.run(tool_calls.bash("ls ferry", "a\nb")).assistant("At nine.").write(tmp_path / "claude")
    roots = [NamedRoot("claude-code", tmp_path / "claude")]
    with History(home=tmp_path / "home", roots=roots) as history:
        history.sync()
    return tmp_path / "home"


def renderers_of(process_id: int) -> list[int]:
    return [int(id_) for id_ in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()]


def pages(server: Server) -> list[tuple[int, dict[str, str], str]]:
    with httpx2.Client(base_url=server.address, timeout=TIMEOUT_SECONDS) as client:
        responses = [client.get(path) for path in PAGES]
    return [
        (one.status_code, {**one.headers, "date": "", "content-length": ""}, CHANGING.sub("", one.text))
        for one in responses
    ]


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_running(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_pages_are_the_same_without_the_other_processes(home: Path) -> None:
    with serve(home, "--no-sync") as server:
        processes = renderers_of(server.process.pid)
        assert len(processes) == 2
        rendered = pages(server)
        assert [status for status, _, _ in rendered] == [*[200] * 10, 400, 400, 404, 303]
        for process in processes:
            os.kill(process, signal.SIGKILL)
        wait_until(lambda: not any(map(is_running, processes)))
        assert pages(server) == rendered


def test_requests_that_wait_for_a_process_are_answered_when_it_ends(home: Path) -> None:
    with serve(home, "--no-sync") as server, ThreadPoolExecutor(8) as threads:
        processes = renderers_of(server.process.pid)
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        answers = [threads.submit(httpx2.get, server.address + SESSION, timeout=20) for _ in range(8)]
        time.sleep(0.5)
        for process in processes:
            os.kill(process, signal.SIGKILL)
        assert [answer.result().status_code for answer in answers] == [200] * 8


def test_the_processes_end_with_the_server(home: Path) -> None:
    with serve(home, "--no-sync") as server:
        ended = renderers_of(server.process.pid)
        assert all(map(is_running, ended))
    assert not any(map(is_running, ended))


def test_the_processes_end_if_the_server_is_killed(home: Path) -> None:
    with Popen(arguments(home, "--no-sync"), stdout=PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline()
        orphans = renderers_of(process.pid)
        process.kill()
    assert len(orphans) == 2
    wait_until(lambda: not any(map(is_running, orphans)))
