"""``archive forget`` names what contains the session still."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing import cursor
from backscroll.testing.claude_code import Prompt, Transcript
from backscroll.testing.claude_code.side_files import write_prompts
from tests.cli.run_command import Shell

ONE = "10000000-0000-4000-8000-000000000001"
TWO = "20000000-0000-4000-8000-000000000002"
PROMPT = "Where does the ferry to the old quay land in winter?"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    session = Transcript(session_id=ONE, cwd="/home/zoe/ferry").user(PROMPT).assistant("At the new one.")
    session.files[f"{session.folder}/custom-title.json"] = b'{"customTitle":"Ferry"}'
    session.write(shell.root)
    other = Transcript(session_id=TWO, cwd="/home/zoe/ferry").user("Paint the boat").assistant("Done.")
    other.write(shell.root)
    prompts = [Prompt(PROMPT, project="/home/zoe/ferry", session_id=ONE)]
    write_prompts(shell.root, [*prompts, Prompt("Paint the boat", project="/home/zoe/ferry", session_id=TWO)])
    shell.sync()
    return shell


def journal(shell: Shell, name: str, text: str) -> Path:
    path = shell.home / "journal" / "ferry-0a1b2c3d" / "daily" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def forget(shell: Shell, ref: str = ONE) -> dict[str, list[str]]:
    """Forget a session. Return the paths that are left, by kind; uncertain ones with a question mark."""
    found: dict[str, list[str]] = {}
    left: list[dict[str, Any]] = shell.json("archive", "forget", ref, "--yes")["left"]
    for copy in left:
        assert copy["next"]
        found.setdefault(copy["kind"], []).append(copy["path"] + ("" if copy["is_certain"] else "?"))
    return found


def test_files_of_the_tool_are_named(shell: Shell) -> None:
    (transcript,) = shell.root.rglob(f"{ONE}.jsonl")
    left = forget(shell)
    assert set(left) == {"tool"}
    assert set(left["tool"]) == {
        str(transcript),
        str(transcript.with_suffix("") / "custom-title.json"),
        str(shell.root / "history.jsonl"),
    }
    assert all(Path(path).exists() for path in left["tool"])


def test_a_session_of_a_database_is_to_be_deleted_in_the_tool(shell: Shell) -> None:
    home = cursor.Home(shell.folder / "cursor", generation=5)
    home.composer([cursor.user(PROMPT), cursor.assistant("Yes.")], workspace=cursor.SHOP, id=TWO)
    home.write()
    shell.options = (*shell.options, "--root", f"cursor={shell.folder / 'cursor'}")
    shell.run("sync")
    result = shell.run("archive", "forget", f"cursor:{TWO}", "--yes")
    assert f"Delete the session in the tool, or its lines:\n    {home.database}\n" in result.out


def test_journal_files_that_name_or_quote_the_session_are_named(shell: Shell) -> None:
    named = journal(shell, "2026-10-01-journal.md", f"Session `claude-code:{ONE[:8]}` Ferry")
    quoted = journal(shell, "2026-10-02-journal.md", f"It began with:\n\n> **User** 10:04: {PROMPT}\n")
    note = f"<!-- backscroll:context text=1 -->\n{PROMPT}\n<!-- backscroll:end -->\n"
    captured = journal(shell, "2026-10-03-journal.md", note)
    journal(shell, "2026-10-04-journal.md", "> **User** 10:04: Paint the boat, please, in any color\n")
    assert forget(shell)["journal"] == [str(named), str(quoted), str(captured)]


def test_backups_that_contain_the_session_are_named(shell: Shell) -> None:
    folder = shell.home / "backups"
    folder.mkdir()
    with History(home=shell.home, roots=[NamedRoot("claude-code", shell.root)]) as history:
        whole = history.create_backup(folder / "1-whole.zip").backup_path
        history.create_backup(folder / "2-other.zip", sessions=[TWO])
        own = history.create_backup(folder / "3-own.zip", sessions=[ONE]).backup_path
        for path in list(shell.root.rglob(f"{ONE}*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        (shell.root / "history.jsonl").unlink()
        history.sync()
        deleted = history.create_backup(folder / "4-deleted.zip").backup_path
    (folder / "5-damaged.zip").write_bytes(b"PK")
    damaged_archive = shell.home / "archive.damaged-20261001T000000Z.db"
    damaged_archive.write_bytes(b"SQLite")
    left = forget(shell)
    assert set(left.pop("backup")) == {whole, own, deleted, f"{folder / '5-damaged.zip'}?"}
    assert left == {"archive": [f"{damaged_archive}?"]}
    assert not (shell.home / "backup-cache").exists()


def test_nothing_is_named_if_nothing_is_left(shell: Shell) -> None:
    shutil.rmtree(shell.root)
    shell.root.mkdir()
    result = shell.run("archive", "forget", ONE, "--yes")
    assert "No file of a tool, journal or known backup contains the session." in result.out
