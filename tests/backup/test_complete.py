"""A backup says what is missing, and linked folders of projects are part of the history."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from backscroll.backup import snapshot
from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from tests.backup.histories import STORE, file_contents, make_history, write_sources
from tests.cli.run_command import backscroll

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs links")

HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("begin exclusive")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def exclusive_lock(database: Path) -> Iterator[None]:
    """Hold a lock that no other process can read through, as a program with a rollback journal does."""
    with closing(sqlite3.connect(database)) as db:
        db.execute("pragma journal_mode = delete")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.communicate()


def missing(history: History, target: Path) -> dict[str, str]:
    skipped = history.create_backup(target).manifest.skipped
    return {one.path: one.reason for one in skipped}


# Databases


def test_a_locked_database_is_missing_after_the_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sources(tmp_path)
    monkeypatch.setattr(snapshot, "NEXT_BUSY_TIMEOUT_SECONDS", 0.1)
    take = snapshot.take_snapshot
    timeouts: list[float] = []

    def take_soon(*arguments: object) -> Path:
        timeouts.append(arguments[-1])  # type: ignore[arg-type]
        return take(*arguments[:-1], 0.5)  # type: ignore[arg-type, call-arg]

    monkeypatch.setattr(snapshot, "take_snapshot", take_soon)
    with make_history(tmp_path) as history, exclusive_lock(tmp_path / STORE):
        started = time.monotonic()
        found = missing(history, tmp_path / "b.zip")
        assert time.monotonic() - started < 5
    assert list(found) == [str(tmp_path / STORE)]
    assert found[str(tmp_path / STORE)].startswith("is locked: another program holds it")
    assert timeouts[0] == snapshot.BUSY_TIMEOUT_SECONDS == 10
    assert set(timeouts[2:]) <= {0.1}


@pytest.mark.parametrize("content", [b"not a database" * 100, b""])
def test_the_exit_code_is_3_if_something_is_not_included(tmp_path: Path, content: bytes) -> None:
    write_sources(tmp_path)
    run = ("--home", tmp_path / "home", "--root", f"cursor={tmp_path / 'cursor'}", "backup", "create", "-o")
    complete = backscroll(*run, tmp_path / "complete.zip")
    assert (complete.code, "not included" in complete.out) == (0, False), complete.err
    (tmp_path / STORE).write_bytes(content)
    for options in ((), ("--json",)):
        path = tmp_path / f"incomplete{len(options)}.zip"
        result = backscroll(*run, path, *options)
        assert result.code == 3, result.err
        assert str(tmp_path / STORE) in (result.err if options else result.out)
        listed = backscroll("backup", "list", tmp_path).out.splitlines()
        assert [line.endswith("  incomplete") for line in listed if str(path) in line] == [True]


# Links


def write_projects(root: Path) -> list[str]:
    """Write three sessions in three projects, and return their ids."""
    folders = [("/home/zoe/ferry", 1), ("/home/zoe/harbor", 2), ("/home/zoe/lighthouse", 3)]
    return [
        Transcript(seed=seed, cwd=cwd).user(f"work on {cwd}").assistant("Done.").write(root).stem
        for cwd, seed in folders
    ]


def open_history(root: Path, *other_roots: Path, home: str = "home") -> History:
    roots = [NamedRoot("claude-code", path) for path in (root, *other_roots)]
    return History(roots=roots, home=root.parent / home)


def link_project(root: Path, name: str) -> Path:
    """Move the folder of a project to another disk and leave a link."""
    folder = root / "projects" / name
    disk = root.parent / "disk"
    disk.mkdir(exist_ok=True)
    folder.rename(disk / name)
    folder.symlink_to(disk / name)
    return disk / name


def test_a_linked_project_stays_in_the_archive_and_in_a_backup(tmp_path: Path) -> None:
    root = tmp_path / ".claude"
    ids = write_projects(root)
    with open_history(root) as history:
        history.sync()
        before = [session.message_count for session in history.all_sessions()]
        target = link_project(root, "-home-zoe-ferry")
        history.sync()
        sessions = history.all_sessions()
        assert {session.id for session in sessions} == set(ids)
        assert [session.message_count for session in sessions] == before
        assert not any(session.is_gone for session in sessions)
        Transcript(seed=4, cwd="/home/zoe/ferry").user("one more").write(tmp_path / "new")
        (new,) = (tmp_path / "new").rglob("*.jsonl")
        new.rename(target / new.name)
        history.sync()
        assert len(history.all_sessions()) == 4
        result = history.create_backup(tmp_path / "b.zip")
    names = {file.path for file in result.manifest.files}
    assert {f"projects/-home-zoe-ferry/{id_}.jsonl" for id_ in (ids[0], new.stem)} <= names
    assert result.manifest.skipped == ()


def test_a_linked_project_is_restored_through_its_link_or_as_a_folder(tmp_path: Path) -> None:
    root = tmp_path / ".claude"
    write_projects(root)
    target = link_project(root, "-home-zoe-ferry")
    with open_history(root) as history:
        history.sync()
        history.create_backup(tmp_path / "b.zip")
        before = file_contents(root), file_contents(target)
        for path in target.iterdir():
            path.unlink()
        assert history.restore_backup(tmp_path / "b.zip").files_restored == 1
        assert (file_contents(root), file_contents(target)) == before
        shutil.rmtree(root)
        history.restore_backup(tmp_path / "b.zip")
        assert not (root / "projects" / "-home-zoe-ferry").is_symlink()
        names = before[0].keys() | {f"projects/-home-zoe-ferry/{name}" for name in before[1]}
        assert file_contents(root).keys() == names


def test_an_unmounted_disk_is_a_problem_and_deletes_no_session(tmp_path: Path) -> None:
    root = tmp_path / ".claude"
    write_projects(root)
    link_project(root, "-home-zoe-ferry")
    with open_history(root) as history:
        history.sync()
        (tmp_path / "disk").rename(tmp_path / "unmounted")
        report = history.sync()
        assert report is not None and report.problems == 1
        assert not any(session.is_gone for session in history.all_sessions())
        link = root / "projects" / "-home-zoe-ferry"
        found = missing(history, tmp_path / "b.zip")
        assert found == {str(link): "it is a link to something that does not exist"}
        (tmp_path / "unmounted").rename(tmp_path / "disk")
        report = history.sync()
        assert report is not None and report.problems == 0
        assert missing(history, tmp_path / "c.zip") == {}


def test_a_session_that_two_paths_lead_to_is_read_and_backed_up_once(tmp_path: Path) -> None:
    root, work = tmp_path / ".claude", tmp_path / ".claude-work"
    _, harbor, _ = write_projects(root)
    Transcript(seed=9, cwd="/srv/work").user("work").assistant("Done.").write(work)
    with open_history(root, work, home="plain") as plain:
        plain.sync()
        expected = [(one.id, one.message_count, one.total_tokens) for one in plain.all_sessions()]
    projects = root / "projects"
    link_project(root, "-home-zoe-ferry")
    (projects / "-a-alias").symlink_to("-home-zoe-harbor")  # of a folder
    (projects / "-b-alias").symlink_to("-home-zoe-ferry")  # of a link
    (projects / "-c-other-root").symlink_to(work / "projects" / "-srv-work")
    with open_history(root, work) as history:
        history.sync()
        found = [(one.id, one.message_count, one.total_tokens) for one in history.all_sessions()]
        assert found == expected
        result = history.create_backup(tmp_path / "b.zip")
        (tmp_path / "moved").mkdir()
        assert history.migrate_session(harbor, tmp_path / "moved").errors == ()
    names = [file.path.rpartition("/")[2] for file in result.manifest.files if file.kind == "file"]
    assert sorted(names) == sorted(f"{id_}.jsonl" for id_, _, _ in expected)
    assert result.manifest.skipped == ()


def test_links_that_lead_back_end(tmp_path: Path) -> None:
    root = tmp_path / ".claude"
    ids = write_projects(root)
    (root / "settings.json").write_text('{"env": {"TOKEN": "s3cret"}}')
    projects = root / "projects"
    for name, target in (
        ("-self", "-self"),
        ("-up", ".."),
        ("-here", "."),
        ("-all", "/"),
        ("-home", "../.."),
    ):
        (projects / name).symlink_to(target)
    (projects / "-home-zoe-ferry" / ids[0]).mkdir()
    (projects / "-home-zoe-ferry" / ids[0] / "subagents").symlink_to(projects)
    with open_history(root) as history:
        history.sync()
        assert {session.id for session in history.all_sessions()} == set(ids)
        result = history.create_backup(tmp_path / "b.zip")
    assert len([file for file in result.manifest.files if file.kind == "file"]) == 3
    found = {Path(one.path).name: one.reason for one in result.manifest.skipped}
    reason = "it is a link to a folder, which is not followed"
    assert found == {
        "-self": "it is a link to something that does not exist",
        "-up": reason,
        "-all": reason,
        "-home": reason,
    }


def test_a_linked_folder_that_is_not_followed_is_missing(tmp_path: Path) -> None:
    write_sources(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "plan.md").write_text("a plan")
    storages = tmp_path / "cursor" / "User" / "workspaceStorage"
    (tmp_path / "claude-code" / "file-history").mkdir()
    links = [
        tmp_path / "claude-code" / "file-history" / "linked",
        tmp_path / "cursor-cli" / "plans" / "linked",
        storages / "linked",
    ]
    (tmp_path / "cursor-cli" / "plans").mkdir(exist_ok=True)
    for link in links:
        link.symlink_to(outside)
    with make_history(tmp_path) as history:
        found = missing(history, tmp_path / "b.zip")
    assert found.keys() == {str(link) for link in links}
