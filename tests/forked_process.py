"""Processes that run the command or Python code without starting an interpreter. See `tests.fork_server`."""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from subprocess import DEVNULL, PIPE, STDOUT
from time import monotonic
from typing import IO

from tests import fork_server

COMMAND = Path(sys.executable).with_name("backscroll")
_TIMEOUT_SECONDS = 60.0
# Variables that are read when a process starts, not later.
_START_VARIABLES = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_")


class ForkedProcess:
    """A process with the methods of a `subprocess.Popen` that tests need."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        start_new_session: bool = False,
        prefix: Sequence[str] = (),
    ) -> None:
        """Run the installed command, or the interpreter with ``-c`` and code.

        ``prefix`` is a command that runs another one with other permissions.
        """
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        self.returncode: int | None = None
        environ = dict(os.environ if env is None else env)
        request = json.dumps(
            {
                "command": list(map(str, command)),
                "environ": environ,
                "folder": str(cwd or Path.cwd()),
                "is_session_leader": start_new_session,
            }
        ).encode()
        assert len(request) < fork_server.MAX_REQUEST_BYTES
        opened: list[int] = []
        try:
            streams = [self._open(0, stdin, opened), self._open(1, stdout, opened)]
            streams.append(streams[1] if stderr == STDOUT else self._open(2, stderr, opened))
            self._status, status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with status:
                server = _server(_start_variables(environ), tuple(prefix))
                socket.send_fds(server, [request], [*streams, status.fileno()])
        finally:
            for descriptor in opened:
                os.close(descriptor)
        self.pid = int(self._receive(_TIMEOUT_SECONDS))

    def _open(self, number: int, stream: int | None, opened: list[int]) -> int:
        """Return the descriptor of a stream in the new process. Add it to ``opened`` if it is new."""
        if stream == DEVNULL:
            opened.append(os.open(os.devnull, os.O_RDWR))
        elif stream == PIPE:
            reader, writer = os.pipe()
            opened.append(writer if number else reader)
            if number == 0:
                self.stdin = os.fdopen(writer, "w", encoding="utf-8")
            elif number == 1:
                self.stdout = os.fdopen(reader, encoding="utf-8")
            else:
                self.stderr = os.fdopen(reader, encoding="utf-8")
        else:
            return number if stream is None else stream
        return opened[-1]

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, or the negative number of the signal that ended the process."""
        if self.returncode is None:
            self.returncode = int(self._receive(timeout))
            self._status.close()
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit code if the process has ended."""
        is_ended = self.returncode is not None or select.select([self._status], [], [], 0)[0]
        return self.wait() if is_ended else None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = _TIMEOUT_SECONDS) -> tuple[str, str]:
        """Read the output until the process and all that share its streams have closed them."""
        pipes = [pipe for pipe in (self.stdout, self.stderr) if pipe is not None]
        read = dict.fromkeys(pipes, b"")
        deadline = monotonic() + timeout
        with DefaultSelector() as selector:
            for pipe in pipes:
                selector.register(pipe, EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(0.0, deadline - monotonic()))
                if not ready:
                    self.kill()
                    self.wait()
                    for pipe in pipes:
                        pipe.close()
                    raise subprocess.TimeoutExpired([COMMAND], timeout)
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    read[key.fileobj] += data  # type: ignore[index]
                    if not data:
                        selector.unregister(key.fileobj)
        for pipe in pipes:
            pipe.close()
        self.wait(timeout)
        out, err = (
            read.get(pipe, b"").decode().replace("\r\n", "\n") if pipe is not None else ""
            for pipe in (self.stdout, self.stderr)
        )
        return out, err

    def _receive(self, timeout: float | None) -> bytes:
        self._status.settimeout(timeout)
        try:
            received = self._status.recv(100)
        except TimeoutError:
            raise subprocess.TimeoutExpired([COMMAND], timeout or 0) from None
        if not received:
            raise ConnectionError("The process that forks commands has ended.")
        return received


def run_forked(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stderr: int = PIPE,
    prefix: Sequence[str] = (),
    timeout: float = _TIMEOUT_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run a command and return its output.

    A system that cannot fork, and a command with other modules, get a new interpreter.
    """
    environ = dict(os.environ if env is None else env)
    if not hasattr(os, "fork") or environ.get("PYTHONPATH") != os.environ.get("PYTHONPATH"):
        return subprocess.run(
            [*prefix, *command],
            env=environ,
            cwd=cwd,
            stdout=PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=timeout,
        )
    process = ForkedProcess(command, env=environ, cwd=cwd, stdout=PIPE, stderr=stderr, prefix=prefix)
    out, err = process.communicate(timeout)
    return subprocess.CompletedProcess([*command], process.wait(), out, err)


def _start_variables(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, environ[name]) for name in sorted(environ) if name.startswith(_START_VARIABLES))


@cache
def _server(variables: tuple[tuple[str, str], ...], prefix: tuple[str, ...]) -> socket.socket:
    """Start a server and return the socket for requests. The server ends when the socket is closed."""
    local, remote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        for end in (local, remote):
            end.setsockopt(socket.SOL_SOCKET, option, fork_server.MAX_REQUEST_BYTES)
    others = {name: value for name, value in os.environ.items() if not name.startswith(_START_VARIABLES)}
    with remote:
        process = subprocess.Popen(
            [*prefix, sys.executable, "-P", fork_server.__file__, str(remote.fileno())],
            env=others | dict(variables),
            stdin=DEVNULL,
            stdout=DEVNULL,
            pass_fds=[remote.fileno()],
        )

    def stop() -> None:
        local.close()
        process.wait()

    atexit.register(stop)
    return local
