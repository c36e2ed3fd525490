"""``archive upgrade`` as a person and as a program sees it."""

import json
from pathlib import Path

import pytest

from tests.archive.old_databases import claude, conversation, write_old
from tests.cli.running import Ran, backscroll


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_old(
        tmp_path / "telemetry.db",
        [conversation(1), conversation(2, external_session_id="composer-1"), claude(3)],
    )


def run(path: Path, *arguments: str) -> Ran:
    (path.parent / "empty").mkdir(exist_ok=True)
    roots = f"claude-code={path.parent / 'empty'}"
    return backscroll("--home", path.parent / "home", "--root", roots, *arguments)


def test_a_person_is_told_what_was_done(path: Path) -> None:
    ran = run(path, "archive", "upgrade", str(path))
    (backup,) = path.parent.glob("telemetry.db.backup-*")
    assert (ran.code, ran.out.splitlines()) == (
        0,
        [
            f"Upgraded {path}",
            "  1 conversations of claude_code",
            "  2 conversations of cursor",
            "  1 windows made",
            f"  the database as it was: {backup}",
        ],
    )
    assert "duplicate: these have the external id of an earlier" in ran.err
    assert "(id-2)" in ran.err
    again = run(path, "archive", "upgrade", str(path))
    assert (again.code, again.out) == (0, f"{path} was upgraded before; nothing was changed in it.\n")


def test_a_program_is_told_the_same(path: Path) -> None:
    ran = run(path, "archive", "upgrade", str(path), "--json")
    told = json.loads(ran.out)
    assert Path(told.pop("backup")).is_file()
    assert told.pop("problems")[0]["rows"] == ["id-2"]
    assert told == {
        "path": str(path),
        "is_changed": True,
        "rows": {"claude_code": 1, "cursor": 2},
        "windows": 1,
        "merged": None,
    }


def test_merged_conversations_are_listed(path: Path) -> None:
    ran = run(path, "archive", "upgrade", str(path), "--merge")
    assert "Taken into the archive: 3 conversations, 1 windows; it had 0 of" in ran.out
    again = json.loads(run(path, "archive", "upgrade", str(path), "--merge", "--json").out)
    assert again["is_changed"] is False
    assert again["merged"] == {"sessions": 0, "known": 3, "kept_out": 0, "windows": 0}
    listed = json.loads(run(path, "list", "--json").out)["data"]
    assert [one["id"] for one in listed] == ["claude-3", "composer-1#id-2", "composer-1"]
    shown = json.loads(run(path, "show", "claude-3", "--json").out)
    assert (shown["messages"], shown["completeness"]) == ([], "lossy")
    assert run(path, "show", "claude-3").code == 0
    assert run(path, "archive", "verify").code == 0


def test_what_cannot_be_upgraded_is_said_in_a_sentence(path: Path) -> None:
    path.write_text("nothing of the kind" * 100)
    ran = run(path, "archive", "upgrade", str(path))
    assert (ran.code, ran.out) == (1, "")
    assert "file is not a database. It holds what it held before." in ran.err


def test_our_own_archive_needs_no_upgrade(path: Path) -> None:
    own = path.parent / "home" / "archive.db"
    assert run(path, "sync").code == 0
    ran = run(path, "archive", "upgrade", str(own))
    assert (ran.code, ran.out) == (2, "")
    assert "is an archive of Backscroll" in ran.err
