"""Damaged archives, indexes and folders: a clear error message, or automatic repair."""

import os
import random
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.cli.app import run
from backscroll.cli.messages import report_errors
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_settings

READING = (("list",), ("list", "--no-sync"), ("search", "harbour"), ("show", "1"), ("archive", "status"))
WRITING = (("sync",), ("archive", "compact"))


class Shell:
    """Runs the command in this process, on a synced history of forty sessions."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.root = folder / "claude"
        self.home = folder / "home"
        self._whole = folder / "whole"
        self._capture = capture
        self._patch = patch

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Return exit code, output and errors. An exception fails the test."""
        options = ["backscroll", "--home", str(self.home), "--root", f"claude-code={self.root}"]
        self._patch.setattr(sys, "argv", [*options, *arguments])
        self._capture.readouterr()
        try:
            with report_errors():
                run()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = self._capture.readouterr()
        return code, out, err

    def restore(self) -> None:
        """Restore the home folder."""
        if self.home.is_file():
            self.home.unlink()
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self._whole, self.home)

    def save(self) -> None:
        shutil.copytree(self.home, self._whole)


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell(tmp_path, capsys, monkeypatch)
    write_settings(shell.root, cleanup_days=36500)
    for seed in range(40):
        Transcript(seed=seed).user(f"the harbour {seed} " + "x y z " * 300).assistant("wet").write(shell.root)
    assert shell.run("sync")[0] == 0
    shell.save()
    return shell


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite_with_noise(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(50_000))


def damage_pages(path: Path) -> None:
    """Damage all pages but the roots of tables, so that the archive opens and fails later."""
    data = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as db:
        size = db.execute("pragma page_size").fetchone()[0]
        roots = {page for (page,) in db.execute("select rootpage from sqlite_schema")}
    for page in range(2, len(data) // size):
        if page + 1 not in roots or page > 100:
            data[page * size : (page + 1) * size] = random.Random(page).randbytes(size)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [truncate, overwrite_with_noise, damage_pages])
def test_a_damaged_archive_gives_an_error_with_advice(shell: Shell, damage: Callable[[Path], None]) -> None:
    for arguments in (("search", "harbour"), ("show", "1"), ("sync",), ("archive", "compact")):
        shell.restore()
        damage(shell.home / "archive.db")
        before = (shell.home / "archive.db").stat().st_size
        code, out, err = shell.run(*arguments)
        assert (code, out) == (1, ""), arguments
        assert str(shell.home / "archive.db") in err
        assert "archive repair" in err
        assert len(err.splitlines()) == 1
        assert (shell.home / "archive.db").stat().st_size == before, "the file is not touched"


def test_verify_names_damaged_messages_and_originals(shell: Shell) -> None:
    with closing(sqlite3.connect(shell.home / "archive.db")) as db, db:
        for table in ("message_chunk", "raw_segment"):
            for number, body in db.execute(f"select rowid, body from {table}").fetchall():  # noqa: S608
                bad = bytes(byte ^ 0x55 if n > 8 and n % 7 == 0 else byte for n, byte in enumerate(body))
                db.execute(f"update {table} set body = ? where rowid = ?", [bad, number])  # noqa: S608
    extract = ("archive", "extract", "1", "--output", str(shell.home / "out"))
    for arguments in (("search", "--no-sync", "harbour"), ("show", "1"), extract):
        code, out, err = shell.run(*arguments)
        assert (code, out) == (1, "")
        assert "damaged" in err
    code, out, _ = shell.run("archive", "verify")
    assert code == 3
    assert out.count("the original of unit") == out.count("the messages of fragment") == 40


def test_doctor_reports_a_damaged_archive(shell: Shell) -> None:
    overwrite_with_noise(shell.home / "archive.db")
    code, out, _ = shell.run("doctor")
    assert code == 3
    assert "No problems found." in out
    assert "is not an archive" in out


def test_a_sync_after_moving_a_damaged_archive_away_reads_everything(shell: Shell) -> None:
    overwrite_with_noise(shell.home / "archive.db")
    (shell.home / "archive.db").rename(shell.home / "damaged.db")
    assert shell.run("sync")[1].startswith("Synced: 40 new.")
    assert "1 to 20 of 40" in shell.run("search", "harbour")[2]


@pytest.mark.parametrize("shift", range(4 if "KILLS" in os.environ else 1))
def test_a_damaged_index_is_rebuilt_automatically(shell: Shell, shift: int) -> None:
    names = [path.relative_to(shell.home) for path in (shell.home / "index").rglob("*") if path.is_file()]
    for number, name in enumerate(sorted(names, key=lambda path: path.suffix)):
        damage = ("gone", "empty", "truncate", "flipped")[(number + shift) % 4]
        shell.restore()
        path = shell.home / name
        data = path.read_bytes()
        match damage:
            case "gone":
                path.unlink()
            case "empty":
                path.write_bytes(b"")
            case "truncate":
                path.write_bytes(data[: len(data) // 2])
            case "flipped":
                path.write_bytes(bytes(byte ^ 0x55 if n % 37 == 5 else byte for n, byte in enumerate(data)))
        code, out, err = shell.run("search", "--no-sync", "harbour")
        assert code == 0, (name, damage)
        assert out.count("harbour") >= 20, (name, damage)
        assert re.fullmatch(r"1 to 20 of 40, \d+ ms\n", err), (name, damage)


def test_an_index_that_is_a_file_or_has_no_valid_generation_is_rebuilt(shell: Shell) -> None:
    shutil.rmtree(shell.home / "index")
    (shell.home / "index").write_text("")
    assert "of 40" in shell.run("search", "harbour")[2]
    for text in ("", "99", "nonsense", "\xff"):
        (shell.home / "index" / "current").write_text(text, encoding="latin-1")
        assert "of 40" in shell.run("search", "harbour")[2]


def test_a_home_that_is_a_file_gives_an_error(shell: Shell) -> None:
    shutil.rmtree(shell.home)
    shell.home.write_text("")
    for arguments in (*READING, *WRITING):
        code, out, err = shell.run(*arguments)
        assert (code, out) == (1, "")
        assert str(shell.home) in err
        assert "Error" not in err


def test_an_archive_that_is_a_folder_gives_an_error(shell: Shell) -> None:
    (shell.home / "archive.db").unlink()
    (shell.home / "archive.db").mkdir()
    for arguments in (*READING, *WRITING):
        code, out, err = shell.run(*arguments)
        assert (code, out, len(err.splitlines())) == (1, "", 1)
        assert "archive.db" in err


def test_a_writer_reports_a_long_lock_and_readers_do_not_wait(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backscroll.archive.connection.BUSY_TIMEOUT_SECONDS", 0.2)
    Transcript(seed=99).user("the harbour 99").write(shell.root)
    with closing(sqlite3.connect(shell.home / "archive.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        for arguments in (("list",), ("search", "harbour"), ("show", "1")):
            code, out, err = shell.run(*arguments)
            assert code == 0
            assert err.startswith("Another process is syncing. Results may be out of date.\n")
            assert "harbour" in out
        code, out, err = shell.run("sync")
        assert (code, out) == (1, "")
        assert "Another process is writing to the archive" in err
        other.execute("rollback")
    assert shell.run("sync")[1].startswith("Synced: 1 new.")


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
def test_a_folder_without_permission_gives_an_error(shell: Shell) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    shell.home.chmod(0)
    try:
        for arguments in (*READING, *WRITING):
            code, out, err = shell.run(*arguments)
            assert (code, out) == (1, "")
            assert str(shell.home) in err
    finally:
        shell.home.chmod(0o700)
