"""Of 200 corrupted backups, none restores a wrong byte, and each gives a reason."""

import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from backscroll.backup.container import MANIFEST
from backscroll.config import NamedRoot
from backscroll.errors import BackscrollError
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.testing.claude_code import Transcript
from tests.backup.histories import file_contents
from tests.backup.test_verify import rewrite

COUNT = 200  # spread over the kinds of damage

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
]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_no_corrupted_backup_restores_a_wrong_byte(damage: Damage, tmp_path: Path) -> None:
    root = tmp_path / "inside" / "root"
    for seed in range(3):
        Transcript(seed=seed).user(f"find ferry {seed}").assistant("Late." * 99).write(root)
    history = History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "inside" / "home")
    history.sync()
    bad, backups = tmp_path / "bad.zip", (tmp_path / "good.zip", tmp_path / "filtered.zip")
    history.create_backup(backups[0])
    history.create_backup(backups[1], filter=Filter(source="claude-code"))
    contents = file_contents(root)
    random_ = random.Random(damage.__name__)
    for number in range(COUNT // len(DAMAGES)):
        bad.unlink(missing_ok=True)
        damage(backups[number % 2], bad, random_)
        shutil.rmtree(root, ignore_errors=True)
        validation = history.validate_backup(bad)
        reasons = [check.reason for check in validation.files if check.status != "valid"]
        assert validation.status != "valid", number
        assert all(reasons) and (reasons or validation.problems), number
        try:
            history.restore_backup(bad, source="claude-code")
        except BackscrollError as error:
            assert str(error).endswith("."), number
        restored = file_contents(root) if root.exists() else {}
        assert restored == {name: contents[name] for name in restored}, number
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"inside", "good.zip", "filtered.zip", "bad.zip"}, number
        assert {path.name for path in (tmp_path / "inside").iterdir()} <= {"root", "home"}, number
