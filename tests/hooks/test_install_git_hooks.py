"""The git hook records every commit in the background, and changes nothing about git otherwise."""

import fcntl
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll.errors import UsageError
from backscroll.hooks import install_git_hooks
from backscroll.hooks.install_git_hooks import has_configured_hooks
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.run_command import backscroll
from tests.hooks.conftest import Repo

SESSION = "0f3c9a12-7c1e-4a57-9d5b-6a1f4e0b7c33"
SHELL_HOOK = '#!/bin/bash -e\necho "$@" >> ran.txt\nexit 0\n# never reached\n'
PYTHON_HOOK = '#!/usr/bin/env python3\nopen("ran.txt", "a").write("python\\n")\n'


@pytest.fixture
def without_worker(repo: Repo) -> Iterator[None]:
    """Hold the lock of the process that links commits, so that hooks only record them."""
    with (repo.home / "hooks.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


pytestmark = pytest.mark.usefixtures("without_worker")


def test_a_commit_is_recorded_with_its_repository(repo: Repo) -> None:
    repo.install()
    sha = repo.commit()
    assert repo.errors == ""
    (record,) = repo.wait_for_records(1)
    assert record == {
        "event": "post-commit",
        "folder": str(repo.folder),
        "sha": sha,
        "git_folder": str(repo.folder / ".git"),
    }
    assert repo.commits() == {sha: "post-commit"}


def test_every_commit_in_a_row_is_recorded(repo: Repo) -> None:
    repo.install()
    shas = [repo.commit() for _ in range(12)]
    repo.wait_for_records(12)
    assert set(repo.commits()) == set(shas)


def test_an_amended_commit_is_recorded_after_the_original(repo: Repo) -> None:
    repo.install()
    first = repo.commit()
    repo.git("commit", "-q", "--amend", "-m", "better")
    second = repo.git("rev-parse", "HEAD")
    records = repo.wait_for_records(3)
    assert {record["event"] for record in records} == {"post-commit", "post-rewrite"}
    assert {record["sha"] for record in records} == {first, second}


def test_a_commit_in_a_worktree_belongs_to_the_same_repository(repo: Repo, tmp_path: Path) -> None:
    repo.install()
    repo.commit()
    worktree = tmp_path / "second"
    repo.git("worktree", "add", "-q", "-b", "side", str(worktree))
    sha = repo.commit(worktree)
    records = {record["sha"]: record for record in repo.wait_for_records(2)}
    assert records[sha]["git_folder"] == str(repo.folder / ".git")
    assert records[sha]["folder"] == str(worktree)


def test_commits_for_which_git_runs_no_hook_are_found_by_a_sync(repo: Repo, tmp_path: Path) -> None:
    repo.commit()
    repo.install()
    repo.git("checkout", "-q", "-b", "side")
    (repo.folder / "side.txt").write_text("side\n")
    repo.git("add", ".")
    tree = repo.git("write-tree")
    outside = repo.git("commit-tree", tree, "-p", "HEAD", "-m", "by another program")
    patch = repo.git("format-patch", "-1", "--stdout", outside)
    (tmp_path / "patch").write_text(f"{patch}\n")
    repo.git("checkout", "-q", "-f", "main")
    repo.git("am", "-q", str(tmp_path / "patch"))
    sha = repo.git("rev-parse", "HEAD")
    assert not (repo.home / "spool" / "events.jsonl").exists()
    assert repo.commits() == {sha: "found"}
    assert repo.commits() == {sha: "found"}


def test_commits_before_the_installation_are_not_reported(repo: Repo) -> None:
    for _ in range(2):
        old = repo.commit(GIT_COMMITTER_DATE="2026-01-01T12:00:00Z")
    repo.install()
    new = repo.commit()
    repo.wait_for_records(1)
    assert old not in repo.commits()
    assert new in repo.commits()


# --- existing hooks --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [SHELL_HOOK, PYTHON_HOOK, SHELL_HOOK.replace("#!/bin/bash -e", "#!/usr/bin/env sh")]
)
def test_an_existing_hook_runs_as_before_and_is_restored(repo: Repo, text: str) -> None:
    path = repo.write_hook(text, mode=0o750)
    repo.install()
    repo.commit()
    assert (repo.folder / "ran.txt").exists()
    repo.wait_for_records(1)
    repo.uninstall()
    assert path.read_text() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert [file.name for file in repo.hooks.iterdir() if not file.name.endswith(".sample")] == [
        "post-commit"
    ]


def test_a_hook_that_is_a_link_is_not_written_through(repo: Repo, tmp_path: Path) -> None:
    target = tmp_path / "shared-hook"
    target.write_text(SHELL_HOOK)
    target.chmod(0o755)
    (repo.hooks / "post-commit").symlink_to(target)
    repo.install()
    repo.commit()
    repo.wait_for_records(1)
    assert (repo.folder / "ran.txt").exists()
    assert target.read_text() == SHELL_HOOK
    repo.uninstall()
    assert (repo.hooks / "post-commit").readlink() == target


def test_a_hook_that_is_switched_off_stays_off(repo: Repo) -> None:
    path = repo.write_hook(SHELL_HOOK, mode=0o644)
    repo.install()
    repo.commit()
    repo.wait_for_records(1)
    assert not (repo.folder / "ran.txt").exists()
    repo.uninstall()
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == (SHELL_HOOK, 0o644)


def test_a_hook_still_reads_its_input(repo: Repo) -> None:
    repo.write_hook("#!/bin/sh\ncat > pairs.txt\n", "post-rewrite")
    repo.install()
    before = repo.commit()
    repo.git("commit", "-q", "--amend", "-m", "better")
    after = repo.git("rev-parse", "HEAD")
    assert (repo.folder / "pairs.txt").read_text().split() == [before, after]


def test_installing_twice_changes_nothing(repo: Repo) -> None:
    repo.write_hook(SHELL_HOOK)
    repo.install()
    with repo.open() as history:
        assert not history.hooks.plan_git_install(repo.folder).is_needed


def test_the_command_of_another_archive_is_replaced(repo: Repo) -> None:
    repo.write_hook(SHELL_HOOK)
    repo.install()
    before = (repo.hooks / "post-commit").read_text()
    (repo.hooks / "post-commit").write_text(before.replace(str(repo.home), "/old/home"))
    with repo.open() as history:
        (status,) = history.hooks.git_status(repo.folder)
        assert "not the one of this installation" in status.problems[0]
    repo.install()
    assert (repo.hooks / "post-commit").read_text() == before


@pytest.mark.parametrize("is_absolute", [True, False])
def test_the_hooks_folder_of_the_configuration_is_used(repo: Repo, tmp_path: Path, is_absolute: bool) -> None:
    folder = tmp_path / "shared hooks" if is_absolute else repo.folder / ".hooks"
    repo.git("config", "core.hooksPath", str(folder) if is_absolute else ".hooks")
    repo.install()
    assert (folder / "post-commit").exists()
    assert not (repo.hooks / "post-commit").exists()
    sha = repo.commit()
    assert repo.wait_for_records(1)[0]["sha"] == sha


def test_a_hook_that_is_part_of_the_repository_is_not_changed(repo: Repo) -> None:
    repo.git("config", "core.hooksPath", ".hooks")
    path = repo.folder / ".hooks" / "post-commit"
    path.parent.mkdir()
    path.write_text(SHELL_HOOK)
    repo.commit()
    with repo.open() as history, pytest.raises(UsageError, match="part of the repository"):
        history.hooks.plan_git_install(repo.folder)


def test_hooks_that_are_switched_off_are_reported(repo: Repo) -> None:
    repo.git("config", "core.hooksPath", "/dev/null")
    with repo.open() as history, pytest.raises(UsageError, match="runs no hooks"):
        history.hooks.plan_git_install(repo.folder)


# --- never in the way ------------------------------------------------------------------------------


def test_a_commit_does_not_wait_for_the_hook(repo: Repo, tmp_path: Path) -> None:
    slow = tmp_path / "slow-python"
    slow.write_text("#!/bin/sh\nsleep 30\n")
    slow.chmod(0o755)
    repo.install()
    for event in ("post-commit", "post-rewrite"):
        path = repo.hooks / event
        path.write_text(path.read_text().replace(sys.executable, str(slow)))
    started = time.monotonic()
    repo.commit()  # reads the output of git to its end
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("change", [("/python", "/no-python"), ("_hook.py", "_gone.py")])
def test_a_commit_works_without_the_program(repo: Repo, change: tuple[str, str]) -> None:
    repo.install()
    for event in ("post-commit", "post-rewrite"):
        path = repo.hooks / event
        path.write_text(path.read_text().replace(*change))
    repo.commit()
    assert repo.errors == ""


# --- links -----------------------------------------------------------------------------------------


def test_a_commit_is_linked_to_the_session_that_made_it(repo: Repo) -> None:
    session = Transcript(SESSION).user("Write something")
    session.run(tool_calls.write("/elsewhere/x.py", "x = 1\n"))
    session.write(repo.claude)
    repo.install()
    sha = repo.commit(CLAUDE_CODE_SESSION_ID=SESSION)
    other = repo.commit()
    repo.wait_for_records(2)
    with repo.open() as history:
        history.sync()
        assert history.hooks.process_commits() == 2
        assert history.hooks.process_commits() == 0
        found = {commit.sha: commit.sessions for commit in history.list_commits(repo.folder).data}
    assert [(one.session_id, one.evidence[0].kind) for one in found[sha]] == [(SESSION, "commit")]
    assert found[other] == ()


def test_every_commit_gets_its_journal_entry_once(repo: Repo) -> None:
    repo.install()
    shas = [repo.commit() for _ in range(3)]
    repo.wait_for_records(3)
    with repo.open() as history:
        history.sync()
        history.hooks.process_commits()
        history.hooks.process_commits()
        text = history.journal.read("today", repo.folder)
    assert text is not None
    assert [text.count(f"commit {number}") > 0 for number in (1, 2, 3)] == [True] * 3
    assert not (repo.folder / "journal").exists()
    assert all(text.count(f"sha={sha}") <= 1 for sha in shas)


def test_no_entry_is_written_if_the_settings_say_so(repo: Repo) -> None:
    (repo.home / "config.toml").write_text("[journal]\non_commit = false\n")
    repo.install()
    repo.commit()
    repo.wait_for_records(1)
    with repo.open() as history:
        history.sync()
        assert history.hooks.process_commits() == 1
        assert history.journal.read("today", repo.folder) is None


def test_commits_of_a_deleted_repository_are_skipped(repo: Repo) -> None:
    repo.install()
    repo.commit()
    repo.wait_for_records(1)
    with repo.open() as history:
        history.sync()
        repo.folder.rename(repo.folder.with_name("moved"))
        assert history.hooks.process_commits() == 1
        assert history.hooks.process_commits() == 0
        assert history.sync() is not None


def test_the_commits_of_an_excluded_workspace_are_not_stored(repo: Repo) -> None:
    (repo.home / "config.toml").write_text(f'exclude = ["{repo.folder}"]')
    repo.install()
    repo.commit()
    repo.wait_for_records(1)
    with repo.open() as history:
        history.sync()
        assert history.hooks.process_commits() == 0


# --- hooks in the configuration of git -------------------------------------------------------------


@pytest.fixture
def new_git(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat git as a version with hooks in its configuration, whatever is installed."""
    monkeypatch.setattr(install_git_hooks, "has_configured_hooks", lambda _: True)


@pytest.mark.parametrize(
    ("output", "is_new"),
    [
        (b"git version 2.39.5\n", False),
        (b"git version 2.53.0 (Apple Git-160)\n", False),
        (b"git version 2.54.0.windows.1\n", True),
        (b"git version 3.0.0\n", True),
    ],
)
def test_the_version_decides_where_the_hook_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: bytes, is_new: bool
) -> None:
    monkeypatch.setattr(install_git_hooks, "run_git", lambda *_: output)
    assert has_configured_hooks(tmp_path) is is_new


@pytest.mark.usefixtures("new_git")
@pytest.mark.parametrize("is_global", [False, True])
def test_a_new_git_gets_the_hook_in_its_configuration(repo: Repo, is_global: bool) -> None:
    sha = repo.commit()  # before the installation: a new git would run the hook
    before = [
        Path(os.environ["GIT_CONFIG_GLOBAL"]).read_text(),
        (repo.folder / ".git" / "config").read_text(),
    ]
    repo.install(is_global=is_global)
    assert not (repo.hooks / "post-commit").exists()
    scope = "--global" if is_global else "--local"
    assert repo.git("config", scope, "--get-all", "hook.backscroll.event").split() == [
        "post-commit",
        "post-rewrite",
    ]
    command = repo.git("config", scope, "hook.backscroll.command")
    # Git runs a configured hook with these arguments.
    subprocess.run(["sh", "-c", f'{command} "$@"', command, "amend"], cwd=repo.folder, check=True)
    (record,) = repo.wait_for_records(1)
    assert (record["event"], record["sha"]) == ("post-rewrite", sha)
    with repo.open() as history:
        (status,) = history.hooks.git_status(repo.folder)[:1]
        assert (status.events, status.problems) == (("post-commit", "post-rewrite"), ())
        assert not history.hooks.plan_git_install(repo.folder, is_global=is_global).is_needed
    repo.uninstall(is_global=is_global)
    after = [Path(os.environ["GIT_CONFIG_GLOBAL"]).read_text(), (repo.folder / ".git" / "config").read_text()]
    assert after == before


def test_a_hook_in_the_configuration_replaces_a_script(repo: Repo, request: pytest.FixtureRequest) -> None:
    path = repo.write_hook(SHELL_HOOK)
    repo.install()
    request.getfixturevalue("new_git")
    repo.install()
    assert path.read_text() == SHELL_HOOK
    assert not (repo.hooks / "post-rewrite").exists()
    assert repo.git("config", "--local", "--get-all", "hook.backscroll.event").split() != []


def test_an_old_git_cannot_have_the_hook_for_all_repositories(repo: Repo) -> None:
    with repo.open() as history, pytest.raises(UsageError, match=r"2\.54"):
        history.hooks.plan_git_install(repo.folder, is_global=True)


# --- commands --------------------------------------------------------------------------------------


def test_the_commands_install_show_and_remove_the_git_hook(repo: Repo) -> None:
    options = ("--home", str(repo.home), "--root", f"claude-code={repo.claude}", "hooks")
    place = ("--repo", str(repo.folder))
    assert "dry run" in backscroll(*options, "install", "git", *place, "--dry-run").out
    assert not (repo.hooks / "post-commit").exists()
    assert backscroll(*options, "install", "git", *place, "--yes").code == 0
    repo.commit()
    repo.wait_for_records(1)
    document = json.loads(backscroll(*options, "status", *place, "--json").out)
    (git,) = [one for one in document["data"] if one["target"] == "git"]
    assert (git["is_installed"], git["problems"]) == (True, [])
    assert document["spool"]["pending_bytes"] > 0
    assert backscroll(*options, "uninstall", "git", *place, "--yes").code == 0
    assert not (repo.hooks / "post-commit").exists()
    outside = backscroll(*options, "install", "git", "--repo", str(repo.home), "--yes")
    assert (outside.code, "is not in a git repository" in outside.err) == (1, True)
