"""A backup contains the tools' histories and the archive, in one private file."""

import io
import os
import sqlite3
import stat
import sys
import zipfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from backscroll.backup import folder as target_file
from backscroll.backup.reader import BackupReader
from backscroll.errors import BackupError
from backscroll.history.history import History
from backscroll.model.backup import BackupFile, BackupProgress, BackupResult
from backscroll.readers import files
from backscroll.testing import cursor
from tests.backup.histories import database_rows, file_contents, make_history, write_sources

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SECRET = cursor.SECRET.encode()


@pytest.fixture
def history(tmp_path: Path) -> History:
    write_sources(tmp_path)
    return make_history(tmp_path)


def content(result: BackupResult, file: BackupFile) -> bytes:
    with BackupReader(Path(result.backup_path)) as reader:
        return b"".join(reader.blocks(file))


def test_a_backup_contains_every_file_of_the_history_byte_for_byte(history: History, tmp_path: Path) -> None:
    result = history.create_backup()
    files = {f"{file.root}/{file.path}": file for file in result.manifest.files if file.kind == "file"}
    written = file_contents(tmp_path)
    assert {name for name in written if name.startswith("claude-code/projects")} <= files.keys()
    assert "claude-code/history.jsonl" in files
    assert any(name.endswith("tool-results/output.txt") for name in files)
    assert any(name.endswith("workspace.json") for name in files)
    for name, file in files.items():
        assert content(result, file) == written[name], name


def test_a_backup_contains_no_login_file(history: History) -> None:
    result = history.create_backup()
    assert not [file.path for file in result.manifest.files if "credentials" in file.path]
    assert b"t0p-secret-login" not in Path(result.backup_path).read_bytes()


def test_the_rows_of_a_database_are_in_the_backup_except_credentials(
    history: History, tmp_path: Path
) -> None:
    result = history.create_backup()
    databases = [file for file in result.manifest.files if file.kind == "database"]
    assert len(databases) >= 3
    for file in databases:
        copy = tmp_path / "copy.db"
        copy.write_bytes(content(result, file))
        rows, copied = database_rows(tmp_path / file.root / file.path), database_rows(copy)
        assert rows.keys() == copied.keys()
        for table in rows:
            kept = [row for row in rows[table] if not has_secret(row)]
            assert [row for row in copied[table] if row in kept] == kept, (file.path, table)
            assert not any(map(has_secret, copied[table])), (file.path, table)


def has_secret(row: tuple[object, ...]) -> bool:
    values = b"".join(value for value in row if isinstance(value, bytes))
    return SECRET in values or SECRET.hex().encode() in values


def test_no_credential_is_in_the_bytes_of_a_copied_database(history: History, tmp_path: Path) -> None:
    store = tmp_path / "cursor" / "User" / "globalStorage" / "state.vscdb"
    assert SECRET in store.read_bytes()
    result = history.create_backup()
    for file in result.manifest.files:
        assert SECRET not in content(result, file), file.path
        assert SECRET.hex().encode() not in content(result, file), file.path


def test_a_credential_that_the_tool_deleted_is_not_in_the_free_pages_of_the_copy(
    history: History, tmp_path: Path
) -> None:
    store = tmp_path / "cursor" / "User" / "globalStorage" / "state.vscdb"
    with closing(sqlite3.connect(store)) as db:
        db.execute("pragma secure_delete = off")
        db.executemany(
            "insert into ItemTable values (?, ?)",
            [(f"other{number}", b"0ld-t0ken" * 500) for number in range(9)],
        )
        db.commit()
        db.execute("delete from ItemTable where key like 'other%'")
        db.commit()
    assert b"0ld-t0ken" in store.read_bytes()
    result = history.create_backup()
    (file,) = (file for file in result.manifest.files if file.path.endswith("globalStorage/state.vscdb"))
    assert b"0ld-t0ken" not in content(result, file)


def test_credentials_are_kept_on_request(history: History) -> None:
    result = history.create_backup(with_secrets=True)
    (file,) = (file for file in result.manifest.files if file.path.endswith("globalStorage/state.vscdb"))
    assert SECRET in content(result, file)
    assert result.manifest.has_secrets


def test_a_backup_does_not_change_the_histories(history: History, tmp_path: Path) -> None:
    before = file_contents(tmp_path)
    history.create_backup()
    after = file_contents(tmp_path)
    assert {name: after[name] for name in before if not name.startswith("home/")} == {
        name: data for name, data in before.items() if not name.startswith("home/")
    }
    assert not {name for name in after if not name.startswith("home/")} - before.keys()


def test_the_archive_in_a_backup_lists_the_same_sessions(history: History, tmp_path: Path) -> None:
    result = history.create_backup()
    (file,) = (file for file in result.manifest.files if file.kind == "archive")
    other = tmp_path / "other"
    other.mkdir()
    (other / "archive.db").write_bytes(content(result, file))
    with History(roots=[], home=other) as copy:
        assert copy.list_sessions().data == history.list_sessions().data


def test_a_backup_is_a_zip_file_of_zst_files(history: History) -> None:
    result = history.create_backup()
    with zipfile.ZipFile(result.backup_path) as opened:
        assert opened.testzip() is None
        assert {info.compress_type for info in opened.infolist()} == {zipfile.ZIP_STORED}
        data = opened.read("claude-code/history.jsonl.zst")
    assert zstd.decompress(data) == b'{"display": "find", "timestamp": 1}\n'


def test_the_manifest_has_counts_roots_and_hashes(history: History, tmp_path: Path) -> None:
    manifest = history.create_backup().manifest
    assert manifest.version == "1.0"
    assert manifest.platform == sys.platform
    assert manifest.sources == ("claude-code", "cursor", "cursor-cli")
    assert manifest.stats.session_count == len(history.all_sessions())
    assert manifest.stats.message_count == sum(session.message_count for session in history.all_sessions())
    assert manifest.stats.file_size == Path(history.backups.list()[0].path).stat().st_size
    assert {root.path for root in manifest.roots if root.source} == {
        str(tmp_path / name) for name in manifest.sources
    }


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_a_backup_is_readable_by_its_owner_only(history: History) -> None:
    path = Path(history.create_backup().backup_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [child.name for child in path.parent.iterdir()] == [path.name]  # nothing temporary is left


def test_an_existing_backup_is_replaced_only_with_force(history: History, tmp_path: Path) -> None:
    target = tmp_path / "mine.zip"
    first = history.create_backup(target).manifest
    with pytest.raises(BackupError, match="--force"):
        history.create_backup(target)
    second = history.create_backup(target, force=True).manifest
    assert history.validate_backup(target).manifest == second != first


def test_a_file_that_appears_during_the_backup_is_not_replaced(history: History, tmp_path: Path) -> None:
    target = tmp_path / "mine.zip"

    def appear(step: BackupProgress) -> None:
        target.write_text("precious")

    with pytest.raises(BackupError, match="exists"):
        history.create_backup(target, progress=appear)
    assert target.read_text() == "precious"


def test_free_space_is_checked_first(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(target_file.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(BackupError, match=r"needs about .* MB"):
        history.create_backup(tmp_path / "mine.zip")
    assert not (tmp_path / "mine.zip").exists()


def test_a_full_disk_leaves_no_file(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(target_file.os, "link", fail)
    monkeypatch.setattr(Path, "replace", fail)
    (tmp_path / "backups").mkdir()
    with pytest.raises(BackupError, match="No space left"):
        history.create_backup(tmp_path / "backups" / "mine.zip")
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_damaged_database_is_skipped_and_named(history: History, tmp_path: Path) -> None:
    store = tmp_path / "cursor" / "User" / "globalStorage" / "state.vscdb"
    store.write_bytes(b"this is not a database" * 100)
    result = history.create_backup()
    assert [skipped.path for skipped in result.manifest.skipped] == [str(store)]
    assert history.validate_backup(Path(result.backup_path)).status == "warnings"


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of any bytes")
def test_a_file_whose_name_cannot_be_stored_is_named(history: History, tmp_path: Path) -> None:
    folder = tmp_path / "claude-code" / "projects" / "p"
    folder.mkdir()
    (folder / os.fsdecode(b"\xff.jsonl")).write_text("{}\n")
    result = history.create_backup()
    assert [(skipped.path.rpartition("/")[2], skipped.reason) for skipped in result.manifest.skipped] == [
        ("\\udcff.jsonl", "its name is not UTF-8")
    ]
    assert history.validate_backup(Path(result.backup_path)).status == "warnings"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize(
    "name",
    [
        "claude-code",
        "claude-code/projects",
        "cursor/User/globalStorage",
        "cursor/User/workspaceStorage",
        "cursor-cli/chats",
        "home/journal",
    ],
)
def test_a_folder_without_permission_is_named(history: History, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    mode = folder.stat().st_mode
    folder.chmod(0)
    try:
        skipped = [one.path for one in history.create_backup().manifest.skipped]
    finally:
        folder.chmod(mode)
    assert any(Path(path).is_relative_to(folder) for path in skipped)


@pytest.mark.parametrize("name", ["journal", "changes", "journal/shop-12345678"])
def test_an_unreadable_folder_beside_the_archive_is_named(
    history: History, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "home" / name
    folder.mkdir(parents=True)
    scandir = os.scandir

    def refuse(path: str | int) -> object:
        if str(path) == str(folder):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(files.os, "scandir", refuse)
    skipped = history.create_backup().manifest.skipped
    assert [(one.path, one.reason) for one in skipped] == [(str(folder), "it cannot be listed")]


def test_a_price_table_that_is_missing_is_named(history: History, tmp_path: Path) -> None:
    (tmp_path / "home" / "config.toml").write_text('prices = "gone.toml"\n')
    with make_history(tmp_path) as again:
        skipped = again.create_backup().manifest.skipped
    assert [(Path(one.path).name, one.reason) for one in skipped] == [
        ("gone.toml", "No such file or directory")
    ]


def test_progress_has_phases_and_ends_at_the_total(history: History) -> None:
    steps: list[BackupProgress] = []
    history.create_backup(progress=steps.append)
    phases = list(dict.fromkeys(step.phase for step in steps))
    assert phases == [
        "Listing files",
        "Backing up files",
        "Backing up databases",
        "Backing up the archive",
    ]
    assert steps[-1].done == steps[-1].total > 0
    assert all(one.done <= other.done for one, other in pairwise(steps))


def test_a_large_file_is_split_into_frames_and_restored(history: History, tmp_path: Path) -> None:
    large = tmp_path / "claude-code" / "projects" / "p" / "large.jsonl"
    large.parent.mkdir()
    large.write_bytes(bytes(20_000_000) + os.urandom(1_000_000))  # a ratio of 4,000, without padding
    result = history.create_backup()
    (file,) = (file for file in result.manifest.files if file.path == "projects/p/large.jsonl")
    assert content(result, file) == large.read_bytes()
    assert history.validate_backup(Path(result.backup_path)).status == "valid"
    with zipfile.ZipFile(result.backup_path) as opened:
        assert zstd.decompress(io.BytesIO(opened.read(file.entry)).read()) == large.read_bytes()
