"""``backscroll backup``."""

import json
import shutil
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript
from tests.cli.run_command import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    Transcript(seed=1).user("find the ferry").assistant("Found.").write(shell.root)
    return shell


def test_a_backup_is_created_in_the_folder_of_backups_and_listed(shell: Shell) -> None:
    created = shell.run("backup", "create")
    assert created.code == 0, created.err
    path = Path(created.out.splitlines()[0])
    assert path.parent == shell.home / "backups"
    assert "1 session, 2 messages, 2 files" in created.out
    listed = shell.run("backup", "list")
    assert listed.out.startswith(str(path))
    shown = shell.run("backup", "show", path, "--files")
    assert "archive/archive.db" in shown.out
    assert "credentials: removed" in shown.out


def test_the_folder_of_backups_can_be_changed(shell: Shell, tmp_path: Path) -> None:
    shell.home.mkdir()
    (shell.home / "config.toml").write_text(f'backup_dir = "{tmp_path / "elsewhere"}"\n')
    (tmp_path / "elsewhere").mkdir()
    assert shell.run("backup", "create").out.startswith(str(tmp_path / "elsewhere"))
    assert shell.run("backup", "create", "--dir", tmp_path / "third", "--create").out.startswith(
        str(tmp_path / "third")
    )
    assert len(shell.json("backup", "list")["data"]) == 1


def test_the_json_document_has_path_and_manifest(shell: Shell, tmp_path: Path) -> None:
    document = shell.json("backup", "create", "-o", tmp_path / "mine.zip")
    assert document["backup_path"] == str(tmp_path / "mine.zip")
    assert document["manifest"]["stats"]["session_count"] == 1
    assert document["manifest"]["stats"]["file_size"] == (tmp_path / "mine.zip").stat().st_size
    assert document["is_complete"] is True
    shown = shell.json("backup", "show", tmp_path / "mine.zip")
    assert {file["kind"] for file in shown["files"]} == {"file", "archive"}


def test_the_exit_code_of_verify_is_the_verdict(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "mine.zip"
    shell.run("backup", "create", "-o", path)
    valid = shell.run("backup", "verify", path)
    assert (valid.code, valid.out) == (0, "Valid: 2 files checked.\n")
    data = bytearray(path.read_bytes())
    data[10] ^= 1  # the date in the header of the first entry
    path.write_bytes(data)
    changed = shell.run("backup", "verify", path)
    assert (changed.code, changed.out.splitlines()[0]) == (3, "Valid with warnings: 2 files checked.")
    path.write_bytes(data[:-1])
    assert shell.run("backup", "verify", path).code == 1
    failed = shell.run("backup", "verify", path, "--json")
    assert failed.code == 1
    assert json.loads(failed.out)["status"] == "invalid"


def test_an_existing_file_is_an_error_with_the_next_step(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "mine.zip").write_text("x")
    result = shell.run("backup", "create", "-o", tmp_path / "mine.zip")
    assert result.code == 1
    assert "--force" in result.err
    assert (tmp_path / "mine.zip").read_text() == "x"


def test_restore_prints_its_plan_and_needs_a_confirmation(shell: Shell, tmp_path: Path) -> None:
    shell.run("backup", "create", "-o", tmp_path / "mine.zip")
    shutil.rmtree(shell.root)
    options = ("--source", "claude-code", "--map", f"{shell.root}=~/restored")
    dry = shell.run("backup", "restore", tmp_path / "mine.zip", *options, "--dry-run")
    assert dry.code == 0, dry.err
    assert "1 to create, 0 to replace" in dry.out
    assert "Nothing was changed" in dry.out
    refused = shell.run("backup", "restore", tmp_path / "mine.zip", *options)
    assert refused.code == 2
    assert refused.err.endswith("Not a terminal: pass --yes to confirm.\n")
    done = shell.run("backup", "restore", tmp_path / "mine.zip", *options, "--yes")
    assert done.code == 0, done.err
    assert "Restored 1 file with 1 session. Change " in done.out
    assert list((Path.home() / "restored" / "projects").rglob("*.jsonl"))
    assert shell.run("backup", "restore", tmp_path / "mine.zip", "--map", "x").code == 2


def test_restore_as_json_counts_files_and_sessions(shell: Shell, tmp_path: Path) -> None:
    shell.run("backup", "create", "-o", tmp_path / "mine.zip")
    shutil.rmtree(shell.root)
    document = shell.json("backup", "restore", tmp_path / "mine.zip", "--yes")
    assert (document["files_restored"], document["sessions_restored"]) == (1, 1)
    assert {file["action"] for file in document["files"]} == {"create"}
    assert [one["action"] for one in document["sessions"]] == ["added"]
    assert document["warnings"] == []


def test_prune_deletes_after_a_confirmation(shell: Shell, tmp_path: Path) -> None:
    first, second = tmp_path / "b" / "1.zip", tmp_path / "b" / "2.zip"
    first.parent.mkdir()
    shell.run("backup", "create", "-o", first)
    assert "incremental: needs 1.zip" in shell.run("backup", "create", "-o", second, "--base", first).out
    pruned = shell.run("backup", "prune", first.parent, "--keep", "1", "--yes")
    assert pruned.out.splitlines()[-1] == "Nothing to delete."
    shell.run("backup", "create", "-o", tmp_path / "b" / "3.zip")
    refused = shell.run("backup", "prune", first.parent, "--keep", "1")
    assert refused.code == 2
    assert first.exists()
    assert shell.json("backup", "prune", first.parent, "--keep", "1", "--yes")["deleted"] == [
        str(second),
        str(first),
    ]
