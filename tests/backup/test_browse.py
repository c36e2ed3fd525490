"""Sessions in a backup can be listed, shown, searched and exported without restoring it."""

import shutil
from pathlib import Path

import pytest

from backscroll.backup.reader import MAX_CACHED_BACKUPS
from backscroll.errors import InvalidBackupError
from backscroll.testing.claude_code import Transcript
from tests.backup.histories import make_history, write_sources
from tests.cli.run_command import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Return a shell with a backup of one session, which was then deleted together with the archive."""
    shell = Shell(tmp_path)
    Transcript(seed=1).user("find the ferry").assistant("It is late.").write(shell.root)
    assert shell.run("backup", "create", "-o", tmp_path / "old.zip").code == 0
    shutil.rmtree(shell.root)
    shutil.rmtree(shell.home)
    Transcript(seed=2).user("something new").assistant("Yes.").write(shell.root)
    return shell


def test_the_commands_read_the_backup_and_not_the_archive(shell: Shell, tmp_path: Path) -> None:
    backup = ("--backup", tmp_path / "old.zip")
    listed = shell.json(*backup, "list")
    assert [one["first_message_preview"] for one in listed["data"]] == ["find the ferry"]
    found = shell.json(*backup, "search", "ferry")
    assert len(found["data"]) == 1
    assert shell.json(*backup, "search", "something")["data"] == []
    assert "It is late." in shell.run(*backup, "show", "1").out
    assert "It is late." in shell.run(*backup, "export", "1", "--format", "txt").out
    assert [one["first_message_preview"] for one in shell.json("list")["data"]] == ["something new"]


def test_a_command_that_cannot_read_a_backup_refuses(shell: Shell, tmp_path: Path) -> None:
    result = shell.run("--backup", tmp_path / "old.zip", "sync")
    assert result.code == 2
    assert "list, search, show, export" in result.err


def test_a_missing_backup_is_an_error(shell: Shell, tmp_path: Path) -> None:
    result = shell.run("--backup", tmp_path / "none.zip", "list")
    assert (result.code, result.err) == (1, f"There is no backup at {tmp_path / 'none.zip'}.\n")


def test_a_damaged_archive_in_a_backup_is_not_read(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "old.zip"
    data = bytearray(path.read_bytes())
    data[data.index(b"archive/archive.db.zst") + 3000] ^= 1
    path.write_bytes(data)
    result = shell.run("--backup", path, "list")
    assert result.code == 1
    assert "backup verify" in result.err


def test_forgetting_a_session_deletes_the_cache_of_backups(tmp_path: Path) -> None:
    write_sources(tmp_path)
    with make_history(tmp_path) as history:
        history.create_backup(tmp_path / "one.zip")
        history.open_backup(tmp_path / "one.zip").close()
        assert (tmp_path / "home" / "backup-cache").exists()
        history.archive_admin.forget(history.list_sessions().data[0].ref)
        assert not (tmp_path / "home" / "backup-cache").exists()


def test_the_cache_of_opened_backups_is_bounded(tmp_path: Path) -> None:
    write_sources(tmp_path)
    with make_history(tmp_path) as history:
        for number in range(MAX_CACHED_BACKUPS + 2):
            path = tmp_path / f"{number}.zip"
            history.create_backup(path)
            with history.open_backup(path) as opened:
                assert opened.list_sessions().data == history.list_sessions().data
                assert list(opened.roots()) == []
        assert len(list((tmp_path / "home" / "backup-cache").iterdir())) == MAX_CACHED_BACKUPS
        with pytest.raises(InvalidBackupError):
            history.open_backup(tmp_path / "none.zip")
