"""Where a backup may be written, and what it may replace."""

import errno
import os
from datetime import datetime, tzinfo
from pathlib import Path

import pytest

from backscroll.backup import folder as backup_folder
from backscroll.errors import BackupError
from backscroll.history.history import History
from backscroll.model.backup import BackupProgress
from tests.backup.histories import STORE, make_history, write_sources
from tests.cli.run_command import backscroll


@pytest.fixture
def history(tmp_path: Path) -> History:
    write_sources(tmp_path)
    return make_history(tmp_path)


def test_a_backup_never_replaces_its_base(history: History, tmp_path: Path) -> None:
    base = tmp_path / "base.zip"
    before = Path(history.create_backup(base).backup_path).read_bytes()
    for target in (base, tmp_path / "link.zip"):
        if target != base:
            target.symlink_to(base)
        with pytest.raises(BackupError, match="is the base of the new backup"):
            history.create_backup(target, base=base, force=True)
    assert base.read_bytes() == before


def test_a_base_that_another_backup_needs_is_not_replaced(history: History, tmp_path: Path) -> None:
    base = tmp_path / "base.zip"
    history.create_backup(base)
    history.create_backup(tmp_path / "second.zip", base=base)
    history.create_backup(tmp_path / "third.zip", base=tmp_path / "second.zip")
    for options in ({}, {"base": tmp_path / "third.zip"}):
        with pytest.raises(BackupError, match=r"is needed by the incremental backup \w+\.zip"):
            history.create_backup(base, force=True, **options)  # type: ignore[arg-type]
    for name in ("second", "third"):
        assert history.validate_backup(tmp_path / f"{name}.zip").status == "valid"
    history.create_backup(tmp_path / "third.zip", force=True)  # nothing needs the last one


def test_force_replaces_no_other_file(history: History, tmp_path: Path) -> None:
    notes = tmp_path / "notes.zip"
    notes.write_text("mine")
    (tmp_path / "broken.zip").symlink_to("nowhere")
    for target in (notes, tmp_path / "broken.zip"):
        with pytest.raises(BackupError, match="--force replaces only backups"):
            history.create_backup(target, force=True)
    assert notes.read_text() == "mine"
    assert (tmp_path / "broken.zip").is_symlink()


@pytest.mark.parametrize("name", [STORE, STORE.with_name("new.zip"), "claude-code/projects/new.zip"])
def test_nothing_is_written_below_a_root(history: History, tmp_path: Path, name: Path | str) -> None:
    target = tmp_path / name
    before = target.read_bytes() if target.exists() else None
    (tmp_path / "alias").symlink_to(target.parent)
    for path in (target, tmp_path / "alias" / target.name):
        for force in (False, True):
            with pytest.raises(BackupError, match="a folder of a tool"):
                history.create_backup(path, force=force, create_folder=True)
    assert (target.read_bytes() if target.exists() else None) == before


def test_only_the_folder_of_backups_beside_the_archive_is_used(history: History, tmp_path: Path) -> None:
    home = tmp_path / "home"
    before = (home / "archive.db").read_bytes()
    for name in ("archive.db", "new.zip", "index/new.zip", "changes/new.zip", "backups-2/new.zip"):
        with pytest.raises(BackupError, match="is in the folder of the archive"):
            history.create_backup(home / name, force=True, create_folder=True)
    assert (home / "archive.db").read_bytes() == before
    assert history.create_backup(home / "backups" / "new.zip").backup_path.endswith("new.zip")


def test_a_folder_of_a_tool_is_refused_also_if_only_other_roots_are_read(tmp_path: Path) -> None:
    write_sources(tmp_path)
    home = Path.home()  # a temporary one
    (home / ".claude").mkdir()
    with make_history(tmp_path, "cursor") as history, pytest.raises(BackupError, match="folder of a tool"):
        history.create_backup(home / ".claude" / "history.zip")


def test_a_missing_folder_is_created_only_on_request(tmp_path: Path) -> None:
    write_sources(tmp_path)
    run = (
        "--home",
        tmp_path / "home",
        "--root",
        f"claude-code={tmp_path / 'claude-code'}",
        "backup",
        "create",
    )
    disk = tmp_path / "mnt" / "disk"
    for options in (("-o", disk / "history.zip"), ("--dir", disk)):
        refused = backscroll(*run, *options)
        assert (refused.code, f"There is no folder {disk}." in refused.err) == (1, True)
        assert "--create" in refused.err
    assert not disk.parent.exists()
    created = backscroll(*run, "-o", disk / "history.zip", "--create")
    assert (created.code, (disk / "history.zip").is_file()) == (0, True), created.err
    assert backscroll(*run).code == 0
    (tmp_path / "home" / "config.toml").write_text(f"backup_dir = '{tmp_path / 'unmounted'}'\n")
    assert backscroll(*run).code == 1
    assert not (tmp_path / "unmounted").exists()


@pytest.mark.parametrize("has_links", [True, False])
def test_backups_in_the_same_second_get_different_names(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    if not has_links:

        def refuse(*_: object) -> None:
            raise OSError(errno.EPERM, "no links on this file system")

        monkeypatch.setattr(os, "link", refuse)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Clock":
            return cls(2026, 11, 19, 4, tzinfo=tz)

    monkeypatch.setattr(backup_folder, "datetime", Clock)
    others: list[str] = []

    def create_another(_: BackupProgress) -> None:
        """Create a second backup after the first one has chosen its name."""
        if not others:
            others.append("")
            others[0] = make_history(tmp_path).create_backup().backup_path

    first = history.create_backup(progress=create_another).backup_path
    third = history.create_backup().backup_path
    stem = "backscroll-20261119-040000"
    names = [Path(path).name for path in (*others, first, third)]
    assert names == [f"{stem}.zip", f"{stem}-2.zip", f"{stem}-3.zip"]
    assert {history.validate_backup(path).status for path in (*others, first, third)} == {"valid"}
