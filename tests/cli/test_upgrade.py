"""``archive upgrade`` as text and as JSON."""

import json
from pathlib import Path

import pytest

from tests.archive.legacy_databases import claude_conversation, conversation, write_legacy
from tests.cli.run_command import Result, backscroll


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_legacy(
        tmp_path / "telemetry.db",
        [conversation(1), conversation(2, external_session_id="composer-1"), claude_conversation(3)],
    )


def run(path: Path, *arguments: str) -> Result:
    (path.parent / "empty").mkdir(exist_ok=True)
    roots = f"claude-code={path.parent / 'empty'}"
    return backscroll("--home", path.parent / "home", "--root", roots, *arguments)


def test_upgrade_prints_what_changed(path: Path) -> None:
    result = run(path, "archive", "upgrade", str(path))
    (backup,) = path.parent.glob("telemetry.db.backup-*")
    assert (result.code, result.out.splitlines()) == (
        0,
        [
            f"Upgraded {path}",
            "  1 conversation from claude_code",
            "  2 conversations from cursor",
            "  1 window created",
            f"  backup: {backup}",
        ],
    )
    assert "duplicate: external id of an earlier conversation" in result.err
    assert "(id-2)" in result.err
    again = run(path, "archive", "upgrade", str(path))
    assert (again.code, again.out) == (0, f"{path} is already upgraded.\n")


def test_upgrade_json_has_the_same_facts(path: Path) -> None:
    result = run(path, "archive", "upgrade", str(path), "--json")
    document = json.loads(result.out)
    assert Path(document.pop("backup")).is_file()
    assert document.pop("problems")[0]["rows"] == ["id-2"]
    assert document == {
        "path": str(path),
        "is_changed": True,
        "rows": {"claude_code": 1, "cursor": 2},
        "windows": 1,
        "merged": None,
        "is_complete": False,  # the archive was never synced
    }


def test_merged_conversations_are_listed(path: Path) -> None:
    result = run(path, "archive", "upgrade", str(path), "--merge")
    assert "Imported 3 conversations and 1 window.\n" in result.out
    again = json.loads(run(path, "archive", "upgrade", str(path), "--merge", "--json").out)
    assert again["is_changed"] is False
    assert again["merged"] == {"sessions": 0, "known": 3, "kept_out": 0, "windows": 0}
    listed = json.loads(run(path, "list", "--json").out)["data"]
    assert [session["id"] for session in listed] == ["claude-3", "composer-1#id-2", "composer-1"]
    shown = json.loads(run(path, "show", "claude-3", "--json").out)
    assert (shown["messages"], shown["completeness"]) == ([], "lossy")
    assert run(path, "show", "claude-3").code == 0
    assert run(path, "archive", "verify").code == 0


def test_a_file_that_is_not_a_database_is_reported(path: Path) -> None:
    path.write_text("nothing of the kind" * 100)
    result = run(path, "archive", "upgrade", str(path))
    assert (result.code, result.out) == (1, "")
    assert "file is not a database. It was not changed." in result.err


def test_the_archive_itself_cannot_be_upgraded(path: Path) -> None:
    own = path.parent / "home" / "archive.db"
    assert run(path, "sync").code == 0
    result = run(path, "archive", "upgrade", str(own))
    assert (result.code, result.out) == (2, "")
    assert "is an archive of Backscroll" in result.err
