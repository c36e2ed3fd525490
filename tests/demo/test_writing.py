"""The demo is deterministic and is written completely or not at all."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from backscroll.cli.app import app
from backscroll.config import NamedRoot
from backscroll.errors import DestinationError
from backscroll.history.demo import write_demo
from backscroll.history.history import History
from backscroll.testing import demo
from backscroll.testing.demo import Demo, writer
from backscroll.testing.demo.sample_history import SampleHistory


def _file_contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_records_of_the_demo_are_parsed(written: Demo) -> None:
    roots = [NamedRoot(source, Path(path)) for source, path in written.roots.items()]
    found = History(roots=roots).source_files.audit()
    assert found.problems == []
    assert found.is_understood
    assert {place.source: place.sessions for place in found.places} == written.sessions


def test_the_same_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    demo.write(folder)
    first = _file_contents(folder)
    shutil.rmtree(folder)
    demo.write(folder)
    second = _file_contents(folder)
    assert first.keys() == second.keys()
    assert [name for name, content in first.items() if second[name] != content] == []


def test_no_file_contains_the_path_of_the_temporary_folder(written: Demo) -> None:
    folder = Path(written.folder)
    assert [name for name, content in _file_contents(folder).items() if b"/.robin." in content] == []
    assert [path.name for path in folder.parent.iterdir()] == ["robin"]


def test_parents_are_created_and_an_empty_folder_is_used(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    assert demo.write(folder).folder == str(folder)
    assert (folder / ".claude" / "projects").is_dir()
    assert (demo.write(tmp_path / "c" / "d").sessions)["cursor"] > 0


def test_a_folder_that_is_not_empty_stays_unchanged(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DestinationError, match=r"is not empty\. Choose a folder that does not exist yet\."):
        demo.write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_is_not_a_valid_destination(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DestinationError, match="is a file"):
        demo.write(tmp_path / "file")
    with pytest.raises(DestinationError, match="cannot be written"):
        demo.write(tmp_path / "file" / "below")


def test_an_interrupted_write_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = SampleHistory.write

    def write_and_interrupt(history: SampleHistory) -> None:
        write(history)
        raise KeyboardInterrupt

    monkeypatch.setattr(SampleHistory, "write", write_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        demo.write(tmp_path / "new" / "home")
    assert list(tmp_path.iterdir()) == []


def test_without_git_the_projects_have_files_but_no_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "find_git", lambda: None)
    done = CliRunner().invoke(app, ["demo", str(tmp_path / "home")])
    assert done.exit_code == 0
    assert "4 projects without commits (git is not installed)" in done.output
    assert (tmp_path / "home/projects/tideline/tideline/timetable.py").is_file()
    assert not (tmp_path / "home/projects/tideline/.git").exists()


def test_the_report_contains_the_variables_and_commands_for_the_demo(tmp_path: Path) -> None:
    folder = tmp_path / "a home"
    done = CliRunner().invoke(app, ["demo", str(folder)])
    lines = [shlex.split(line) for line in done.output.splitlines()]
    variables = dict(words[1].split("=", 1) for words in lines if words[:1] == ["export"])
    roots = variables["BACKSCROLL_ROOTS"].split(os.pathsep)
    assert ["backscroll", "list"] in lines
    assert variables["BACKSCROLL_HOME"] == f"{folder}/archive", "not the user's own archive"
    assert f"claude-code={folder}/.claude" in roots
    assert f"cursor={folder}/.config/Cursor" in roots
    assert f"cursor-cli={folder}/.cursor" in roots


def test_json_output_is_one_document(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", str(tmp_path / "home"), "--json"])
    document = json.loads(done.stdout)
    assert document["folder"] == str(tmp_path / "home")
    assert sum(document["sessions"].values()) >= 35
    assert document["command"].endswith("list")


def test_the_archive_contains_a_session_that_the_tool_has_deleted(tmp_path: Path) -> None:
    written = write_demo(tmp_path / "home")
    roots = [NamedRoot(source, Path(path)) for source, path in written.roots.items()]
    with History(home=tmp_path / "home/archive", roots=roots) as history:
        history.sync()
        deleted = [session.title for session in history.all_sessions() if session.is_gone]
    assert "Tests for the clock change" in deleted


def test_the_demo_contains_a_fake_secret(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", str(tmp_path / "home"), "--json"])
    prefix = json.loads(done.stdout)["command"].removesuffix("list")
    found = subprocess.run(
        [Path(sys.executable).with_name("backscroll"), *shlex.split(prefix)[1:], "secrets", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(found.stdout)["total"] >= 1


def test_no_files_remain_if_the_sync_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: History) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(History, "sync", fail)
    with pytest.raises(KeyboardInterrupt):
        write_demo(tmp_path / "home")
    assert list(tmp_path.iterdir()) == []
