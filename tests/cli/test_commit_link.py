"""``backscroll commit link`` and ``unlink``."""

import shutil
from datetime import UTC, datetime

import pytest

from tests.builders.coding_session import CodingSession
from tests.builders.git_repository import GitRepository
from tests.cli.run_command import Shell

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

REF = "claude-code:5e551011-0000-4000-8000-000000000001"


@pytest.fixture
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return a synced history: a commit of the user, and a session of the day before."""
    shell = Shell(tmp_path_factory.mktemp("link"))
    checkout = GitRepository(shell.folder / "shop")
    checkout.write("prices.py", "price_1 = 1\n")
    checkout.commit("Add prices", datetime(2026, 3, 3, 9, tzinfo=UTC))
    session = CodingSession(checkout, REF.partition(":")[2], datetime(2026, 3, 2, 9, tzinfo=UTC))
    session.prompt("How do we store prices?")
    session.save(shell.root)
    shell.sync()
    return shell


def test_a_session_is_linked_and_removed_again(shell: Shell) -> None:
    repository = ["--repo", shell.folder / "shop"]
    sha = shell.json("commit", "HEAD", *repository)["sha"]
    result = shell.run("commit", "link", "HEAD", "5e551011", *repository)
    assert result.out == f"Linked claude-code:5e551011 to {sha[:9]}  Add prices\n"
    (linked,) = shell.json("commit", sha, *repository)["sessions"]
    assert (linked["session_ref"], linked["score"]) == (REF, 1.0)
    assert linked["evidence"] == [{"kind": "manual", "weight": 1.0, "detail": "linked by hand"}]
    assert [one["session_ref"] for one in shell.json("commits", *repository)["data"][0]["sessions"]] == [REF]
    document = shell.json("commit", "unlink", "HEAD", "5e551011", *repository)
    assert (document["sha"], document["sessions"]) == (sha, [])
    assert shell.json("commit", "show", "HEAD", *repository)["sessions"] == []


def test_an_unknown_session_or_commit_is_an_error(shell: Shell) -> None:
    repository = ["--repo", shell.folder / "shop"]
    for sha, ref, text in (("HEAD", "nobody", "No session"), ("nowhere", "5e551011", "No commit")):
        result = shell.run("commit", "link", sha, ref, *repository)
        assert result.code == 1
        assert text in result.err
