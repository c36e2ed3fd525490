"""Of 300 damaged and hostile backups, none restores a wrong byte or writes elsewhere. Each gives a reason."""

import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from backscroll.backup.container import MANIFEST
from backscroll.config import NamedRoot
from backscroll.errors import BackscrollError
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.testing.claude_code import Transcript
from tests.backup.histories import file_contents
from tests.backup.test_foreign_backups import forge
from tests.backup.test_own_files import CHANGE, OWN, write_own
from tests.backup.test_verify import rewrite

COUNT = 300  # spread over the kinds of damage

Damage = Callable[[Path, Path, random.Random], None]


def flip_bit(good: Path, bad: Path, random_: random.Random) -> None:
    data = bytearray(good.read_bytes())
    data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
    bad.write_bytes(data)


def flip_many(good: Path, bad: Path, random_: random.Random) -> None:
    data = bytearray(good.read_bytes())
    for _ in range(50):
        data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
    bad.write_bytes(data)


def cut(good: Path, bad: Path, random_: random.Random) -> None:
    data = good.read_bytes()
    bad.write_bytes(data[: random_.randrange(len(data))])


def remove_middle(good: Path, bad: Path, random_: random.Random) -> None:
    data = good.read_bytes()
    start = random_.randrange(len(data))
    bad.write_bytes(data[:start] + data[start + random_.randrange(1, 2000) :])


def insert_bytes(good: Path, bad: Path, random_: random.Random) -> None:
    data = good.read_bytes()
    start = random_.randrange(len(data))
    bad.write_bytes(data[:start] + random_.randbytes(random_.randrange(1, 2000)) + data[start:])


def swap_entries(good: Path, bad: Path, random_: random.Random) -> None:
    with zipfile.ZipFile(good) as opened:
        names = [info.filename for info in opened.infolist() if info.filename != MANIFEST]
        if len(names) < 2:  # a filtered backup has only an archive
            rewrite(good, bad, replace={names[0]: random_.randbytes(99)})
            return
        one, other = random_.sample(names, 2)
        rewrite(good, bad, replace={one: opened.read(other), other: opened.read(one)})


def traverse(good: Path, bad: Path, random_: random.Random) -> None:
    path = random_.choice(["../../escaped", "/escaped", "a/../../../escaped", "..\\escaped", "C:\\escaped"])
    rewrite(good, bad, {"path": path})


def traverse_entry(good: Path, bad: Path, random_: random.Random) -> None:
    rewrite(good, bad, entries={f"{'../' * random_.randrange(1, 5)}escaped.zst": b"escaped"})


def bomb(good: Path, bad: Path, random_: random.Random) -> None:
    rewrite(good, bad, {"size": 10 ** random_.randrange(8, 15)})


def other_hash(good: Path, bad: Path, random_: random.Random) -> None:
    rewrite(good, bad, {"sha256": random_.randbytes(32).hex()})


def own_entries(good: Path) -> list[str]:
    """Return the entries of journals, prices, settings and changes; that of the archive without any."""
    with zipfile.ZipFile(good) as opened:
        names = [info.filename for info in opened.infolist() if info.filename.startswith("archive/")]
    return [name for name in names if name != "archive/archive.db.zst"] or names


def damage_own_file(good: Path, bad: Path, random_: random.Random) -> None:
    rewrite(good, bad, replace={random_.choice(own_entries(good)): random_.randbytes(200)})


def add_own_file(good: Path, bad: Path, path: str, content: bytes) -> None:
    def change(manifest: dict[str, object]) -> None:
        files = manifest["files"]
        assert isinstance(files, list)
        kept = [file for file in files if file["path"] != path]
        like = {"kind": "file", "root": "archive", "path": path, "entry": "forged.zst", "session_ids": []}
        manifest["files"] = [*kept, {**files[0], **like}]

    forge(good, bad, change, {"forged.zst": content})


def hostile_name(good: Path, bad: Path, random_: random.Random) -> None:
    names = [
        "journal/../../escaped.md",
        "journal/..\\..\\escaped.md",
        "journal//escaped.md",
        "journal/.md/..",
        "changes/changes.lock",
        "changes/..",
        "changes/20261119-000000-000000/../../escaped",
        "x.toml",
        "config.toml/x",
        "spool/escaped",
        "mcp-token",
        "../config.toml",
        "index/escaped",
        "journal/x.sh",
    ]
    add_own_file(good, bad, random_.choice(names), b"escaped")


def hostile_change(good: Path, bad: Path, random_: random.Random) -> None:
    """Add a change that recovery or undo would take for one of this machine."""
    victim = str(good.parent / "victim")
    change_id = f"2026{random_.randrange(10**4):04}-000000-000000"
    operation = {"path": victim, "before": None, "after": "0" * 64, "mode": 0o644, "staged": victim}
    record = {
        "id": change_id,
        "at": "2026-11-19T00:00:00Z",
        "what": "\x1b[2J",
        "sessions": [],
        "state": random_.choice(["applying", "applied", "undoing", "preparing", "undone", "escaped"]),
        "files": [operation],
        "created_folders": [str(good.parent / "outside")],
    }
    content = random_.choice([msgspec.json.encode(record), random_.randbytes(300), b"[" * 5_000])
    add_own_file(good, bad, f"changes/{change_id}/change.json", content)


def hostile_settings(good: Path, bad: Path, random_: random.Random) -> None:
    settings = [
        b"exclude = 3",
        b"= no TOML",
        random_.randbytes(50),
        b"x = " + b"[" * 5_000,
        b'prices = "../../escaped.toml"',
        b'prices = "/escaped.toml"',
        b'prices = "changes/escaped"',
        b'prices = "archive.db"',
    ]
    add_own_file(good, bad, "config.toml", random_.choice(settings))


HOSTILE: list[Damage] = [hostile_change, hostile_settings]  # valid, and must do nothing wrong
DAMAGES: list[Damage] = [
    flip_bit,
    flip_many,
    cut,
    remove_middle,
    insert_bytes,
    swap_entries,
    traverse,
    traverse_entry,
    bomb,
    other_hash,
    damage_own_file,
    hostile_name,
    *HOSTILE,
]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_no_corrupted_backup_restores_a_wrong_byte(damage: Damage, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    root, home = inside / "root", inside / "home"
    for seed in range(3):
        Transcript(seed=seed).user(f"find ferry {seed}").assistant("Late." * 99).write(root)
    with History(roots=[NamedRoot("claude-code", root)], home=home) as history:
        history.sync()
    write_own(home)
    history = History(roots=[NamedRoot("claude-code", root)], home=home)
    backups = (tmp_path / "good.zip", tmp_path / "filtered.zip")
    history.create_backup(backups[0])
    history.create_backup(backups[1], filter=Filter(source="claude-code"))
    history.close()
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "outside").mkdir()
    own = {name: text.encode() for name, text in OWN.items()} | {
        "prices.toml": OWN["mine/table.toml"].encode()
    }
    contents = file_contents(root)
    shutil.rmtree(home / "changes" / CHANGE)
    bad = tmp_path / "bad.zip"
    random_ = random.Random(damage.__name__)
    for number in range(-(-COUNT // len(DAMAGES))):
        bad.unlink(missing_ok=True)
        damage(backups[number % 2 if damage not in HOSTILE else 0], bad, random_)
        shutil.rmtree(root, ignore_errors=True)
        for name in own:
            (home / name).unlink(missing_ok=True)
        history = History(roots=[NamedRoot("claude-code", root)], home=home)
        validation = history.validate_backup(bad)
        if damage not in HOSTILE:
            reasons = [check.reason for check in validation.files if check.status != "valid"]
            assert validation.status != "valid", number
            assert all(reasons) and (reasons or validation.problems), number
        changes = []
        try:
            history.backups.details(bad)
            for options in ({"source": "claude-code"}, {"with_config": True}):
                result = history.restore_backup(bad, **options)
                changes.append(result.change_id)
        except BackscrollError as error:
            assert str(error).endswith("."), number
        history.close()
        restored = file_contents(root) if root.exists() else {}
        assert restored == {name: contents[name] for name in restored}, number
        written = {name: data for name, data in file_contents(home).items() if name in own}
        if damage is hostile_settings:
            written.pop("config.toml", None)
        assert written == {name: own[name] for name in written}, number
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"inside", "good.zip", "filtered.zip", "bad.zip", "victim", "outside"}, number
        assert (tmp_path / "victim").read_text() == "mine"
        assert {path.name for path in inside.iterdir()} <= {"root", "home"}, number
        assert not [name for name in file_contents(inside) if "escaped" in name or "x.sh" in name], number
        recorded = {path.name for path in (home / "changes").iterdir() if path.is_dir()}
        assert recorded <= {change.id for change in history.list_changes()}, number
        assert {one for one in changes if one} <= recorded
