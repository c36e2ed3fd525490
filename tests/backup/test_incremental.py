"""An incremental backup contains what changed, and needs its base."""

import shutil
from pathlib import Path

import pytest

from backscroll.errors import BackupError, InvalidBackupError, UsageError
from backscroll.history.history import History
from tests.backup.histories import file_contents, make_history, write_sources


@pytest.fixture
def history(tmp_path: Path) -> History:
    write_sources(tmp_path)
    return make_history(tmp_path)


def test_only_changed_files_are_written(history: History, tmp_path: Path) -> None:
    base = history.create_backup(tmp_path / "base.zip")
    (tmp_path / "claude-code" / "history.jsonl").write_text("changed\n")
    second = history.create_backup(tmp_path / "second.zip", base=tmp_path / "base.zip")
    written = [file.path for file in second.manifest.files if file.backup_id is None]
    assert "history.jsonl" in written
    assert set(written) <= {"history.jsonl", "archive.db"}
    assert [base.name for base in second.manifest.bases] == ["base.zip"]
    assert second.manifest.bases[0].id == base.manifest.id
    assert len(second.manifest.files) == len(base.manifest.files)
    assert history.validate_backup(tmp_path / "second.zip").status == "valid"


def test_an_incremental_backup_is_restored_from_both_files(history: History, tmp_path: Path) -> None:
    history.create_backup(tmp_path / "base.zip")
    (tmp_path / "claude-code" / "history.jsonl").write_text("changed\n")
    history.create_backup(tmp_path / "second.zip", base=tmp_path / "base.zip")
    (tmp_path / "claude-code" / "history.jsonl").write_text("changed again\n")
    history.create_backup(tmp_path / "third.zip", base=tmp_path / "second.zip")
    (tmp_path / "base.zip").rename(tmp_path / "renamed.zip")  # found by its id
    contents = file_contents(tmp_path / "claude-code")
    shutil.rmtree(tmp_path / "claude-code")
    history.restore_backup(tmp_path / "third.zip", source="claude-code")
    restored = file_contents(tmp_path / "claude-code")
    assert restored == {name: contents[name] for name in restored}
    assert len(restored) == 3


def test_a_missing_base_is_named(history: History, tmp_path: Path) -> None:
    history.create_backup(tmp_path / "base.zip")
    history.create_backup(tmp_path / "second.zip", base=tmp_path / "base.zip")
    (tmp_path / "base.zip").unlink()
    with pytest.raises(InvalidBackupError, match=r"needs the backup base\.zip"):
        history.restore_backup(tmp_path / "second.zip")
    validation = history.validate_backup(tmp_path / "second.zip")
    assert validation.status == "invalid"
    assert "needs the backup base.zip" in validation.problems[0]


def test_an_incremental_backup_is_in_the_folder_of_its_base(history: History, tmp_path: Path) -> None:
    history.create_backup(tmp_path / "base.zip")
    with pytest.raises(BackupError, match="folder of its base"):
        history.create_backup(tmp_path / "other" / "second.zip", base=tmp_path / "base.zip")
    assert Path(history.create_backup(base=tmp_path / "base.zip").backup_path).parent == tmp_path


def test_databases_of_a_base_with_credentials_are_not_used(history: History, tmp_path: Path) -> None:
    history.create_backup(tmp_path / "base.zip", with_secrets=True)
    second = history.create_backup(tmp_path / "second.zip", base=tmp_path / "base.zip")
    assert {file.backup_id for file in second.manifest.files if file.kind == "database"} == {None}


def test_prune_keeps_the_newest_backups_and_their_bases(history: History, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    history.create_backup(folder / "1.zip")
    history.create_backup(folder / "2.zip")
    history.create_backup(folder / "3.zip", base=folder / "1.zip")
    history.create_backup(folder / "4.zip")
    (folder / "notes.zip").write_text("not a backup")

    def prunable(keep: int) -> list[str]:
        return [Path(backup.path).name for backup in history.backups.prunable(keep, folder)]

    assert prunable(1) == ["3.zip", "2.zip", "1.zip"]
    assert prunable(2) == ["2.zip"]
    for backup in history.backups.prunable(2, folder):
        history.backups.delete(backup)
    assert sorted(path.name for path in folder.iterdir()) == ["1.zip", "3.zip", "4.zip", "notes.zip"]
    assert history.validate_backup(folder / "3.zip").status == "valid"
    with pytest.raises(UsageError):
        prunable(0)
