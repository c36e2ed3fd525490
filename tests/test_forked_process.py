"""A forked command behaves as one in a new interpreter."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked_process import COMMAND, ForkedProcess, run_forked

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

REPORT = """
import locale, os, signal, sys, time
print(sys.argv, os.getcwd(), sorted(os.environ.items()), time.tzname)
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream.fileno(), stream.encoding, stream.errors, stream.line_buffering, stream.isatty())
signals = (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)
print([(name, signal.getsignal(name)) for name in signals])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), sorted(os.listdir("/proc/self/fd"))[:3])
print(os.getpgrp(), __name__, locale.getpreferredencoding(), file=sys.stderr)
"""


def run_interpreter(command: list[str], environ: dict[str, str], folder: Path) -> tuple[int, str, str]:
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-c", REPORT, "an argument", "ümlaut"],
        [sys.executable, "-c", "import sys; sys.exit('a message')"],
        [sys.executable, "-c", "import sys; sys.exit(7)"],
        [sys.executable, "-c", "import sys; sys.stdout.write('no line break')"],
        [sys.executable, "-c", "import atexit; atexit.register(print, 'at exit')"],
        [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"],
        [sys.executable, "-c", "import threading; threading.Timer(0.1, print, ['from a thread']).start()"],
        [str(COMMAND), "--version"],
        [str(COMMAND), "--help"],
        [str(COMMAND), "lisst"],
        [str(COMMAND), "list", "--no-such-option"],
    ],
)
def test_a_forked_process_behaves_as_a_new_one(command: list[str], tmp_path: Path) -> None:
    environ = {**os.environ, "TZ": "Asia/Tokyo", "A_VARIABLE": "of this test"}
    forked = run_forked(command, env=environ, cwd=tmp_path)
    assert (forked.returncode, forked.stdout, forked.stderr) == run_interpreter(command, environ, tmp_path)


def test_an_error_is_printed_with_its_name() -> None:
    done = run_forked([sys.executable, "-c", "raise LookupError('not there')"])
    assert done.returncode == 1
    assert done.stderr.endswith("LookupError: not there\n")


def test_a_signal_reaches_the_process() -> None:
    code = "import time; print('started', flush=True); time.sleep(60)"
    process = ForkedProcess([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    assert process.poll() is None
    process.terminate()
    assert process.wait(timeout=60) == -signal.SIGTERM
    process.stdout.close()


def test_a_process_that_takes_too_long_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_forked([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)
