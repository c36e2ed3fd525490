"""Run of the benchmarks without a network, in a Linux network namespace that has only the loopback."""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

_OFFLINE_VARIABLE = "BACKSCROLL_BENCH_OFFLINE"
_UNSHARE_COMMANDS = (("unshare", "--net"), ("unshare", "--user", "--map-root-user", "--net"))
_SIOCSIFFLAGS = 0x8914
_IFF_UP_AND_RUNNING = 0x41


def is_offline() -> bool:
    """Return whether `run_offline` started this process. If so, enable the loopback interface."""
    if _OFFLINE_VARIABLE not in os.environ:
        return False
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP_AND_RUNNING))
    return True


def run_offline(arguments: list[str]) -> int | None:
    """Run the benchmarks without a network. Return the exit code, or None if the system forbids it."""
    for unshare in _UNSHARE_COMMANDS:
        if (
            shutil.which(unshare[0])
            and subprocess.run([*unshare, "true"], capture_output=True).returncode == 0
        ):
            command = [*unshare, sys.executable, "-m", "benchmarks", *arguments]
            return subprocess.run(command, env={**os.environ, _OFFLINE_VARIABLE: "1"}).returncode
    return None
