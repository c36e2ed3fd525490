"""A backup contains what exists only in the folder of the archive: journals, prices, settings, changes."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import Filter
from tests.backup.histories import SOURCES, file_contents, make_history, write_sources
from tests.cli.run_command import Result, backscroll

OWN = {
    "config.toml": 'exclude = ["~/private/**"]\nprices = "mine/table.toml"\n',
    "mine/table.toml": 'checked = 2026-11-16\n[[price]]\nmodels = ["x"]\ninput = 1\noutput = 2\n',
    "journal/shop-12345678/daily/2026-11-17-journal.md": "# 2026-11-17\n\nan entry\n",
    "journal/shop-12345678/daily/2026-11-18-journal.md": "# 2026-11-18\n\na reflection and a context\n",
    "journal/shop-12345678/summaries/week/2026-W47-summary.md": "# Week 47\n",
}
OTHER = {
    "journal/locks/0011223344556677.lock": "",
    "journal.log": "an error\n",
    "mcp-token": "t0ken",
    "spool/event.json": "{}",
}
CHANGE = "20261117-052555-250000"


def write_own(home: Path) -> None:
    for name, text in {**OWN, **OTHER}.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    folder = home / "changes" / CHANGE
    folder.mkdir(parents=True)
    record = {
        "id": CHANGE,
        "at": "2026-11-17T05:25:55Z",
        "what": "Move a session",
        "sessions": [],
        "state": "applied",
    }
    (folder / "change.json").write_text(json.dumps(record))
    (folder / "rows.msgpack").write_bytes(b"\x90")
    (folder / "0").write_text("the file as it was\n")
    with closing(sqlite3.connect(folder / "1")) as db:  # may contain logins
        db.execute("create table t (secret)")
        db.commit()


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return the folder of a machine with all of it, and its backup beside it."""
    folder = tmp_path / "old"
    folder.mkdir()
    write_sources(folder)
    with make_history(folder) as history:
        history.annotations.tag(history.all_sessions()[0].ref, ["keep"])
    write_own(folder / "home")
    with open_history(folder) as history:
        history.create_backup(tmp_path / "history.zip")
    return folder


def open_history(folder: Path) -> History:
    return History(roots=[NamedRoot(name, folder / name) for name in SOURCES], home=folder / "home")


def run(folder: Path, *arguments: str | Path) -> Result:
    roots = [option for name in SOURCES for option in ("--root", f"{name}={folder / name}")]
    return backscroll("--home", folder / "home", *roots, *arguments)


def own_contents(folder: Path) -> dict[str, str]:
    """Return the files in the folder of the archive that a restore may write, as text."""
    found = file_contents(folder / "home")
    names = ("archive.db", "index/", "sync", "changes/changes.lock", "backup-cache/")
    return {name: data.decode() for name, data in found.items() if not name.startswith(names)}


def test_everything_that_exists_nowhere_else_is_in_the_backup(machine: Path, tmp_path: Path) -> None:
    with open_history(machine) as history:
        manifest = history.backups.manifest(tmp_path / "history.zip")
        details = history.backups.details(tmp_path / "history.zip")
    found = {file.path for file in manifest.files if file.root == "archive"}
    changes = {f"changes/{CHANGE}/{name}" for name in ("change.json", "rows.msgpack", "0")}
    assert found == {"archive.db", "prices.toml", *OWN.keys() - {"mine/table.toml"}, *changes}
    assert details.settings == OWN["config.toml"]
    assert [(change.id, change.what) for change in details.changes] == [(CHANGE, "Move a session")]


def test_show_lists_it(machine: Path, tmp_path: Path) -> None:
    shown = run(machine, "backup", "show", tmp_path / "history.zip").out
    assert "with 3 files of journals, prices.toml, config.toml, 1 change of the change log" in shown
    assert '    exclude = ["~/private/**"]' in shown
    assert f"{CHANGE} Move a session" in shown
    document = json.loads(run(machine, "backup", "show", tmp_path / "history.zip", "--json").out)
    assert (document["settings"], document["changes"][0]["id"]) == (OWN["config.toml"], CHANGE)


@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.parametrize("with_config", [False, True])
def test_a_restore_adds_it_and_never_the_change_log(
    machine: Path, tmp_path: Path, with_config: bool, is_used: bool
) -> None:
    new = tmp_path / "new"
    new.mkdir()
    day = "journal/shop-12345678/daily/2026-11-17-journal.md"
    if is_used:
        write_sources(new)
        make_history(new).close()
        (new / "home" / day).parent.mkdir(parents=True)
        (new / "home" / day).write_text("written here\n")
    maps = ("--map", f"{machine}={new}")
    config = ("--config",) if with_config else ()
    result = run(new, "backup", "restore", tmp_path / "history.zip", "--yes", *maps, *config)
    assert result.code == 0, result.err
    assert ("The settings (config.toml) are not restored." in result.out) is not with_config
    found = own_contents(new)
    expected = {name: OWN[name] for name in OWN if name.startswith("journal/")}
    if is_used:
        expected[day] = "written here\n"
        assert f"keep       {new / 'home' / day} (exists and differs)" in result.out
    if with_config:
        expected |= {name: OWN[name] for name in ("config.toml", "mine/table.toml")}
    else:
        expected["prices.toml"] = OWN["mine/table.toml"]
    changes = [line.split()[0] for line in run(new, "changes").out.splitlines()]
    assert CHANGE not in changes
    assert {name: found[name] for name in found if not name.startswith("changes/")} == expected
    assert {name.split("/")[1] for name in found if name.startswith("changes/")} == set(changes)
    assert run(new, "stats").code == 0
    with open_history(new) as history:
        assert any("keep" in session.tags for session in history.all_sessions())
    assert run(new, "undo", "--yes").code == 0
    left = {name for name in own_contents(new) if not name.startswith("changes/")}
    assert left == ({day} if is_used else set())


def test_the_backup_is_preferred_on_request(machine: Path, tmp_path: Path) -> None:
    (machine / "home" / "config.toml").write_text("exclude = []\n")
    day = machine / "home" / "journal" / "shop-12345678" / "daily" / "2026-11-17-journal.md"
    day.write_text("changed\n")
    options = ("--yes", "--config")
    kept = run(machine, "backup", "restore", tmp_path / "history.zip", *options)
    assert (kept.code, (machine / "home" / "config.toml").read_text()) == (0, "exclude = []\n")
    run(machine, "backup", "restore", tmp_path / "history.zip", *options, "--prefer", "backup")
    assert (machine / "home" / "config.toml").read_text() == OWN["config.toml"]
    assert day.read_text() == "# 2026-11-17\n\nan entry\n"


def test_a_part_of_a_backup_brings_none_of_it(machine: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    with open_history(machine) as history:
        ref = history.all_sessions()[0].ref
        filtered = history.create_backup(tmp_path / "filtered.zip", filter=Filter(source="cursor"))
    assert [file.path for file in filtered.manifest.files] == ["archive.db"]
    maps = ("--map", f"{machine}={new}")
    for options in (("--source", "cursor"), ("--session", ref)):
        run(new, "backup", "restore", tmp_path / "history.zip", "--yes", "--config", *maps, *options)
        assert not [name for name in own_contents(new) if not name.startswith("changes/")]


def test_an_incremental_backup_refers_to_journals_that_stay(machine: Path, tmp_path: Path) -> None:
    day = machine / "home" / "journal" / "shop-12345678" / "daily" / "2026-11-18-journal.md"
    day.write_text("one more\n")
    with open_history(machine) as history:
        result = history.create_backup(tmp_path / "second.zip", base=tmp_path / "history.zip")
        assert history.backups.details(tmp_path / "second.zip").settings == OWN["config.toml"]
        assert history.validate_backup(tmp_path / "second.zip").status == "valid"
    own = [file for file in result.manifest.files if file.root == "archive" and file.kind == "file"]
    assert [file.path for file in own if file.backup_id is None] == [
        day.relative_to(machine / "home").as_posix()
    ]
