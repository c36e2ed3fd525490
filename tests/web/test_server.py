"""`backscroll serve` listens on the loopback address, once per archive, and ends cleanly."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
import uvicorn

from backscroll.history.history import History
from backscroll.history.web_server import ServerClaim, is_served
from backscroll.testing.claude_code import Transcript, tool_calls
from backscroll.web import server

COMMAND = str(Path(sys.executable).with_name("backscroll"))
TIMEOUT_SECONDS = 30.0


class Server:
    """A running server."""

    def __init__(self, process: "subprocess.Popen[str]", launch_url: str) -> None:
        self.process = process
        self.launch_url = launch_url
        self.address = launch_url.partition("/launch")[0]

    def wait_for(self, text: str, path: str = "/sessions") -> str:
        """Return a page as soon as it contains a text."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while text not in (page := httpx2.get(self.address + path, timeout=20).text):
            assert time.monotonic() < end, page
            time.sleep(0.05)
        return page


def arguments(home: Path, *options: str) -> list[str]:
    root = f"claude-code={home.parent / 'claude'}"
    return [COMMAND, "--home", str(home), "--root", root, "serve", "--no-browser", *options]


@contextmanager
def serve(home: Path, *options: str, end: signal.Signals = signal.SIGINT) -> Iterator[Server]:
    process = subprocess.Popen(
        arguments(home, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield Server(process, process.stdout.readline().strip())
    process.send_signal(end)
    _, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0, stderr
    assert "Traceback" not in stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    Transcript(seed=1).user("the first ferry").assistant("answer").write(tmp_path / "claude")
    return tmp_path / "home"


def test_it_shows_a_new_history_and_what_is_added_later(home: Path) -> None:
    with serve(home) as server:
        assert server.address.startswith("http://127.0.0.1:")
        server.wait_for("the first ferry")
        Transcript(seed=2).user("the second ferry").assistant("answer").write(home.parent / "claude")
        server.wait_for("the second ferry")


def test_responses_on_a_kept_alive_connection_are_not_delayed(home: Path) -> None:
    seconds = []
    with serve(home, "--no-sync") as server, httpx2.Client(base_url=server.address, timeout=20) as client:
        for _ in range(20):
            start = time.perf_counter()
            assert client.get("/api/v1/status").status_code == 200
            seconds.append(time.perf_counter() - start)
    # Without TCP_NODELAY, nearly all take 40 ms or more. Not the median: another process may use the cores.
    assert sorted(seconds)[5] < 0.03


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_its_address_file_is_private_and_removed_at_the_end(home: Path, end: signal.Signals) -> None:
    with serve(home, "--no-sync", end=end) as server:
        record = json.loads((home / "web.json").read_text())
        assert record["address"] == server.address
        assert record["token"] in server.launch_url
        assert stat.S_IMODE((home / "web.json").stat().st_mode) == 0o600
    assert not (home / "web.json").exists()


def test_a_second_server_names_the_first(home: Path) -> None:
    with serve(home, "--no-sync") as server:
        second = subprocess.run(
            arguments(home), capture_output=True, text=True, check=True, timeout=TIMEOUT_SECONDS
        )
        assert second.stdout.strip() == server.launch_url
        assert "Already running" in second.stderr
        other_port = subprocess.run(
            arguments(home, "--port", "1"),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
        assert other_port.returncode == 1
        assert "already running" in other_port.stderr


def test_a_killed_server_does_not_block_the_next_one(home: Path) -> None:
    process = subprocess.Popen(arguments(home, "--no-sync"), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = process.stdout.readline().strip()
    process.kill()
    process.communicate()
    assert (home / "web.json").exists()
    with serve(home, "--no-sync") as server:
        assert server.launch_url != first
        assert httpx2.get(server.address, timeout=20).status_code == 200


def test_a_port_that_is_taken_is_explained(home: Path, tmp_path: Path) -> None:
    with serve(home, "--no-sync") as server:
        port = server.address.rpartition(":")[2]
        taken = subprocess.run(
            arguments(tmp_path / "other", "--port", port),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
    assert taken.returncode == 1
    assert "Omit --port" in taken.stderr
    assert "Traceback" not in taken.stderr


def test_two_servers_that_start_at_once_get_different_ports(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    bind = uvicorn.Config.bind_socket

    def bind_at_once(config: uvicorn.Config) -> socket.socket:
        bound = bind(config)
        if config.port == port:
            rival = bind(config)
            rival.listen()
            rivals.append(rival)
        return bound

    rivals: list[socket.socket] = []
    monkeypatch.setattr(uvicorn.Config, "bind_socket", bind_at_once)
    monkeypatch.setattr(server, "DEFAULT_PORT", port)
    monkeypatch.setattr(
        uvicorn.Server, "run", lambda self, sockets: found.append(sockets[0].getsockname()[1])
    )
    found: list[int] = []
    server.serve(lambda: History(home=home), auto_sync=False, started=lambda address, launch_url: None)
    rivals[0].close()
    assert found and found[0] != port


def test_an_unknown_host_is_explained(home: Path) -> None:
    done = subprocess.run(
        arguments(home, "--host", "no-such-host.invalid"),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    assert done.returncode == 1
    assert "Cannot listen on no-such-host.invalid" in done.stderr
    assert "Check the address" in done.stderr


def test_on_another_address_reading_requires_the_token(home: Path) -> None:
    with serve(home, "--no-sync", "--host", "0.0.0.0") as server:
        assert httpx2.get(server.address, timeout=20).status_code == 401
        with httpx2.Client(follow_redirects=True, timeout=20) as client:
            assert client.get(server.launch_url).status_code == 200
            assert client.get(f"{server.address}/sessions").status_code == 200


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a folder without write permission")
def test_an_archive_in_a_read_only_folder_can_be_served(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o500)
    with ServerClaim(History(home=tmp_path / "home")) as claim:
        assert claim.is_held


def test_changes_are_sent_as_events(home: Path) -> None:
    with serve(home) as server:
        server.wait_for("the first ferry")
        with httpx2.stream("GET", f"{server.address}/events", timeout=TIMEOUT_SECONDS) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            lines = response.iter_lines()
            Transcript("5e551011-0000-4000-8000-0000000000dd", seed=2).user("more").write(
                home.parent / "claude"
            )
            for line in lines:
                if line.startswith("data: ") and "message_count" in line:
                    break
        change = json.loads(line.removeprefix("data: "))
        assert change["ref"] == "claude-code:5e551011-0000-4000-8000-0000000000dd"
        assert change["is_new"]


def test_a_page_learns_of_changes_before_it_was_connected(home: Path) -> None:
    with serve(home) as server:
        page = server.wait_for("the first ferry")
        Transcript(seed=2).user("the second ferry").assistant("answer").write(home.parent / "claude")
        server.wait_for("the second ferry")
        assert _first_event(server, _revision(page)) == "event: sync"
        current = time.monotonic() + TIMEOUT_SECONDS
        while (
            first := _first_event(server, _revision(server.wait_for("the second ferry")))
        ) != ": connected":
            assert time.monotonic() < current, first  # the change is published after it was stored


def _revision(page: str) -> str:
    return page.partition('data-revision="')[2].partition('"')[0]


def _first_event(server: Server, since: str) -> str:
    url = f"{server.address}/events?since={since}"
    with httpx2.stream("GET", url, timeout=TIMEOUT_SECONDS) as response:
        return next(response.iter_lines())


_FIRST_PAGE = """
import sys
from pathlib import Path
from starlette.testclient import TestClient
from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.web import app

folder = Path(sys.argv[1])
open_history = lambda: History(roots=[NamedRoot("claude-code", folder / "claude")], home=folder / "home")
with open_history() as history:
    history.sync()
    app.load_modules(history)
web = app.create_app(open_history, "", auto_sync=False)
with TestClient(web, base_url="http://127.0.0.1:7433") as client:
    client.get("/sessions")
    before = set(sys.modules)
    assert client.get("/sessions/1").status_code == 200
    print(*(name for name in set(sys.modules) - before if name.startswith("backscroll")))
"""


def test_the_first_page_of_a_session_waits_for_no_module(tmp_path: Path) -> None:
    session = Transcript(seed=3, cwd="/home/zoe/ferry").user("When?")
    session.run(tool_calls.bash("ls", "board.py")).assistant("`Now`.").write(tmp_path / "claude")
    command = [sys.executable, "-c", _FIRST_PAGE, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    # Except for what its source needs: which one that is, is not known before.
    of_sources = ("backscroll.sources.", "backscroll.readers.")
    assert [name for name in run.stdout.split() if not name.startswith(of_sources)] == []


def niceness_of_sync(home: Path) -> int:
    """Sync in another process. Return its nice value."""
    code = (
        "import os, sys; from backscroll.cli import main; sys.argv[0] = 'backscroll'\n"
        "try: main()\n"
        "finally: print(os.nice(0))"
    )
    command = [sys.executable, "-c", code, *arguments(home)[1:5], "sync"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_SECONDS)
    return int(done.stdout.split()[-1])


@pytest.mark.skipif(os.name != "posix", reason="needs nice values")
def test_a_sync_of_a_served_archive_lets_the_server_go_first(home: Path) -> None:
    before = niceness_of_sync(home)
    with serve(home, "--no-sync"):
        assert niceness_of_sync(home) == min(before + 10, 19)
        assert (home / "web.json").exists()
    assert niceness_of_sync(home) == before


@pytest.mark.skipif(os.name != "posix", reason="needs nice values")
def test_the_record_of_a_killed_server_does_not_lower_the_priority_of_a_sync(home: Path) -> None:
    before = niceness_of_sync(home)
    process = subprocess.Popen(arguments(home, "--no-sync"), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.communicate()
    record = json.loads((home / "web.json").read_text())
    (home / "web.json").write_text(json.dumps({**record, "pid": os.getpid()}))  # in use again
    assert niceness_of_sync(home) == before
    assert not (home / "web.json").exists()


def test_a_server_starts_if_the_lock_was_only_held_to_remove_a_stale_record(home: Path) -> None:
    history = History(home=home)
    other_process = ExitStack()
    other_process.enter_context(ServerClaim(history)).publish("http://127.0.0.1:1", "token")
    with ServerClaim(history) as claim:
        assert not claim.is_held
        assert claim.running_server() is not None
        other_process.close()
        assert claim.running_server() is None
        assert claim.is_held
        claim.publish("http://127.0.0.1:2", "token")
        assert is_served(history.archive_path)
    assert not is_served(history.archive_path)
