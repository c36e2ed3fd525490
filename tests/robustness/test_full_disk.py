"""A full disk: a clear error, a valid archive, and a complete sync once there is space."""

import json
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.cli.run_command import COMMAND
from tests.robustness.archived_history import history_of, options, write
from tests.robustness.child_process import DRIVER


@cache
def can_mount() -> bool:
    """Return whether this user may mount a tmpfs in a namespace."""
    try:
        done = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "t", "/mnt"], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


@pytest.fixture(autouse=True)
def _may_mount() -> None:
    if not can_mount():
        pytest.skip("cannot mount a tmpfs here")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("history"))


@pytest.fixture(scope="module")
def listed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    with history_of(folder, tmp_path_factory.mktemp("undisturbed")) as history:
        history.sync()
        return {one.id for one in history.list_sessions(limit=1000).data}


class Disk:
    """A tmpfs of a given size, on which commands run one after another."""

    def __init__(self, folder: Path, results: Path) -> None:
        self.folder = folder
        self._results = results
        self._steps = [f"mkdir -p {folder}", f"mount -t tmpfs -o size=SIZE t {folder}"]
        self._count = 0

    def then(self, line: str) -> None:
        self._steps.append(line)

    def command(self, *words: str | Path) -> None:
        out = self._results / str(self._count)
        self._count += 1
        line = shlex.join(map(str, words))
        self._steps.append(f"{line} > {out}.out 2> {out}.err; echo $? > {out}.code")

    def run(self, size: str) -> list[tuple[int, str, str]]:
        """Return exit code, output and errors of each command."""
        script = "\n".join(self._steps).replace("SIZE", size)
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True)
        assert not done.stderr, done.stderr
        found = [self._results / str(number) for number in range(self._count)]
        return [
            (
                int(path.with_suffix(".code").read_text()),
                path.with_suffix(".out").read_text(),
                path.with_suffix(".err").read_text(),
            )
            for path in found
        ]


@pytest.mark.parametrize(
    "size",
    [
        "400k",
        "1200k",
        pytest.param("64k", marks=pytest.mark.soak),
        pytest.param("3000k", marks=pytest.mark.soak),
    ],
)
def test_a_full_disk_gives_an_error_and_the_next_sync_completes_the_archive(
    folder: Path, listed: set[str], tmp_path: Path, size: str
) -> None:
    disk = Disk(tmp_path / "disk", tmp_path)
    command = [COMMAND, "--home", disk.folder / "home", *options(folder)]
    disk.command(*command, "sync")
    disk.command(*command, "list")
    disk.command(*command, "search", "ferry")
    disk.then(f"mount -o remount,size=200m {disk.folder}")
    disk.command(*command, "sync")
    disk.command(*command, "archive", "verify")
    disk.command(*command, "list", "--limit", "1000", "--json")
    disk.command(*command, "search", "ferry", "--json")
    full, *reading, completed, verified, listing, found = disk.run(size)
    assert (full[0], full[1]) == (1, "")
    assert "Free some space" in full[2]
    for code, _, err in (full, *reading):
        assert code in (0, 1)
        assert "Free some space" in err
        assert "Traceback" not in err
        assert "panicked" not in err
    # 3: the truncated file was read now; 0: it was read before the disk was full.
    assert completed[0] in (0, 3)
    assert verified[:2] == (0, "The archive is intact.\n")
    assert {one["id"] for one in json.loads(listing[1])["data"]} == listed
    assert json.loads(found[1])["pagination"]["total"] >= 12


def test_a_full_temporary_folder_costs_only_time(folder: Path, listed: set[str], tmp_path: Path) -> None:
    disk = Disk(tmp_path / "disk", tmp_path)
    command = ["env", f"TMPDIR={disk.folder}", sys.executable, "-c", DRIVER, "--home", tmp_path / "home"]
    disk.command(*command, *options(folder), "sync")
    disk.command(*command, *options(folder), "list", "--limit", "1000", "--json")
    synced, listing = disk.run("64k")
    assert (synced[0], synced[2]) == (3, "")
    assert {one["id"] for one in json.loads(listing[1])["data"]} == listed
