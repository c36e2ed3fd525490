"""Finding repositories."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backscroll.errors import CommitNotFoundError, RepositoryError
from backscroll.git import open_repository
from backscroll.git.repository import find_commit
from backscroll.testing.git_repository import GitRepository

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_repository_is_found_from_a_subfolder(checkout: GitRepository) -> None:
    checkout.write("src/a.py", "a = 1\n")
    sha = checkout.commit("Start", AT)
    checkout.run("remote", "add", "origin", "https://example.invalid/project.git")
    found = open_repository(checkout.folder / "src")
    assert (found.folder, found.git_folder) == (checkout.folder, checkout.folder / ".git")
    assert (found.branch, found.root_commit, found.is_bare) == ("main", sha, False)
    assert found.remotes == ("https://example.invalid/project.git",)


def test_a_worktree_names_all_checkouts_and_its_own_branch(checkout: GitRepository, tmp_path: Path) -> None:
    checkout.commit("Start", AT)
    tree = checkout.worktree(tmp_path / "fix", "fix")
    found = open_repository(tree.folder)
    assert found.branch == "fix"
    assert found.checkouts == (tree.folder, checkout.folder)
    assert found.git_folder == checkout.folder / ".git"


def test_a_bare_clone_has_the_same_first_commit_and_no_checkouts(
    checkout: GitRepository, tmp_path: Path
) -> None:
    sha = checkout.commit("Start", AT)
    bare = checkout.bare_clone(tmp_path / "elsewhere" / "copy.git")
    found = open_repository(bare)
    assert (found.is_bare, found.root_commit, found.checkouts, found.folder) == (True, sha, (), bare)


def test_a_repository_without_commits_has_no_first_commit(checkout: GitRepository) -> None:
    found = open_repository(checkout.folder)
    assert (found.has_commits, found.root_commit, found.branch) == (False, None, "main")


def test_a_detached_head_has_no_branch(checkout: GitRepository) -> None:
    checkout.commit("Start", AT)
    checkout.run("checkout", "--quiet", "--detach")
    assert open_repository(checkout.folder).branch is None


def test_a_folder_outside_of_a_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match=r"is not in a git repository\.$"):
        open_repository(tmp_path)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="does not exist"):
        open_repository(tmp_path / "missing")


def test_a_missing_git_is_an_error(
    checkout: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RepositoryError, match="git is not installed"):
        open_repository(checkout.folder)


def test_variables_of_a_git_hook_do_not_select_another_repository(
    checkout: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))
    assert open_repository(checkout.folder).folder == checkout.folder


@pytest.mark.parametrize("revision", ["0123456789", "", "--all", "no such name", "a\0b"])
def test_an_unknown_commit_is_an_error(checkout: GitRepository, revision: str) -> None:
    checkout.commit("Start", AT)
    with pytest.raises(CommitNotFoundError, match="No commit of"):
        find_commit(open_repository(checkout.folder), revision)


def test_a_commit_is_found_by_the_start_of_its_hash_and_by_a_branch(checkout: GitRepository) -> None:
    sha = checkout.commit("Start", AT)
    repository = open_repository(checkout.folder)
    assert find_commit(repository, sha[:7]) == find_commit(repository, "main") == sha
