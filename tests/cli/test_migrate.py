"""``migrate``, ``migrate-workspace``, ``restore-session``, ``changes`` and ``undo``."""

import json
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript
from tests.cli.run_command import Shell

ONE = "10000000-0000-4000-8000-000000000001"
TWO = "20000000-0000-4000-8000-000000000002"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    for name in ("ferry", "boat"):
        (tmp_path / name).mkdir()
    for id_ in (ONE, TWO):
        session = Transcript(session_id=id_, cwd=str(tmp_path / "ferry"))
        session.user("Where is the quay?").assistant("There.").write(shell.root)
    return shell


def state(shell: Shell) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(shell.root.rglob("*")) if path.is_file()}


def test_a_dry_run_prints_every_file_and_changes_none(shell: Shell) -> None:
    before = state(shell)
    result = shell.run("migrate", ONE, "--to", shell.folder / "boat", "--mode", "move", "--dry-run")
    assert (result.code, state(shell)) == (0, before)
    assert f"Move claude-code:{ONE} to {shell.folder / 'boat'}\n  create  transcript" in result.out
    assert "  delete  transcript" in result.out


def test_without_a_terminal_a_change_needs_yes(shell: Shell) -> None:
    before = state(shell)
    for command in (["migrate", ONE, "--to", str(shell.folder / "boat")], ["undo"]):
        result = shell.run(*command)
        assert result.code in (1, 2)
    assert state(shell) == before
    assert "pass --yes" in shell.run("migrate", ONE, "--to", shell.folder / "boat").err


def test_a_workspace_is_moved_and_one_undo_reverts_it(shell: Shell) -> None:
    before = state(shell)
    folders = shell.folder / "ferry", shell.folder / "boat"
    result = shell.run("migrate-workspace", *folders, "--mode", "move", "--yes")
    assert result.code == 0, result.err
    assert result.out.count("Moved claude-code:") == 2
    listed = shell.json("list")["data"]
    assert {one["workspace_path"] for one in listed} == {str(shell.folder / "boat")}
    changes = shell.json("changes")["data"]
    assert [sorted(one) for one in changes] == [
        [
            "at",
            "files",
            "id",
            "is_interrupted",
            "is_undone",
            "problems",
            "rows",
            "sessions",
            "state",
            "what",
        ]
    ] * 2
    assert "Undone: 2 changes." in shell.run("undo", "--yes").out
    assert state(shell) == before
    assert all(one["is_undone"] for one in shell.json("changes")["data"])


def test_a_session_that_fails_gives_exit_code_3_and_its_code(shell: Shell) -> None:
    target = shell.folder / "boat"
    shell.sync()
    for file in shell.root.rglob(f"{ONE}.jsonl"):
        file.unlink()
    result = shell.run("migrate", ONE, TWO, "--to", target, "--mode", "move", "--yes", "--json")
    assert result.code == 3, result.err
    document = json.loads(result.out)
    assert (document["success_count"], document["failed_count"]) == (1, 1)
    assert [(one["session_id"], one["code"]) for one in document["errors"]] == [(ONE, "gone")]
    assert shell.run("migrate", ONE, TWO, "--to", target, "--yes").code == 1


def test_an_ambiguous_or_unknown_ref_changes_nothing(shell: Shell) -> None:
    Transcript(session_id=f"{ONE[:-1]}3", cwd=str(shell.folder / "ferry")).user("a").assistant("b").write(
        shell.root
    )
    before = state(shell)
    for ref, reason in ((ONE[:20], "matches several sessions"), ("nothing", "No session matches")):
        result = shell.run("migrate", ref, TWO, "--to", shell.folder / "boat", "--yes")
        assert result.code == 1
        assert reason in result.err
    assert state(shell) == before


def test_a_folder_without_sessions_is_an_error(shell: Shell) -> None:
    result = shell.run("migrate-workspace", shell.folder / "boat", shell.folder / "ferry", "--yes")
    assert result.code == 1
    assert "No session has the workspace" in result.err


def test_a_deleted_session_is_restored_once(shell: Shell) -> None:
    shell.run("sync")
    before = state(shell)
    path = next(path for path in before if path.stem == ONE)
    path.unlink()
    document = shell.json("restore-session", ONE, "--yes")
    assert document["files"] == [str(path)]
    assert state(shell) == before
    assert "is restored already" in shell.run("restore-session", ONE).out


def test_the_sessions_of_a_filter_are_restored_with_one_change_that_one_undo_reverts(shell: Shell) -> None:
    lost = Transcript(session_id=f"{ONE[:-1]}3", cwd=str(shell.folder / "ferry"))
    lost.user("Where is the quay?").assistant("There.").write(shell.root)
    shell.run("sync")
    before = state(shell)
    transcripts = [path for path in before if path.stem in (ONE, TWO)]
    for path in transcripts:
        path.unlink()
    deleted = state(shell)
    planned = shell.run("restore-session", "--workspace", "ferry", "--dry-run")
    assert (planned.code, planned.out.splitlines()[-1]) == (0, "claude-code: 2 added, 1 kept, 0 refused")
    assert state(shell) == deleted
    assert shell.run("restore-session", "--gone").code == 2
    document = shell.json("restore-session", "--gone", "--workspace", "ferry", "--yes")
    assert sorted(document["restored"]) == [f"claude-code:{ONE}", f"claude-code:{TWO}"]
    assert sorted(document["files"]) == sorted(map(str, transcripts))
    assert state(shell) == before
    assert [one["what"] for one in shell.json("changes")["data"]] == ["Restore 2 sessions"]
    assert "Undone: 1 change." in shell.run("undo", "--yes").out
    assert state(shell) == deleted
    result = shell.run("restore-session", ONE, TWO, "--yes")
    assert (result.code, "Restored 2 sessions" in result.out) == (0, True), result.err
    assert state(shell) == before


def test_a_session_that_is_refused_does_not_prevent_the_others(shell: Shell) -> None:
    shell.run("sync")
    before = state(shell)
    for path in [path for path in before if path.stem in (ONE, TWO)]:
        path.unlink()
    other = shell.root / "projects" / "-elsewhere" / f"{TWO}.jsonl"
    other.parent.mkdir()
    other.write_text("{}\n")
    result = shell.run("restore-session", ONE, TWO, "--no-sync", "--yes", "--json")
    document = json.loads(result.out)
    assert (result.code, document["restored"]) == (3, [f"claude-code:{ONE}"])
    assert [(one["session_id"], one["code"]) for one in document["errors"]] == [(TWO, "conflict")]
    assert str(other) in document["errors"][0]["message"]


def test_restore_session_needs_a_ref_or_a_filter(shell: Shell) -> None:
    result = shell.run("restore-session", "--yes")
    assert (result.code, "--gone" in result.err) == (2, True)


def test_forget_deletes_what_the_change_log_saved(shell: Shell) -> None:
    shell.run("migrate", ONE, "--to", shell.folder / "boat", "--mode", "move", "--yes")
    shell.run("archive", "forget", ONE, "--yes")
    assert shell.json("changes")["data"] == []
    saved = [path for path in (shell.home / "changes").rglob("*") if path.is_file()]
    assert not any(b"quay" in path.read_bytes() for path in saved)
