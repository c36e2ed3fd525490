"""A restore that is killed at any point leaves the old or the new state, and a second run finishes it."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from backscroll.changes.change_log import ChangeLog
from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing import cursor
from tests.backup.histories import STORE, database_rows, file_contents, make_history, write_sources
from tests.forked_process import run_forked

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")

KILL_COUNT = int(os.environ.get("KILLS", "5"))

# Runs a restore, counts its operations on files, and kills itself at one of them.
CODE = """
import os, signal, sys
from pathlib import Path
from backscroll.config import NamedRoot
from backscroll.history.history import History
home = Path(sys.argv[1])
roots = [NamedRoot(name, home.parent / name) for name in ("claude-code", "cursor", "cursor-cli")]
count, last = 0, int(sys.argv[3])
def hook(event, arguments):
    global count
    if event in ("open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "os.chmod"):
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
History(roots=roots, home=home).restore_backup(Path(sys.argv[2]), force=True, sessions=sys.argv[4:])
print(count)
"""


def restore(
    home: Path, backup: Path, last: int = 0, sessions: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    return run_forked([sys.executable, "-c", CODE, home, backup, str(last), *sessions])


def state(folder: Path) -> dict[str, bytes]:
    contents = {
        name: data
        for source in ("claude-code", "cursor", "cursor-cli")
        for name, data in file_contents(folder / source).items()
    }
    return {name: data for name, data in contents.items() if not name.endswith("-shm")}


def test_a_killed_restore_is_rolled_back_or_complete(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    write_sources(folder)
    with make_history(folder) as history:
        backup = Path(history.create_backup(tmp_path / "backup.zip").backup_path)
    shutil.rmtree(folder / "claude-code" / "projects")
    (folder / "claude-code" / "history.jsonl").write_text("newer\n")
    (folder / STORE).write_bytes((folder / STORE).read_bytes() + bytes(4096))
    shutil.rmtree(folder / "cursor-cli")
    (folder / "cursor-cli").mkdir()
    shutil.rmtree(folder / "home")
    before = state(folder)
    original = tmp_path / "original"
    shutil.copytree(folder, original)
    done = restore(folder / "home", backup)
    assert done.returncode == 0, done.stderr
    after, count = state(folder), int(done.stdout)
    assert after != before
    random_ = random.Random(3)
    for last in sorted(random_.sample(range(1, count + 1), min(KILL_COUNT, count))):
        shutil.rmtree(folder)
        shutil.copytree(original, folder)
        killed = restore(folder / "home", backup, last)
        assert killed.returncode in (-9, 0), (last, killed.stderr)  # the number of operations varies a bit
        ChangeLog(folder / "home" / "changes").recover()
        assert state(folder) in (before, after), last
        again = restore(folder / "home", backup)
        assert again.returncode == 0, (last, again.stderr)
        assert state(folder) == after, last
        leftover = [path.name for path in folder.rglob("*") if path.name.endswith(".part")]
        assert leftover == [], last


def rows(folder: Path) -> dict[str, object]:
    """Return what the tools' files contain. Inserted rows may leave a log beside the database."""
    contents: dict[str, object] = dict(file_contents(folder / "claude-code"))
    for path in (folder / "cursor").rglob("*.vscdb"):
        found = database_rows(path)
        items = [row[1:] for row in found["ItemTable"] if row[1] != b"composer.composerHeaders.version"]
        # Recency and keys are new in every restore.
        headers = [(row[1], row[2]) for row in found.get("composerHeaders", [])]
        contents[str(path)] = sorted([row[1] for row in found["cursorDiskKV"]] + items + headers, key=repr)
    return contents


def is_between(before: dict[str, object], now: dict[str, object], after: dict[str, object]) -> bool:
    """Return whether each file is old or new, and each database has some of the new rows and no others."""
    for path, found in now.items():
        old, new = before.get(path), after.get(path)
        if not isinstance(found, list):
            if found not in (old, new):
                return False
        elif not {*map(repr, found)} <= {repr(row) for rows in (old, new) for row in rows or ()}:  # type: ignore[attr-defined]
            return False
    return before.keys() <= now.keys() <= after.keys() | before.keys()


@pytest.mark.parametrize("is_filtered", [False, True])
def test_a_killed_restore_of_sessions_is_complete_for_each_session(tmp_path: Path, is_filtered: bool) -> None:
    folder = tmp_path / "work"
    write_sources(folder)
    ide = cursor.Home(folder / "cursor", seed=9)
    ide.composer([cursor.user("stay"), cursor.assistant("Yes.")], workspace=cursor.SHOP, name="Other")
    with make_history(folder) as history:
        chosen = [one.ref for one in history.all_sessions() if one.source != "cursor-cli"]
        refs = chosen if is_filtered else []
        backup = Path(history.create_backup(tmp_path / "backup.zip", sessions=refs).backup_path)
    for source in ("claude-code", "cursor", "home"):
        shutil.rmtree(folder / source)
    (folder / "claude-code").mkdir()
    (folder / "claude-code" / "history.jsonl").write_text("newer\n")
    ide.write()
    original = tmp_path / "original"
    shutil.copytree(folder, original)
    before = rows(folder)
    sessions = [] if is_filtered else chosen
    done = restore(folder / "home", backup, sessions=sessions)
    assert done.returncode == 0, done.stderr
    after, count = rows(folder), int(done.stdout)
    assert after != before
    for last in sorted(random.Random(5).sample(range(1, count + 1), min(KILL_COUNT // 2, count))):
        shutil.rmtree(folder)
        shutil.copytree(original, folder)
        killed = restore(folder / "home", backup, last, sessions)
        assert killed.returncode in (-9, 0), (last, killed.stderr)  # the number of operations varies a bit
        ChangeLog(folder / "home" / "changes").recover()
        assert is_between(before, rows(folder), after), last
        again = restore(folder / "home", backup, sessions=sessions)
        assert again.returncode == 0, (last, again.stderr)
        assert rows(folder) == after, last


def test_a_killed_backup_leaves_no_file_and_the_next_one_removes_its_folder(tmp_path: Path) -> None:
    write_sources(tmp_path)
    make_history(tmp_path).close()
    code = CODE.replace(
        "History(roots=roots, home=home).restore_backup(Path(sys.argv[2]), force=True,"
        " sessions=sys.argv[4:])",
        "History(roots=roots[:1], home=home).create_backup(Path(sys.argv[2]), force=True,"
        " create_folder=True)",
    )
    folder = tmp_path / "backups"
    arguments = [sys.executable, "-c", code, str(tmp_path / "home"), str(folder / "backup.zip")]
    done = run_forked([*arguments, "0"])
    assert done.returncode == 0, done.stderr
    count = int(done.stdout)
    for last in random.Random(4).sample(range(1, count), min(KILL_COUNT, count - 1)):
        shutil.rmtree(folder)
        run_forked([*arguments, str(last)])
        for path in folder.glob("*.zip") if folder.exists() else ():
            roots = [NamedRoot("claude-code", tmp_path / "claude-code")]
            assert History(roots=roots, home=tmp_path / "home").validate_backup(path).status == "valid"
        again = run_forked([*arguments, "0"])
        assert again.returncode == 0, again.stderr
        # A folder that was just created when the process was killed is empty, and stays.
        left = [path.name for path in folder.iterdir() if path.is_file() or any(path.iterdir())]
        assert left == ["backup.zip"], last
