"""A process that has imported the program, and forks a process for each command that tests run.

Most of the time of a short command is spent on starting the interpreter and on imports. A forked process has
its own descriptors, environment, signals and exit code, as the installed command has.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Any

MAX_REQUEST_BYTES = 1 << 20
_INSTALLED_COMMAND = "import sys; from backscroll.cli import main; sys.exit(main())"
# These take long to import, and few commands need them.
_NOT_PRELOADED = ("backscroll.mcp", "backscroll.web", "backscroll.tui", "backscroll.testing")


def _serve(requests: socket.socket) -> dict[str, Any]:
    """Fork a process for each request. Return the request in these processes only."""
    _preload()
    gc.collect()
    gc.freeze()
    wake_up, waker = socket.socketpair()
    for end in (wake_up, waker):
        end.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([requests, wake_up], [], [])
        if wake_up in ready:
            wake_up.recv(4096)
            _report_ended(running)
        if requests not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 4)
        if not data:
            os._exit(0)
        status = descriptors[3]
        if pid := os.fork():
            running[pid] = status
            os.write(status, str(pid).encode())
            for descriptor in descriptors[:3]:
                os.close(descriptor)
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for end in (requests, wake_up, waker):
            end.close()
        for other_status in running.values():
            os.close(other_status)
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        for descriptor in descriptors:
            os.close(descriptor)
        request: dict[str, Any] = json.loads(data)
        return request


def _preload() -> None:
    """Import the program."""
    import backscroll

    for module in pkgutil.walk_packages(backscroll.__path__, "backscroll."):
        if not module.name.startswith(_NOT_PRELOADED):
            importlib.import_module(module.name)


def _report_ended(running: dict[int, int]) -> None:
    """Send the exit codes of processes that have ended."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        descriptor = running.pop(pid)
        with suppress(BrokenPipeError):  # the test did not wait for it
            os.write(descriptor, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(descriptor)


def _run(request: dict[str, Any]) -> int:
    """Run a command as the interpreter does. Return its exit code."""
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())  # type: ignore[union-attr]
    program, *arguments = request["command"]
    code = _INSTALLED_COMMAND
    if program == sys.executable:
        option, code, *arguments = arguments
        assert option == "-c"
        program = option
    sys.argv = [program, *arguments]
    if request["is_session_leader"]:
        os.setsid()
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    try:
        os.chdir(request["folder"])
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        sys.stderr.write(f"{stop.code}\n")
        return 1
    except BaseException:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _exit(code: int) -> None:
    """End the process as the interpreter does, except that it does not free all objects one by one."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = 120
    os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as server:
        requested = _serve(server)
    _exit(_run(requested))
