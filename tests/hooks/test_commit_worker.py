"""One process in the background links the commits that the git hook reports."""

import subprocess
import sys
import time

from backscroll.hooks import event_recorder
from tests.hooks.conftest import Repo


def wait_for_commits(repo: Repo, count: int) -> int:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        with repo.open() as history:
            done = history.hooks.processed_commit_count()
        if done >= count:
            break
        time.sleep(0.2)
    return done


def test_every_commit_is_linked_and_in_the_journal_without_another_command(repo: Repo) -> None:
    repo.install()
    for _ in range(5):
        repo.commit()
    assert wait_for_commits(repo, 5) == 5
    with repo.open() as history:
        text = history.journal.read("today", repo.folder)
    assert text is not None
    assert all(f"commit {number}" in text for number in range(1, 6))
    log = repo.home / "hooks.log"
    assert log.read_text() == ""


def test_the_commits_of_a_killed_process_are_linked_after_the_next_commit(repo: Repo) -> None:
    hold = (
        "import fcntl, sys, time; fcntl.flock(open(sys.argv[1], 'w'), 2); print(flush=True); time.sleep(60)"
    )
    killed = subprocess.Popen(
        [sys.executable, "-c", hold, str(repo.home / "hooks.lock")], stdout=subprocess.PIPE
    )
    assert killed.stdout is not None
    killed.stdout.readline()
    repo.install()
    repo.commit()
    repo.wait_for_records(1)
    killed.kill()
    killed.communicate()
    repo.commit()
    assert wait_for_commits(repo, 2) == 2


def test_a_sync_that_reads_a_reported_commit_has_it_linked(repo: Repo) -> None:
    sha = repo.commit()
    (repo.home / "spool").mkdir()
    line = event_recorder.commit_line("post-commit", str(repo.folder), f"{sha}\n.git")
    assert event_recorder.append(str(repo.home / "spool"), line)
    with repo.open() as history:
        history.sync()
    assert wait_for_commits(repo, 1) == 1
