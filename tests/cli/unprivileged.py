"""Run the command so that file permissions apply, even to root."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.run_command import COMMAND, Result
from tests.forked_process import run_forked

# Permissions do not apply to root, unless it gives up its capabilities.
WITHOUT_CAPABILITIES = ("setpriv", "--inh-caps=-all", "--bounding-set=-all", "--")


def run_unprivileged(*arguments: str | Path) -> Result:
    """Run the command. Skip the test if permissions cannot be made to apply."""
    return Result(run_forked([COMMAND, *arguments], prefix=_prefix()))


def _prefix() -> tuple[str, ...]:
    if os.name != "posix":
        pytest.skip("needs permissions of POSIX")
    if os.geteuid() != 0:
        return ()
    if (
        shutil.which("setpriv") is None
        or subprocess.run([*WITHOUT_CAPABILITIES, "true"], check=False).returncode
    ):
        pytest.skip("root may do everything, and setpriv is missing or not allowed")
    return WITHOUT_CAPABILITIES
