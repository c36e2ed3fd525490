"""The demo is written whole, the same every time, or not at all."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from backscroll.cli.commands.demo import command
from backscroll.config import NamedRoot
from backscroll.errors import DestinationError
from backscroll.history import History
from backscroll.history.demo import write_demo
from backscroll.testing import demo
from backscroll.testing.demo import Demo, writer
from backscroll.testing.demo.story import Story


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_everything_in_it_is_understood(written: Demo) -> None:
    roots = [NamedRoot(source, Path(path)) for source, path in written.roots.items()]
    found = History(roots=roots).source_files.audit()
    assert found.problems == []
    assert found.is_understood
    assert {place.source: place.sessions for place in found.places} == written.sessions


def test_the_same_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    demo.write(folder)
    first = _bytes(folder)
    shutil.rmtree(folder)
    demo.write(folder)
    second = _bytes(folder)
    assert first.keys() == second.keys()
    assert [name for name, content in first.items() if second[name] != content] == []


def test_it_speaks_of_no_other_folder_than_its_own(written: Demo) -> None:
    folder = Path(written.folder)
    assert [name for name, content in _bytes(folder).items() if b"/.robin." in content] == []
    assert [path.name for path in folder.parent.iterdir()] == ["robin"]


def test_parents_are_made_and_an_empty_folder_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    assert demo.write(folder).folder == str(folder)
    assert (folder / ".claude" / "projects").is_dir()
    assert (demo.write(tmp_path / "c" / "d").sessions)["cursor"] > 0


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DestinationError, match="is not empty; name a folder that does not exist yet"):
        demo.write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_is_no_place_to_write_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DestinationError, match="is a file"):
        demo.write(tmp_path / "file")
    with pytest.raises(DestinationError, match="cannot be written"):
        demo.write(tmp_path / "file" / "below")


def test_stopped_halfway_it_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Story.write

    def stop(story: Story) -> None:
        whole(story)
        raise KeyboardInterrupt

    monkeypatch.setattr(Story, "write", stop)
    with pytest.raises(KeyboardInterrupt):
        demo.write(tmp_path / "new" / "home")
    assert list(tmp_path.iterdir()) == []


def test_without_git_there_are_files_but_no_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "find_git", lambda: None)
    done = CliRunner().invoke(command, [str(tmp_path / "home")])
    assert done.exit_code == 0
    assert "4 projects without their commits, because git was not found" in done.output
    assert (tmp_path / "home/projects/tideline/tideline/timetable.py").is_file()
    assert not (tmp_path / "home/projects/tideline/.git").exists()


def test_it_prints_the_command_to_look_at_it(tmp_path: Path) -> None:
    folder = tmp_path / "a home"
    done = CliRunner().invoke(command, [str(folder)])
    told = shlex.split(done.output.splitlines()[-2])
    assert (told[0], told[-1]) == ("backscroll", "list")
    assert told[told.index("--home") + 1] == f"{folder}/archive", "not in among somebody's own history"
    assert f"claude-code={folder}/.claude" in told
    assert f"cursor={folder}/.config/Cursor" in told
    assert f"cursor-cli={folder}/.cursor" in told


def test_as_json_it_is_one_document(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [str(tmp_path / "home"), "--json"])
    document = json.loads(done.stdout)
    assert document["folder"] == str(tmp_path / "home")
    assert sum(document["sessions"].values()) >= 35
    assert document["command"].endswith("list")


def test_the_archive_contains_a_session_that_the_tool_has_deleted(tmp_path: Path) -> None:
    written = write_demo(tmp_path / "home")
    roots = [NamedRoot(source, Path(path)) for source, path in written.roots.items()]
    with History(home=tmp_path / "home/archive", roots=roots) as history:
        history.sync()
        gone = [one.title for one in history.all_sessions() if one.is_gone]
    assert "Tests for the clock change" in gone


def test_it_contains_a_made_up_secret(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, [str(tmp_path / "home"), "--json"])
    look = json.loads(done.stdout)["command"].removesuffix("list")
    found = subprocess.run(
        [Path(sys.executable).with_name("backscroll"), *shlex.split(look)[1:], "secrets", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(found.stdout)["total"] >= 1


def test_nothing_is_left_behind_if_the_sync_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: History) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(History, "sync", fail)
    with pytest.raises(KeyboardInterrupt):
        write_demo(tmp_path / "home")
    assert list(tmp_path.iterdir()) == []
