"""A damaged or manipulated backup is detected."""

import random
import zipfile
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from backscroll.backup.container import MANIFEST, is_safe_path, make_comment
from backscroll.backup.reader import BackupReader
from backscroll.errors import InvalidBackupError
from backscroll.history.history import History
from tests.backup.histories import make_history, write_sources


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backup")
    write_sources(folder)
    with make_history(folder) as history:
        return Path(history.create_backup(folder / "good.zip").backup_path)


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(roots=[], home=tmp_path / "home")


def rewrite(
    backup: Path,
    target: Path,
    change: "dict[str, object] | None" = None,
    *,
    entries: "dict[str, bytes] | None" = None,
    replace: "dict[str, bytes] | None" = None,
    mode: int = 0o100600,
) -> Path:
    """Write a backup with a changed manifest, more entries or other content. The manifest's hash is valid."""
    with zipfile.ZipFile(backup) as source, zipfile.ZipFile(target, "w") as written:
        manifest = msgspec.json.decode(source.read(MANIFEST))
        for info in source.infolist():
            if info.filename != MANIFEST:
                data = (replace or {}).get(info.filename, source.read(info))
                written.writestr(zipfile.ZipInfo(info.filename), data)
        for name, data in (entries or {}).items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            written.writestr(info, data)
        for key, value in (change or {}).items():
            manifest["files"][0][key] = value
        data = msgspec.json.encode(manifest)
        written.writestr(MANIFEST, data)
        written.comment = make_comment(sha256(data).hexdigest())
    return target


def test_a_backup_is_valid_per_file(backup: Path, history: History) -> None:
    validation = history.validate_backup(backup)
    assert validation.status == "valid"
    assert validation.problems == ()
    assert {check.status for check in validation.files} == {"valid"}
    assert len(validation.files) > 8


def test_every_flipped_bit_is_detected(backup: Path, history: History, tmp_path: Path) -> None:
    random_ = random.Random(5)
    data = backup.read_bytes()
    damaged = tmp_path / "damaged.zip"
    for _ in range(120):
        position = random_.randrange(len(data))
        flipped = data[position] ^ (1 << random_.randrange(8))
        damaged.write_bytes(data[:position] + bytes([flipped]) + data[position + 1 :])
        validation = history.validate_backup(damaged)
        assert validation.status != "valid", position
        assert validation.problems or any(check.reason for check in validation.files), position


def test_a_damaged_file_is_named_and_the_others_stay_valid(
    backup: Path, history: History, tmp_path: Path
) -> None:
    data = bytearray(backup.read_bytes())
    with zipfile.ZipFile(backup) as opened:
        info = opened.getinfo("claude-code/history.jsonl.zst")
    data[info.header_offset + 30 + len(info.filename) + info.compress_size // 2] ^= 1
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(data)
    validation = history.validate_backup(damaged)
    assert validation.status == "invalid"
    bad = [check for check in validation.files if check.status != "valid"]
    assert [Path(check.path).name for check in bad] == ["history.jsonl"]
    assert bad[0].reason


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_backup_is_invalid(backup: Path, history: History, tmp_path: Path, share: float) -> None:
    data = backup.read_bytes()
    cut = tmp_path / "cut.zip"
    cut.write_bytes(data[: int(len(data) * share)])
    validation = history.validate_backup(cut)
    assert validation.status == "invalid"
    assert validation.problems


def test_swapped_entries_are_invalid(backup: Path, history: History, tmp_path: Path) -> None:
    with zipfile.ZipFile(backup) as opened:
        names = [info.filename for info in opened.infolist() if info.filename != MANIFEST][:2]
        first, second = (opened.read(name) for name in names)
    swapped = rewrite(backup, tmp_path / "swapped.zip", replace={names[0]: second, names[1]: first})
    validation = history.validate_backup(swapped)
    assert validation.status == "invalid"
    assert sum(check.status == "invalid" for check in validation.files) == 2


@pytest.mark.parametrize(
    "path",
    ["../x", "a/../../x", "/etc/x", "C:/x", "C:x", "\\\\host\\x", "a\\..\\x", "", "a//b", "./a", "a\0b"],
)
def test_a_path_out_of_its_root_is_rejected(
    backup: Path, history: History, tmp_path: Path, path: str
) -> None:
    assert not is_safe_path(path)
    unsafe = rewrite(backup, tmp_path / "unsafe.zip", {"path": path})
    validation = history.validate_backup(unsafe)
    assert validation.status == "invalid"
    assert "unsafe path" in validation.problems[0]


def test_an_entry_that_is_not_listed_is_rejected(backup: Path, tmp_path: Path) -> None:
    more = rewrite(backup, tmp_path / "more.zip", entries={"claude-code/more.zst": b""})
    with pytest.raises(InvalidBackupError, match="not in its manifest"):
        BackupReader(more)


def test_a_link_is_rejected(backup: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(backup) as opened:
        name = opened.infolist()[0].filename
    linked = tmp_path / "linked.zip"
    rewrite(backup, linked)
    with zipfile.ZipFile(linked, "a") as opened:
        opened.getinfo(name).external_attr = 0o120777 << 16
        opened._didModify = True  # type: ignore[attr-defined]
    with pytest.raises(InvalidBackupError, match="a link"):
        BackupReader(linked)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_duplicate_entry_is_rejected(backup: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(backup) as opened:
        name = opened.infolist()[0].filename
    twice = rewrite(backup, tmp_path / "twice.zip", entries={name: b"other"})
    with pytest.raises(InvalidBackupError, match="twice"):
        BackupReader(twice)


def test_a_file_that_is_too_large_for_its_compressed_size_is_rejected(
    backup: Path, history: History, tmp_path: Path
) -> None:
    bomb = rewrite(backup, tmp_path / "bomb.zip", {"size": 10**12})
    validation = history.validate_backup(bomb)
    assert validation.status == "invalid"
    assert [check.reason for check in validation.files if check.status != "valid"] == [
        "more than 1000 times larger than its compressed data"
    ]


def test_a_file_is_not_decompressed_beyond_its_listed_size(
    backup: Path, history: History, tmp_path: Path
) -> None:
    shorter = rewrite(backup, tmp_path / "shorter.zip", {"size": 3})
    (bad,) = (check for check in history.validate_backup(shorter).files if check.status != "valid")
    assert bad.reason == "has more bytes than listed (3)"


def test_a_missing_file_and_a_text_file_are_no_backups(history: History, tmp_path: Path) -> None:
    with pytest.raises(InvalidBackupError, match="There is no backup"):
        history.backups.manifest(tmp_path / "none.zip")
    (tmp_path / "text.zip").write_text("hello")
    with pytest.raises(InvalidBackupError, match="not a ZIP file"):
        history.backups.manifest(tmp_path / "text.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as opened:
        opened.writestr("a", b"b")
    with pytest.raises(InvalidBackupError, match="not written by Backscroll"):
        history.backups.manifest(tmp_path / "other.zip")
