"""Which backups are kept, nightly backups, and the name ``latest``."""

import json
import random
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from backscroll.backup import create, reader
from backscroll.errors import BackupError, UsageError
from backscroll.history import backups as history_backups
from backscroll.history.history import History
from backscroll.model.backup import KeepRules, NightlyResult
from backscroll.model.session import Filter
from backscroll.testing.claude_code import Transcript
from tests.backup.histories import STORE, make_history, write_sources
from tests.cli.run_command import Shell

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)  # a Thursday; noon is the same day in most time zones


class Clock(datetime):
    """The time of new backups."""

    at = NOW

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return cls.at.astimezone(tz)


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    write_sources(tmp_path)
    monkeypatch.setattr(create, "datetime", Clock)
    monkeypatch.setattr(history_backups, "datetime", Clock)
    monkeypatch.setattr(Clock, "at", NOW)
    (tmp_path / "backups").mkdir()
    return make_history(tmp_path, "claude-code")


def create_at(history: History, folder: Path, days_ago: float, name: str = "", **options: object) -> Path:
    Clock.at = NOW - timedelta(days=days_ago)
    path = folder / (name or f"{days_ago:05}.zip")
    return Path(history.create_backup(path, **options).backup_path)  # type: ignore[arg-type]


def reasons(history: History, folder: Path, **rules: int) -> dict[str, tuple[str, ...]]:
    verdicts = history.backups.plan_prune(KeepRules(**rules), folder)
    return {Path(one.backup.path).stem: one.reasons for one in verdicts if one.is_kept}


def flip_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[random.Random(1).randrange(len(data) // 2)] ^= 1
    path.write_bytes(data)


def test_the_rules_are_those_of_restic(history: History, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    for days in range(40):
        create_at(history, folder, days, f"{NOW - timedelta(days=days):%m-%d}.zip")
    create_at(history, folder, 0.1, "11-19-morning.zip")
    found = reasons(history, folder, last=2, daily=3, weekly=4, monthly=12)
    assert found == {
        "11-19": ("last", "daily", "weekly", "monthly"),
        "11-19-morning": ("last",),
        "11-18": ("daily",),
        "11-17": ("daily",),
        "11-15": ("weekly",),  # Sunday
        "11-08": ("weekly",),
        "11-01": ("weekly",),
        "10-31": ("monthly",),
        "10-11": ("monthly",),  # the oldest: there are fewer than twelve months
    }
    assert set(reasons(history, folder, last=100)) == {path.stem for path in folder.iterdir()}
    assert list(reasons(history, folder, weekly=1)) == ["11-19"]
    with pytest.raises(UsageError):
        history.backups.plan_prune(KeepRules(), folder)


def test_only_complete_and_valid_backups_count(history: History, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    for days, name in ((6, "oldest"), (5, "good"), (4, "damaged"), (2, "base"), (1, "changed")):
        create_at(history, folder, days, f"{name}.zip")
    create_at(history, folder, 0.5, "filtered.zip", filter=Filter(source="claude-code"))
    create_at(history, folder, 0.4, "needs.zip", base=folder / "base.zip")
    flip_bit(folder / "damaged.zip")
    flip_bit(folder / "base.zip")  # so that "needs" is not valid either
    (folder / "changed.zip").write_bytes((folder / "changed.zip").read_bytes()[:-100])
    (folder / "notes.zip").write_text("mine")
    assert reasons(history, folder, last=1) == {
        "good": ("last",),
        "damaged": ("damaged",),
        "base": ("damaged", "base"),
        "needs": ("damaged",),
        "filtered": ("filtered",),
        "changed": ("unreadable",),
        "notes": ("unreadable",),
    }


def test_an_incomplete_backup_does_not_push_out_a_complete_one(tmp_path: Path, history: History) -> None:
    folder = tmp_path / "backups"
    broken = tmp_path / "claude-code" / "projects" / "-broken"
    create_at(history, folder, 9, "complete-9.zip")
    for days in range(8, 0, -1):
        if days == 5:
            create_at(history, folder, 5, "complete-5.zip")
            continue
        broken.symlink_to("nowhere")
        create_at(history, folder, days, f"incomplete-{days}.zip")
        broken.unlink()
    assert reasons(history, folder, last=2) == {
        "incomplete-1": ("last", "incomplete"),
        "incomplete-2": ("last", "incomplete"),
        "complete-5": ("last",),
        "complete-9": ("last",),
    }


def test_the_bases_of_a_kept_backup_are_kept(history: History, tmp_path: Path) -> None:
    folder, log = tmp_path / "backups", tmp_path / "claude-code" / "history.jsonl"
    create_at(history, folder, 5, "unused.zip")
    previous = create_at(history, folder, 4, "full.zip")
    for days in (3, 2, 1):
        log.write_text(f"{days}\n")
        previous = create_at(history, folder, days, f"step-{days}.zip", base=previous)
    found = {one.backup.path: one for one in history.backups.plan_prune(KeepRules(last=1), folder)}
    assert found[str(folder / "full.zip")].needed_by == ("step-1.zip",)
    for one in found.values():
        if not one.is_kept:
            history.backups.delete(one.backup)
    assert not (folder / "unused.zip").exists()
    assert history.validate_backup(folder / "step-1.zip").status == "valid"


def test_each_machine_counts_for_itself(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "backups"

    def run_on(host: str, days_ago: int) -> NightlyResult:
        Clock.at = NOW - timedelta(days=days_ago)
        monkeypatch.setattr("platform.node", lambda: host)
        return history.backups.nightly(folder, KeepRules(last=1))

    for days in (3, 2, 1):
        for host in ("laptop", "desktop"):
            run_on(host, days)
    result = run_on("laptop", 0)
    hosts = {one.backup.path: one.backup.manifest.host for one in result.verdicts if one.backup.manifest}
    others = {one.backup.path for one in result.verdicts if one.reasons[:1] == ("other",)}
    assert others == {path for path, host in hosts.items() if host == "desktop"}
    newest = {one.id for one in result.created.manifest.bases}
    assert newest and newest.isdisjoint(
        one.backup.manifest.id
        for one in result.verdicts
        if one.backup.path in others and one.backup.manifest is not None
    )
    kept = history.backups.plan_prune(KeepRules(last=1), folder)
    assert sorted(hosts[one.backup.path] for one in kept if "last" in one.reasons) == ["desktop", "laptop"]
    for one in kept:
        assert history.validate_backup(one.backup.path).status == "valid"


def test_prune_shows_a_plan_first(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    Transcript(seed=1).user("find the ferry").assistant("Found.").write(shell.root)
    folder = tmp_path / "b"
    for number in range(3):
        shell.run("backup", "create", "-o", folder / f"{number}.zip", "--create")
    dry = shell.run("backup", "prune", folder, "--keep-last", "1", "--keep-daily", "1", "--dry-run")
    assert dry.code == 0, dry.err
    lines = [line.split() for line in dry.out.splitlines()[:-1]]
    assert [(line[0], Path(line[3]).name, line[4:]) for line in lines] == [
        ("keep", "2.zip", ["last,", "daily"]),
        ("delete", "1.zip", []),
        ("delete", "0.zip", []),
    ]
    assert dry.out.splitlines()[-1] == "Nothing was deleted (dry run)."
    planned = shell.json("backup", "prune", folder, "--keep-last", "1", "--dry-run")
    assert (len(planned["removable"]), planned["deleted"]) == (2, [])
    assert shell.run("backup", "prune", folder, "--yes").code == 2
    assert len(list(folder.iterdir())) == 3
    done = shell.run("backup", "prune", folder, "--keep-last", "1", "--yes")
    assert (done.code, done.out.splitlines()[-1]) == (0, "Deleted 2 backups.")
    assert [path.name for path in folder.iterdir()] == ["2.zip"]


# Latest


def test_latest_is_the_newest_backup(history: History, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    with pytest.raises(BackupError, match="There is no backup in"):
        history.validate_backup(folder / "latest")
    with pytest.raises(BackupError, match="There is no complete and valid backup of this archive in"):
        history.create_backup(folder / "x.zip", base="latest")
    create_at(history, folder, 3, "z.zip")
    good = create_at(history, folder, 2, "a.zip")
    flip_bit(create_at(history, folder, 1, "damaged.zip"))
    filtered = create_at(history, folder, 0.5, "filtered.zip", filter=Filter(source="claude-code"))
    assert history.backups.find(folder / "latest") == filtered
    for base in ("latest", folder / "latest"):
        result = history.create_backup(folder / f"from-{Path(base).parent.name}.zip", base=base)
        assert [one.name for one in result.manifest.bases] == [good.name]
        Path(result.backup_path).unlink()
    default = history.create_backup().backup_path
    assert history.backups.find("latest") == Path(default)
    cut = folder / "backscroll-20261119-120000.zip"  # newer than all others
    cut.write_bytes(good.read_bytes()[:-100])
    assert history.validate_backup(folder / "latest").status == "invalid"


# Nightly


def test_a_nightly_backup_is_incremental_until_its_chain_is_old(history: History, tmp_path: Path) -> None:
    folder, log = tmp_path / "backups", tmp_path / "claude-code" / "history.jsonl"
    create_at(history, folder, 100, "before-the-upgrade.zip")
    full: list[int] = []
    for day in range(70):
        Clock.at = NOW + timedelta(days=day)
        log.write_text(f"day {day}\n")
        result = history.backups.nightly(folder)
        assert result.validation.status == "valid"
        if not result.created.manifest.bases:
            full.append(day)
    assert full == [0, 30, 60]
    kept = history.backups.plan_prune(KeepRules(daily=7, weekly=4, monthly=12), folder)
    assert len(kept) < 70
    newest = [one for one in kept if "daily" in one.reasons]
    assert len(newest) >= 7
    for one in kept:
        assert history.validate_backup(one.backup.path).status == "valid"
    assert (folder / "before-the-upgrade.zip").exists()
    for month in range(1, 14):
        Clock.at = NOW + timedelta(days=70 + 31 * month)
        history.backups.nightly(folder)
    assert len(list(folder.iterdir())) < 40  # chains end, so their bases can be deleted


def test_nothing_is_deleted_if_the_new_backup_is_invalid(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "backups"
    for days in (3, 2, 1):
        create_at(history, folder, days, f"backscroll-2026111{9 - days}-120000.zip")
    verify = reader.verify_backup

    def damage_first(path: Path, *arguments: object) -> object:
        path.write_bytes(path.read_bytes()[:-100])
        return verify(path, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(history_backups, "verify_backup", damage_first)
    result = history.backups.nightly(folder, KeepRules(last=1))
    assert (result.validation.status, result.deleted) == ("invalid", ())
    assert len(list(folder.iterdir())) == 4


def test_nightly_prints_and_logs_one_line(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    Transcript(seed=1).user("find the ferry").assistant("Found.").write(shell.root)
    folder, log = tmp_path / "disk", shell.home / "nightly.log"
    failed = shell.run("backup", "nightly", "--dir", folder)
    assert (failed.code, failed.out) == (1, "")
    assert "There is no folder" in failed.err
    assert "failed: There is no folder" in log.read_text()
    nothing = ("--create", "--keep-daily", "0", "--keep-weekly", "0", "--keep-monthly", "0")
    assert shell.run("backup", "nightly", "--dir", folder, *nothing).code == 2
    assert not folder.exists()
    log.write_text("failed\n")
    lines = []
    for options in (("--create",), (), ("--keep-last", "1", "--keep-daily", "0", "--keep-weekly", "0")):
        done = shell.run("backup", "nightly", "--dir", folder, *options)
        assert (done.code, done.err) == (0, ""), done.err
        lines += done.out.splitlines()
    assert log.read_text().splitlines()[1:] == lines
    assert len(lines) == 3
    assert "1 session, 2 of 2 files written" in lines[0]
    assert lines[0].endswith("; valid; 1 kept, 0 deleted")
    assert "0 of 2 files written" in lines[1]
    (shell.root / "projects" / "-unmounted").symlink_to("nowhere")
    incomplete = shell.run("backup", "nightly", "--dir", folder)
    assert (incomplete.code, "valid with warnings; 1 file not included" in incomplete.out) == (3, True)
    document = json.loads(shell.run("backup", "nightly", "--dir", folder, "--json").out)
    assert document["status"] == "warnings"
    assert {"backup_path", "kept", "deleted"} <= document.keys()


def test_a_nightly_backup_of_a_locked_database_is_incomplete(tmp_path: Path) -> None:
    write_sources(tmp_path)
    (tmp_path / STORE).write_bytes(b"no database" * 99)
    with make_history(tmp_path) as history:
        result = history.backups.nightly()
    assert result.validation.status == "warnings"
    assert [one.reasons for one in result.verdicts] == [("daily", "weekly", "monthly", "incomplete")]
