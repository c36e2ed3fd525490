"""Unchanged folders are skipped, and every change in a folder is detected."""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from backscroll.archive.archive import Archive
from backscroll.archive.connection import BUSY_TIMEOUT_SECONDS
from backscroll.archive.sync_state import folder_of
from backscroll.archive.write.exclusions import Exclusions
from backscroll.config import NamedRoot
from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.ingest.sync import read_changes
from backscroll.model.sync import SyncReport
from backscroll.sources import named, session_files
from backscroll.sources.claude_code import locations
from backscroll.sources.claude_code.locations import Folder
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_prompts
from tests.archive.synced_archive import SyncedArchive

ONE = "5e551011-0000-4000-8000-0000000000aa"
TWO = "5e551011-0000-4000-8000-0000000000bb"


@pytest.fixture
def synced(tmp_path: Path) -> SyncedArchive:
    """Return an archive with two sessions, one with a subagent, and their folder fingerprints."""
    Transcript(ONE, seed=1).user("first").assistant("yes").write(tmp_path / "claude")
    session = Transcript(TWO, seed=2).user("second")
    assert session.delegate("look for it", "found it") is not None
    session.assistant("yes").write(tmp_path / "claude")
    synced = SyncedArchive("claude-code", tmp_path / "claude", tmp_path)
    synced.sync()
    assert changes(synced.sync()) == {}
    return synced


def path_of(synced: SyncedArchive, id_: str) -> Path:
    (path,) = synced.root.glob(f"projects/*/{id_}.jsonl")
    return path


def changes(report: SyncReport) -> dict[str, int]:
    names = ("new", "grew", "rewritten", "vanished", "came_back")
    return {name: getattr(report, name) for name in names if getattr(report, name)}


def fingerprints(synced: SyncedArchive) -> dict[str, bytes | None]:
    return synced.archive.fingerprints.folders("claude-code", synced.root)


def test_units_of_unchanged_folders_are_not_listed(
    synced: SyncedArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = synced.sync().units

    def fail(folder: Folder) -> None:
        raise AssertionError(f"the units of {folder.path} were listed")

    monkeypatch.setattr(Folder, "units", fail)
    assert synced.sync().units == expected == 3


def test_a_file_that_grew_is_read_and_its_folder_gets_a_new_fingerprint(synced: SyncedArchive) -> None:
    with path_of(synced, ONE).open("a") as file:
        file.write("{}\n")
    assert changes(synced.sync()) == {"grew": 1}
    assert None in fingerprints(synced).values()
    assert changes(synced.sync()) == {}
    assert None not in fingerprints(synced).values()


def test_a_file_replaced_by_one_of_the_same_size_and_time_is_detected(synced: SyncedArchive) -> None:
    path = path_of(synced, ONE)
    before = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b"first", b"third"))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    assert changes(synced.sync()) == {"rewritten": 1}
    assert "third" in [message.content for message in synced.messages(ONE)]


def test_a_deleted_file_that_is_restored_has_come_back(synced: SyncedArchive, tmp_path: Path) -> None:
    path = path_of(synced, ONE)
    path.rename(tmp_path / "away")
    assert changes(synced.sync()) == {"vanished": 1}
    (tmp_path / "away").rename(path)
    assert changes(synced.sync()) == {"came_back": 1}


def test_a_file_restored_to_an_earlier_state_is_detected(synced: SyncedArchive) -> None:
    path = path_of(synced, ONE)
    before, text = path.stat(), path.read_bytes()
    path.write_bytes(text + b"{}\n")
    assert changes(synced.sync()) == {"grew": 1}
    path.write_bytes(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert changes(synced.sync()) == {"rewritten": 1}


def test_a_renamed_file_has_vanished_and_is_new(synced: SyncedArchive) -> None:
    path = path_of(synced, ONE)
    path.rename(path.with_name("5e551011-0000-4000-8000-0000000000cc.jsonl"))
    assert changes(synced.sync()) == {"new": 1, "vanished": 1}


def test_the_fingerprint_of_a_deleted_folder_is_removed(synced: SyncedArchive) -> None:
    shutil.rmtree(path_of(synced, TWO).with_suffix(""))
    assert changes(synced.sync()) == {"vanished": 1}
    assert changes(synced.sync()) == {}
    assert [path for path in fingerprints(synced) if "subagents" in path] == []


def test_deleting_a_folder_without_fingerprint_is_detected(tmp_path: Path) -> None:
    Transcript(ONE, seed=1).user("first").write(tmp_path / "claude")
    synced = SyncedArchive("claude-code", tmp_path / "claude", tmp_path)
    synced.sync()
    shutil.rmtree(path_of(synced, ONE).parent)
    assert changes(synced.sync()) == {"vanished": 1}


def test_new_subagent_files_and_their_sidecar_files_are_detected(synced: SyncedArchive) -> None:
    session = Transcript(ONE, seed=1).user("first").assistant("yes")
    assert session.delegate("look for it", "found it") is not None
    before = path_of(synced, ONE).read_bytes()
    path = session.write(synced.root)
    path.write_bytes(before)
    report = synced.sync()
    assert report.new == 1
    synced.sync()
    (agent,) = path.with_suffix("").glob("subagents/agent-*.jsonl")
    sidecar = agent.with_suffix(".meta.json")
    sidecar.unlink(missing_ok=True)
    synced.sync()
    assert changes(synced.sync()) == {}
    sidecar.write_text('{"agentType": "explore"}')
    assert sum(changes(synced.sync()).values()) == 1


def test_the_prompt_log_is_detected_when_it_appears_grows_and_disappears(synced: SyncedArchive) -> None:
    path = write_prompts(synced.root, [])
    assert changes(synced.sync()) == {"new": 1}
    assert changes(synced.sync()) == {}
    with path.open("a") as file:
        file.write("{}\n")
    assert sum(changes(synced.sync()).values()) == 1
    synced.sync()
    path.unlink()
    assert changes(synced.sync()) == {"vanished": 1}


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the root user can read any file")
def test_an_unreadable_file_is_retried_although_it_is_unchanged(synced: SyncedArchive) -> None:
    path = path_of(synced, ONE)
    path.write_bytes(path.read_bytes() + b"{}\n")
    path.chmod(0)
    assert synced.sync().problems == 1
    path.chmod(0o600)
    assert sum(changes(synced.sync()).values()) == 1


def test_a_unit_that_needs_a_retry_is_read_although_its_folder_is_unchanged(synced: SyncedArchive) -> None:
    with sqlite3.connect(synced.archive.path) as db:
        db.execute("update unit set needs_retry = 1 where path = ?", [str(path_of(synced, ONE))])
    assert sum(changes(synced.sync()).values()) == 1


def test_changed_exclusions_invalidate_every_folder(synced: SyncedArchive, tmp_path: Path) -> None:
    cwd = synced.summaries()[0].workspace_path
    assert cwd is not None
    Transcript(seed=3, cwd=cwd).user("third").write(synced.root)
    synced.archive.close()

    def sync_excluding(*patterns: str) -> dict[str, int]:
        archive = Archive(tmp_path / "archive.db", exclusions=Exclusions(patterns=patterns))
        try:
            return changes(read_changes(archive, [(named("claude-code"), synced.root)]))
        finally:
            archive.close()

    assert sync_excluding(cwd) == {"new": 1}  # read but not stored
    assert sync_excluding(cwd) == sync_excluding(cwd) == {}
    assert sum(sync_excluding().values()) == 1
    assert sync_excluding() == {}


def test_a_fingerprint_does_not_contain_the_name_of_a_forgotten_session(synced: SyncedArchive) -> None:
    (summary,) = synced.archive.sessions.find(ONE)
    synced.archive.maintenance.forget(summary)
    for _ in range(3):
        assert changes(synced.sync()) == {}
        assert not any(ONE.encode() in (fingerprint or b"") for fingerprint in fingerprints(synced).values())
    (summary,) = synced.archive.sessions.find(TWO)
    synced.archive.maintenance.forget(summary)
    for _ in range(2):
        assert fingerprints(synced) == {}
        synced.sync()


@pytest.mark.parametrize("unreadable", ["projects", "project", "subagents"])
def test_files_in_a_folder_that_cannot_be_listed_have_not_vanished(
    synced: SyncedArchive, monkeypatch: pytest.MonkeyPatch, unreadable: str
) -> None:
    agent = next(synced.root.rglob("agent-*.jsonl"))
    paths = {"projects": synced.root / "projects", "project": path_of(synced, ONE).parent}
    folder = str(paths.get(unreadable, agent.parent))

    def deny_access(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: str | int, *flags: int) -> Any:
            if path == folder:
                raise PermissionError(13, "Permission denied", path)
            return function(path, *flags)

        return call

    with monkeypatch.context() as patch:
        patched = [(session_files, "_open"), (session_files, "_scandir"), (locations, "_scandir")]
        for module, name in (*patched, (os, "scandir")):
            patch.setattr(module, name, deny_access(getattr(module, name)))
        for _ in range(2):
            report = synced.sync()
            assert (report.vanished, report.problems) == (0, 1)
        changed_paths = {str(agent), folder}
        assert (
            read_changes(synced.archive, [(named("claude-code"), synced.root)], paths=changed_paths).vanished
            == 0
        )
        assert not any(summary.is_gone for summary in synced.summaries())
    report = synced.sync()
    assert (report.changed, report.problems) == (0, 0)
    assert changes(synced.sync()) == {}


def test_a_file_name_that_is_not_utf8_is_a_problem_and_does_not_stop_the_sync(synced: SyncedArchive) -> None:
    path = path_of(synced, ONE)
    lines = path.read_bytes()
    folder = os.fsencode(path.parent.parent) + b"/-home-caf\xe9"
    try:
        os.mkdir(folder)  # noqa: PTH102 - Path does not accept bytes
    except OSError:
        pytest.skip("this system allows only UTF-8 names")
    unreadable = [folder + b"/%b.jsonl" % TWO.encode(), os.fsencode(path.parent) + b"/caf\xe9.jsonl"]
    for name in unreadable:
        with open(name, "wb") as file:  # noqa: PTH123 - as above
            file.write(lines)
    report = synced.sync()
    assert (report.new, report.problems) == (2, 2)
    assert changes(synced.sync()) == {}
    other = "-home-caf/5e551011-0000-4000-8000-0000000000cc.jsonl"
    os.rename(folder, path.parent.parent / "-home-caf")  # noqa: PTH104 - as above
    (path.parent.parent / "-home-caf" / f"{TWO}.jsonl").rename(path.parent.parent / other)
    report = synced.sync()
    assert (report.new, report.vanished, report.problems) == (1, 1, 0)


def test_a_root_name_that_is_not_utf8_is_rejected(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"caf\xe9")
    with (
        History(roots=[NamedRoot("claude-code", root)], home=tmp_path) as history,
        pytest.raises(UsageError, match="name that is not UTF-8"),
    ):
        history.sync()


def test_a_folder_name_with_a_line_break_is_supported(synced: SyncedArchive) -> None:
    path = path_of(synced, ONE)
    folder = path.parent.with_name("-home\nzoe")
    path.parent.rename(folder)
    assert changes(synced.sync()) == {"new": 3, "vanished": 3}
    folder.rename(path.parent)
    assert changes(synced.sync()) == {"came_back": 3, "vanished": 3}


def test_fingerprints_that_cannot_be_stored_now_are_stored_later(tmp_path: Path) -> None:
    Transcript(ONE, seed=1).user("first").write(tmp_path / "claude")
    synced = SyncedArchive("claude-code", tmp_path / "claude", tmp_path)
    synced.sync()
    other = sqlite3.connect(synced.archive.path, isolation_level=None)
    other.execute("begin immediate")
    start = time.monotonic()
    assert changes(synced.sync()) == {}
    assert time.monotonic() - start < BUSY_TIMEOUT_SECONDS / 2
    assert None in fingerprints(synced).values()
    other.execute("rollback")
    other.close()
    synced.sync()
    assert None not in fingerprints(synced).values()


@pytest.mark.parametrize(
    "path", ["/a/b.jsonl", "/a\\b/c\\d.jsonl", "a/b/ä.jsonl", "/b.jsonl", "/ü/☃/☃.jsonl", "/a b//c.jsonl"]
)
def test_sql_and_python_return_the_same_folder_of_a_path(synced: SyncedArchive, path: str) -> None:
    with sqlite3.connect(synced.archive.path) as db:
        db.execute(
            "insert into unit (source, platform, root, path, key, kind, fingerprint, size)"
            " values ('s', 'p', 'r', ?, '', 'session', '', 0)",
            [path],
        )
    assert list(synced.archive.fingerprints.folders("s", Path("r"))) == [folder_of(path)]


def test_the_folder_of_a_windows_path_is_found(synced: SyncedArchive) -> None:
    with sqlite3.connect(synced.archive.path) as db:
        db.execute(
            "insert into unit (source, platform, root, path, key, kind, fingerprint, size)"
            " values ('s', 'p', 'r', ?, '', 'session', '', 0)",
            ["C:\\Users\\zoe\\one.jsonl"],
        )
    assert list(synced.archive.fingerprints.folders("s", Path("r"))) == ["C:\\Users\\zoe\\"]


def test_the_hash_without_exclusions_is_the_hash_of_no_patterns() -> None:
    assert Exclusions().patterns_hash == blake2b(b"", digest_size=8).digest()
