"""A backup is restored onto another machine, where the tools find its sessions under the new paths."""

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from hashlib import md5
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import Session
from backscroll.model.workspace import PathMaps
from backscroll.sources.claude_code.workspace import project_key
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Prompt, Transcript
from backscroll.testing.claude_code.side_files import write_prompts, write_session_index
from tests.backup.histories import STORE, make_history
from tests.histories import HISTORIES
from tests.histories import History as SampleHistory

SHOP = "/home/dev/shop"  # of cursor.SHOP
SAMPLES = [one for one in HISTORIES if one.source_name == "cursor"]
SAMPLES += [one for one in HISTORIES if one.source_name == "claude-code"][::4]
SAMPLES += [one for one in HISTORIES if one.source_name == "cursor-cli"][::5]


def back_up(folder: Path, *sources: str) -> Path:
    with make_history(folder, *sources) as history:
        return Path(history.create_backup(folder / "backup.zip").backup_path)


def restore(
    folder: Path, backup: Path, maps: list[tuple[str, str]], sessions: tuple[str, ...] = ()
) -> History:
    """Restore into the folder ``new``, as on another machine. Return the library there."""
    roots = [
        NamedRoot(name, folder / "new" / name)
        for name in ("claude-code", "cursor", "cursor-cli")
        if (folder / name).exists()
    ]
    history = History(roots=roots, home=folder / "new" / "home")
    moved = [(str(folder / root.source), str(root.path)) for root in roots]
    history.restore_backup(backup, path_map=dict([*moved, *maps]), sessions=sessions)
    for root in roots:
        shutil.rmtree(folder / root.source)
    history.sync()
    return history


def said(session: Session) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in session.messages]


def test_a_project_folder_and_the_folders_in_lines_are_renamed(tmp_path: Path) -> None:
    new = tmp_path / "home" / "bea"
    (new / "ferry").mkdir(parents=True)
    root = tmp_path / "claude-code"
    moved = Transcript(seed=1, cwd="/home/ada/ferry").user("in /home/ada/ferry").assistant("Yes.")
    moved.delegate("look in /home/ada/ferry", "Found.")
    other = Transcript(seed=2, cwd="/home/ada2/ferry").user("elsewhere").assistant("Yes.")
    for transcript in (moved, other):
        transcript.write(root)
    write_session_index(root, [moved])
    at = datetime(2026, 10, 1, tzinfo=UTC)
    prompts = [Prompt("a", at, "/home/ada/ferry", moved.session_id), Prompt("b", at, "/srv/x", "other")]
    write_prompts(root, prompts)
    backup = back_up(tmp_path, "claude-code")
    with restore(tmp_path, backup, [("/home/ada", str(new))]) as history:
        found = {one.id: one.workspace_path for one in history.all_sessions() if one.source == "claude-code"}
        assert found[moved.session_id] == str(new / "ferry")
        assert found[other.session_id] == "/home/ada2/ferry"
        assert said(history.get_session(moved.session_id))[0] == ("user", "in /home/ada/ferry")
    projects = tmp_path / "new" / "claude-code" / "projects"
    folder = projects / project_key(str(new / "ferry"))
    names = {folder.name, project_key("/home/ada2/ferry")}
    assert {path.name for path in projects.iterdir()} == names
    lines = [json.loads(line) for line in (folder / f"{moved.session_id}.jsonl").read_text().splitlines()]
    assert {line["cwd"] for line in lines if "cwd" in line} == {str(new / "ferry")}
    (agent,) = folder.glob(f"{moved.session_id}/subagents/*.jsonl")
    assert {json.loads(line)["cwd"] for line in agent.read_text().splitlines()} == {str(new / "ferry")}
    (entry,) = json.loads((folder / "sessions-index.json").read_text())["entries"]
    assert entry["projectPath"] == str(new / "ferry")
    assert entry["fullPath"] == str(folder / f"{moved.session_id}.jsonl")
    log = (tmp_path / "new" / "claude-code" / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["project"] for line in log] == [str(new / "ferry"), "/srv/x"]


def test_a_session_that_only_the_archive_contains_belongs_to_the_new_folder(tmp_path: Path) -> None:
    new = tmp_path / "home" / "bea"
    (new / "ferry").mkdir(parents=True)
    session = Transcript(cwd="/home/ada/ferry").user("in /home/ada/ferry").assistant("Yes.")
    session.delegate("look in /home/ada/ferry", "Found.")
    session.write(tmp_path / "claude-code")
    with make_history(tmp_path, "claude-code") as history:
        history.sync()
    shutil.rmtree(tmp_path / "claude-code" / "projects")
    backup = back_up(tmp_path, "claude-code")
    (tmp_path / "new" / "claude-code" / "projects").mkdir(parents=True)
    with restore(tmp_path, backup, [("/home/ada", str(new))]) as history:
        history.archive_admin.rebuild()
        (summary,) = history.all_sessions()
        assert (summary.is_gone, summary.workspace_path) == (True, str(new / "ferry"))
        before = said(history.get_session(summary.ref))
        history.restore_session(summary.ref)
        history.sync()
        (summary,) = history.all_sessions()
        assert (summary.is_gone, summary.workspace_path) == (False, str(new / "ferry"))
        assert said(history.get_session(summary.ref)) == before
    files = list((tmp_path / "new" / "claude-code").rglob("*.jsonl"))
    assert len(files) == 2  # with the subagent
    for file in files:
        assert project_key(str(new / "ferry")) in file.parts
        assert {json.loads(line)["cwd"] for line in file.read_text().splitlines()} == {str(new / "ferry")}


def test_maps_of_two_restores_follow_each_other() -> None:
    first, second = PathMaps([("/a", "/b")]), PathMaps([("/b", "/c"), ("/a", "/d")])
    both = first.followed_by(second)
    assert [both.path(path) for path in ("/a/x", "/b/x", "/e")] == ["/c/x", "/c/x", None]


def test_later_maps_apply_below_the_folders_of_earlier_ones() -> None:
    both = PathMaps([("/home/ada", "/home/bea")]).followed_by_each(
        [("/home/bea/ferry", "/home/bea/boat"), ("/home/bea/boat", "/srv/boat")]
    )
    assert both.path("/home/ada/ferry/src") == "/srv/boat/src"
    assert both.path("/home/ada/quay") == "/home/bea/quay"
    assert both.path("/home/bea/ferry") == "/srv/boat"


def storage_ids(folder: Path) -> set[str]:
    return {path.name for path in (folder / "User" / "workspaceStorage").iterdir()}


@pytest.mark.parametrize("is_single", [False, True])
def test_cursor_finds_a_session_in_the_storage_of_the_new_folder(tmp_path: Path, is_single: bool) -> None:
    shop = tmp_path / "home" / "shop"
    shop.mkdir(parents=True)
    ide = cursor.Home(tmp_path / "cursor")
    ide.composer([cursor.user("mend"), cursor.assistant("Done.")], workspace=cursor.SHOP, name="Basket")
    ide.write()
    backup = back_up(tmp_path, "cursor")
    if is_single:  # into a store with another session
        other = cursor.Home(tmp_path / "new" / "cursor", seed=5)
        other.composer([cursor.user("stay"), cursor.assistant("Yes.")], name="Other")
        other.write()
    sessions = ("1",) if is_single else ()
    with restore(tmp_path, backup, [(SHOP, str(shop))], sessions) as history:
        found = {one.title: one.workspace_path for one in history.all_sessions() if not one.is_gone}
    assert found["Basket"] == str(shop)
    assert ("Other" in found) == is_single
    new_id = md5(f"{shop}{shop.stat().st_ino}".encode(), usedforsecurity=False).hexdigest()
    assert new_id in storage_ids(tmp_path / "new" / "cursor")
    workspace = tmp_path / "new" / "cursor" / "User" / "workspaceStorage" / new_id / "workspace.json"
    assert json.loads(workspace.read_text())["folder"] == f"file://{shop}"
    with closing(sqlite3.connect(tmp_path / "new" / STORE)) as db:
        rows = db.execute("select workspaceId, value from composerHeaders").fetchall()
        (record,) = db.execute("select value from cursorDiskKV where value like '%Basket%'").fetchone()
    ids = [(column, json.loads(value)["workspaceIdentifier"]) for column, value in rows]
    assert [(column, one["id"], one["uri"]["path"]) for column, one in ids if column == new_id] == [
        (new_id, new_id, str(shop))
    ]
    assert json.loads(record)["workspaceIdentifier"]["id"] == new_id


def test_a_folder_that_does_not_exist_yet_is_a_warning(tmp_path: Path) -> None:
    ide = cursor.Home(tmp_path / "cursor")
    ide.composer([cursor.user("mend"), cursor.assistant("Done.")], workspace=cursor.SHOP, name="Basket")
    ide.write()
    backup = back_up(tmp_path, "cursor")
    history = History(roots=[], home=tmp_path / "new")
    maps = [(str(tmp_path / "cursor"), str(tmp_path / "new" / "cursor")), (SHOP, "/nowhere")]
    result = history.restore_backup(backup, source="cursor", path_map=dict(maps))
    assert ["/nowhere does not exist" in warning for warning in result.warnings] == [True]
    assert storage_ids(tmp_path / "new" / "cursor") == storage_ids(tmp_path / "cursor")


def test_the_cli_finds_a_session_by_the_hash_of_the_new_folder(tmp_path: Path) -> None:
    cli = cursor_cli.Home(tmp_path / "cursor-cli")
    cli.chat([cursor.user("rename"), cursor.assistant("Renamed.")], cwd="/home/ada/harbor")
    backup = back_up(tmp_path, "cursor-cli")
    with restore(tmp_path, backup, [("/home/ada", "/home/bea")]) as history:
        (session,) = history.all_sessions()
        assert session.workspace_path == "/home/bea/harbor"
    (folder,) = (tmp_path / "new" / "cursor-cli" / "chats").iterdir()
    assert folder.name == md5(b"/home/bea/harbor", usedforsecurity=False).hexdigest()
    assert json.loads(next(folder.glob("*/meta.json")).read_text())["cwd"] == "/home/bea/harbor"


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_generation_is_mapped_without_loss(sample: SampleHistory, tmp_path: Path) -> None:
    sample.write(tmp_path / sample.source_name)
    with make_history(tmp_path, sample.source_name) as history:
        sessions = [one for one in history.all_sessions() if not one.is_gone]
        before = {one.ref: said(history.get_session(one.ref)) for one in sessions}
        folders = {one.ref: one.workspace_path for one in sessions}
        backup = Path(history.create_backup(tmp_path / "backup.zip").backup_path)
    with restore(tmp_path, backup, [("/home", str(tmp_path / "elsewhere"))]) as history:
        after = {one.ref: one for one in history.all_sessions() if not one.is_gone}
        assert {ref: said(history.get_session(ref)) for ref in before} == before
        for ref, folder in folders.items():
            # /home/dev itself is in a binary record only, which stays as it is.
            if folder is not None and folder.startswith("/home/") and folder != "/home/dev":
                assert after[ref].workspace_path == f"{tmp_path}/elsewhere{folder.removeprefix('/home')}", ref


PATHS = st.lists(st.text("abc é.-_ ", min_size=1, max_size=4), min_size=1, max_size=4)


@given(old=PATHS, new=PATHS, rest=PATHS)
def test_a_path_below_a_mapped_folder_keeps_its_rest(old: list[str], new: list[str], rest: list[str]) -> None:
    maps = PathMaps([("/" + "/".join(old), "/" + "/".join(new))])
    assert maps.path("/" + "/".join([*old, *rest])) == "/" + "/".join([*new, *rest])
    assert maps.path("/" + "/".join(old) + "x") is None


def test_paths_of_windows_are_mapped_to_slashes_and_back() -> None:
    maps = PathMaps([("C:\\Users\\Ada", "/home/ada"), ("/srv", "D:\\srv"), ("/", "/mnt")])
    assert maps.path("c:\\Users\\Ada\\work\\x.py") == "/home/ada/work/x.py"
    assert maps.path("/c:/Users/Ada/work") == "/home/ada/work"
    assert maps.path("C:\\Users\\Adam") is None
    assert maps.path("/srv/a/b") == "D:\\srv\\a\\b"
    assert maps.path("/etc") == "/mnt/etc"


def test_the_rest_of_a_path_keeps_its_end_slash_and_backslashes_in_names() -> None:
    maps = PathMaps([("/home/ada", "/home/bob")])
    assert maps.path("/home/ada/") == "/home/bob/"
    assert maps.path("/home/ada/a\\b/") == "/home/bob/a\\b/"
    assert maps.path("/home/ada\\b") is None
