"""Start a program whose model is behind a Unix socket.

    launcher.py SOCKET PROGRAM [ARGUMENT...]

Runs inside a network namespace that has only its own loopback interface, or without one where the system does
not permit it. A child process relays a port of 127.0.0.1 to the socket. The program replaces this process:
signals and exit codes are its own.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
import threading

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_PR_SET_PDEATHSIG = 1
_BUFFER_BYTES = 65_536


def _raise_loopback() -> None:
    """Bring the loopback interface up. It is down in a new namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(control, _SIOCGIFFLAGS, request))[1]
        if not flags & _IFF_UP:
            fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | _IFF_UP, b""))


def _copy(reader: socket.socket, writer: socket.socket) -> None:
    try:
        while data := reader.recv(_BUFFER_BYTES):
            writer.sendall(data)
        writer.shutdown(socket.SHUT_WR)
    except OSError:  # one side is gone
        for end in (reader, writer):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


def _relay(listener: socket.socket, path: str) -> None:
    while True:
        connection, _ = listener.accept()
        model = socket.socket(socket.AF_UNIX)
        model.connect(path)
        for ends in ((connection, model), (model, connection)):
            threading.Thread(target=_copy, args=ends, daemon=True).start()


def main() -> None:
    path, *command = sys.argv[1:]
    _raise_loopback()
    listener = socket.create_server(("127.0.0.1", 0))
    os.environ["ANTHROPIC_BASE_URL"] = f"http://127.0.0.1:{listener.getsockname()[1]}"
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # the pipes of the program end with the program
            os.dup2(null, stream)
        _relay(listener, path)
    listener.close()
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
