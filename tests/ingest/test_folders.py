"""Folders that look as they did are passed over, and nothing that happens in one of them goes unnoticed."""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from backscroll.archive import Archive
from backscroll.archive.connection import BUSY_TIMEOUT_SECONDS
from backscroll.archive.write.exclusions import Exclusions
from backscroll.archive.write.fingerprints import folder_of
from backscroll.config import NamedRoot
from backscroll.errors import UsageError
from backscroll.history import History
from backscroll.ingest.sync import sync
from backscroll.model.sync_report import SyncReport
from backscroll.sources import named
from backscroll.sources.claude_code import folders
from backscroll.sources.claude_code.folders import Folder
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_prompts
from tests.archive.synced_archive import SyncedArchive

ONE = "5e551011-0000-4000-8000-0000000000aa"
TWO = "5e551011-0000-4000-8000-0000000000bb"


@pytest.fixture
def kept(tmp_path: Path) -> SyncedArchive:
    """Two sessions, one with a subagent, in an archive that knows how their folders look."""
    Transcript(ONE, seed=1).user("first").assistant("yes").write(tmp_path / "claude")
    session = Transcript(TWO, seed=2).user("second")
    assert session.delegate("look for it", "found it") is not None
    session.assistant("yes").write(tmp_path / "claude")
    kept = SyncedArchive("claude-code", tmp_path / "claude", tmp_path)
    kept.sync()
    assert happened(kept.sync()) == {}
    return kept


def path_of(kept: SyncedArchive, id_: str) -> Path:
    (path,) = kept.root.glob(f"projects/*/{id_}.jsonl")
    return path


def happened(report: SyncReport) -> dict[str, int]:
    names = ("new", "grew", "rewritten", "vanished", "came_back")
    return {name: getattr(report, name) for name in names if getattr(report, name)}


def looks(kept: SyncedArchive) -> dict[str, bytes | None]:
    return kept.archive.fingerprints.folders("claude-code", kept.root)


def test_of_folders_that_look_as_they_did_no_unit_is_made(
    kept: SyncedArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = kept.sync().units

    def fail(folder: Folder) -> None:
        raise AssertionError(f"the units of {folder.path} were asked for")

    monkeypatch.setattr(Folder, "units", fail)
    assert kept.sync().units == expected == 3


def test_a_file_that_grew_is_read_and_its_folder_settles_again(kept: SyncedArchive) -> None:
    with path_of(kept, ONE).open("a") as file:
        file.write("{}\n")
    assert happened(kept.sync()) == {"grew": 1}
    assert None in looks(kept).values()
    assert happened(kept.sync()) == {}
    assert None not in looks(kept).values()


def test_a_file_replaced_by_one_of_the_same_size_and_time_is_noticed(kept: SyncedArchive) -> None:
    path = path_of(kept, ONE)
    before = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b"first", b"third"))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    assert happened(kept.sync()) == {"rewritten": 1}
    assert "third" in [one.content for one in kept.messages(ONE)]


def test_a_file_that_vanished_and_is_put_back_has_come_back(kept: SyncedArchive, tmp_path: Path) -> None:
    path = path_of(kept, ONE)
    path.rename(tmp_path / "away")
    assert happened(kept.sync()) == {"vanished": 1}
    (tmp_path / "away").rename(path)
    assert happened(kept.sync()) == {"came_back": 1}


def test_a_file_that_is_set_back_to_the_state_before_the_last_is_noticed(kept: SyncedArchive) -> None:
    path = path_of(kept, ONE)
    before, text = path.stat(), path.read_bytes()
    path.write_bytes(text + b"{}\n")
    assert happened(kept.sync()) == {"grew": 1}
    path.write_bytes(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert happened(kept.sync()) == {"rewritten": 1}


def test_a_file_that_is_renamed_has_vanished_and_is_new(kept: SyncedArchive) -> None:
    path = path_of(kept, ONE)
    path.rename(path.with_name("5e551011-0000-4000-8000-0000000000cc.jsonl"))
    assert happened(kept.sync()) == {"new": 1, "vanished": 1}


def test_a_folder_that_vanishes_is_noticed_and_then_no_longer_asked_for(kept: SyncedArchive) -> None:
    shutil.rmtree(path_of(kept, TWO).with_suffix(""))
    assert happened(kept.sync()) == {"vanished": 1}
    assert happened(kept.sync()) == {}
    assert [path for path in looks(kept) if "subagents" in path] == []


def test_a_folder_that_vanishes_before_it_was_ever_settled_is_noticed(tmp_path: Path) -> None:
    Transcript(ONE, seed=1).user("first").write(tmp_path / "claude")
    kept = SyncedArchive("claude-code", tmp_path / "claude", tmp_path)
    kept.sync()
    shutil.rmtree(path_of(kept, ONE).parent)
    assert happened(kept.sync()) == {"vanished": 1}


def test_subagents_and_what_is_told_beside_them_are_noticed_when_they_appear(kept: SyncedArchive) -> None:
    session = Transcript(ONE, seed=1).user("first").assistant("yes")
    assert session.delegate("look for it", "found it") is not None
    before = path_of(kept, ONE).read_bytes()
    path = session.write(kept.root)
    path.write_bytes(before)
    report = kept.sync()
    assert report.new == 1
    kept.sync()
    (agent,) = path.with_suffix("").glob("subagents/agent-*.jsonl")
    sidecar = agent.with_suffix(".meta.json")
    sidecar.unlink(missing_ok=True)
    kept.sync()
    assert happened(kept.sync()) == {}
    sidecar.write_text('{"agentType": "explore"}')
    assert sum(happened(kept.sync()).values()) == 1


def test_the_log_of_prompts_is_noticed_when_it_appears_grows_and_goes(kept: SyncedArchive) -> None:
    path = write_prompts(kept.root, [])
    assert happened(kept.sync()) == {"new": 1}
    assert happened(kept.sync()) == {}
    with path.open("a") as file:
        file.write("{}\n")
    assert sum(happened(kept.sync()).values()) == 1
    kept.sync()
    path.unlink()
    assert happened(kept.sync()) == {"vanished": 1}


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="whoever may do everything reads it")
def test_a_file_that_could_not_be_read_is_tried_again_though_it_looks_the_same(kept: SyncedArchive) -> None:
    path = path_of(kept, ONE)
    path.write_bytes(path.read_bytes() + b"{}\n")
    path.chmod(0)
    assert kept.sync().problems == 1
    path.chmod(0o600)
    assert sum(happened(kept.sync()).values()) == 1


def test_a_unit_that_is_owed_is_read_though_its_folder_looks_the_same(kept: SyncedArchive) -> None:
    with sqlite3.connect(kept.archive.path) as db:
        db.execute("update unit set needs_retry = 1 where path = ?", [str(path_of(kept, ONE))])
    assert sum(happened(kept.sync()).values()) == 1


def test_other_exclusions_are_compared_with_every_folder(kept: SyncedArchive, tmp_path: Path) -> None:
    cwd = kept.summaries()[0].workspace_path
    assert cwd is not None
    Transcript(seed=3, cwd=cwd).user("third").write(kept.root)
    kept.archive.close()

    def synced(*patterns: str) -> dict[str, int]:
        archive = Archive(tmp_path / "archive.db", exclusions=Exclusions(patterns=patterns))
        try:
            return happened(sync(archive, [(named("claude-code"), kept.root)]))
        finally:
            archive.close()

    assert synced(cwd) == {"new": 1}  # and passed over
    assert synced(cwd) == synced(cwd) == {}
    assert sum(synced().values()) == 1
    assert synced() == {}


def test_a_name_that_was_forgotten_is_not_noted_with_its_folder(kept: SyncedArchive) -> None:
    (summary,) = kept.archive.sessions.find(ONE)
    kept.archive.maintenance.forget(summary)
    for _ in range(3):
        assert happened(kept.sync()) == {}
        assert not [look for look in looks(kept).values() if look is not None and ONE.encode() in look]
    (summary,) = kept.archive.sessions.find(TWO)
    kept.archive.maintenance.forget(summary)
    for _ in range(2):
        assert looks(kept) == {}
        kept.sync()


@pytest.mark.parametrize("closed", ["projects", "project", "subagents"])
def test_what_is_in_a_folder_that_cannot_be_listed_has_not_vanished(
    kept: SyncedArchive, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    agent = next(kept.root.rglob("agent-*.jsonl"))
    places = {"projects": kept.root / "projects", "project": path_of(kept, ONE).parent}
    folder = str(places.get(closed, agent.parent))

    def refusing(ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(path: str | int, *flags: int) -> Any:
            if path == folder:
                raise PermissionError(13, "Permission denied", path)
            return ask(path, *flags)

        return asked

    with monkeypatch.context() as patch:
        for place, name in ((folders, "_open"), (folders, "_scandir"), (os, "scandir")):
            patch.setattr(place, name, refusing(getattr(place, name)))
        for _ in range(2):
            report = kept.sync()
            assert (report.vanished, report.problems) == (0, 1)
        paths = {str(agent), folder}
        assert sync(kept.archive, [(named("claude-code"), kept.root)], paths=paths).vanished == 0
        assert not any(one.is_gone for one in kept.summaries())
    report = kept.sync()
    assert (report.changed, report.problems) == (0, 0)
    assert happened(kept.sync()) == {}


def test_a_name_that_is_no_text_is_a_problem_and_stops_nothing(kept: SyncedArchive) -> None:
    path = path_of(kept, ONE)
    lines = path.read_bytes()
    folder = os.fsencode(path.parent.parent) + b"/-home-caf\xe9"
    try:
        os.mkdir(folder)  # noqa: PTH102 - no Path is made of bytes
    except OSError:
        pytest.skip("this system has only names that are text")
    unreadable = [folder + b"/%b.jsonl" % TWO.encode(), os.fsencode(path.parent) + b"/caf\xe9.jsonl"]
    for name in unreadable:
        with open(name, "wb") as file:  # noqa: PTH123 - as above
            file.write(lines)
    report = kept.sync()
    assert (report.new, report.problems) == (2, 2)
    assert happened(kept.sync()) == {}
    other = "-home-caf/5e551011-0000-4000-8000-0000000000cc.jsonl"
    os.rename(folder, path.parent.parent / "-home-caf")  # noqa: PTH104 - as above
    (path.parent.parent / "-home-caf" / f"{TWO}.jsonl").rename(path.parent.parent / other)
    report = kept.sync()
    assert (report.new, report.vanished, report.problems) == (1, 1, 0)


def test_a_root_whose_name_is_no_text_is_refused_with_a_way_out(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"caf\xe9")
    with (
        History(roots=[NamedRoot("claude-code", root)], home=tmp_path) as history,
        pytest.raises(UsageError, match="name that is not UTF-8"),
    ):
        history.sync()


def test_a_session_in_a_folder_with_a_line_break_in_its_name_comes_and_goes(kept: SyncedArchive) -> None:
    path = path_of(kept, ONE)
    folder = path.parent.with_name("-home\nzoe")
    path.parent.rename(folder)
    assert happened(kept.sync()) == {"new": 3, "vanished": 3}
    folder.rename(path.parent)
    assert happened(kept.sync()) == {"came_back": 3, "vanished": 3}


def test_what_cannot_be_noted_at_once_is_noted_later(tmp_path: Path) -> None:
    Transcript(ONE, seed=1).user("first").write(tmp_path / "claude")
    kept = SyncedArchive("claude-code", tmp_path / "claude", tmp_path)
    kept.sync()
    other = sqlite3.connect(kept.archive.path, isolation_level=None)
    other.execute("begin immediate")
    began = time.monotonic()
    assert happened(kept.sync()) == {}
    assert time.monotonic() - began < BUSY_TIMEOUT_SECONDS / 2
    assert None in looks(kept).values()
    other.execute("rollback")
    other.close()
    kept.sync()
    assert None not in looks(kept).values()


@pytest.mark.parametrize(
    "path", ["/a/b.jsonl", "/a\\b/c\\d.jsonl", "a/b/ä.jsonl", "/b.jsonl", "/ü/☃/☃.jsonl", "/a b//c.jsonl"]
)
def test_the_archive_finds_the_folder_of_a_path_as_the_rest_does(kept: SyncedArchive, path: str) -> None:
    with sqlite3.connect(kept.archive.path) as db:
        db.execute(
            "insert into unit (source, platform, root, path, key, kind, fingerprint, size)"
            " values ('s', 'p', 'r', ?, '', 'session', '', 0)",
            [path],
        )
    assert list(kept.archive.fingerprints.folders("s", Path("r"))) == [folder_of(path)]


def test_the_archive_knows_folders_of_windows(kept: SyncedArchive) -> None:
    with sqlite3.connect(kept.archive.path) as db:
        db.execute(
            "insert into unit (source, platform, root, path, key, kind, fingerprint, size)"
            " values ('s', 'p', 'r', ?, '', 'session', '', 0)",
            ["C:\\Users\\zoe\\one.jsonl"],
        )
    assert list(kept.archive.fingerprints.folders("s", Path("r"))) == ["C:\\Users\\zoe\\"]


def test_whoever_excludes_nothing_has_the_digest_of_no_patterns() -> None:
    assert Exclusions().patterns_hash == blake2b(b"", digest_size=8).digest()
