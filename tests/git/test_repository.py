"""Finding repositories."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backscroll.errors import CommitNotFoundError, RepositoryError
from backscroll.git.log import list_commits
from backscroll.git.repository import find_commit, is_clone, open_repository
from tests.builders.git_repository import GitRepository

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
    with pytest.raises(RepositoryError, match=r"is not in a git repository\. Pass --repo DIR to name"):
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


def test_all_branches_are_listed_if_head_names_a_missing_one(checkout: GitRepository, tmp_path: Path) -> None:
    sha = checkout.commit("Start", AT)
    bare = checkout.bare_clone(tmp_path / "copy.git")
    (bare / "HEAD").write_text("ref: refs/heads/missing\n")
    checkout.run("checkout", "--quiet", "--orphan", "new")
    for folder in (bare, checkout.folder):
        found = open_repository(folder)
        assert (found.has_commits, found.root_commit) == (False, sha)
        assert [commit.sha for commit in list_commits(found)] == [sha]
        assert find_commit(found, "main") == sha
        with pytest.raises(CommitNotFoundError, match="which has no commits"):
            find_commit(found, "HEAD")


def test_an_empty_repository_says_that_it_has_no_commits(checkout: GitRepository) -> None:
    with pytest.raises(CommitNotFoundError, match="The repository has no commits yet"):
        find_commit(open_repository(checkout.folder), "HEAD")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (".git/HEAD", "garbage\n", r"\.git is damaged"),
        (".git/refs/heads/main", "1" * 40 + "\n", "bad object HEAD"),
        (".git/refs/heads/main", "garbage\n", "The branch of .* is damaged"),
    ],
)
def test_a_damaged_repository_is_an_error(
    checkout: GitRepository, file: str, content: str, message: str
) -> None:
    checkout.commit("Start", AT)
    (checkout.folder / file).write_text(content)
    with pytest.raises(RepositoryError, match=message):
        open_repository(checkout.folder)


def test_destroyed_objects_are_an_error(checkout: GitRepository) -> None:
    checkout.commit("Start", AT)
    for file in (checkout.folder / ".git" / "objects").rglob("*"):
        if file.is_file():
            file.chmod(0o644)
            file.write_bytes(b"xx")
    with pytest.raises(RepositoryError, match="Git failed in"):
        open_repository(checkout.folder)


def test_a_git_file_that_names_a_missing_repository_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /missing/place\n")
    with pytest.raises(RepositoryError, match="names the repository /missing/place"):
        open_repository(tmp_path)


def test_a_clone_is_recognized_and_another_repository_is_not(checkout: GitRepository, tmp_path: Path) -> None:
    checkout.commit("Start", AT)
    checkout.commit("Next", AT)
    repository = open_repository(checkout.folder)
    bare = checkout.bare_clone(tmp_path / "copy.git")
    checkout.run("clone", "--quiet", "--depth=1", checkout.folder.as_uri(), str(tmp_path / "shallow"))
    checkout.commit("Only here", AT)
    other = GitRepository(tmp_path / "other")
    assert is_clone(repository, other.folder) is False
    other.commit("Start of another one", AT)
    assert is_clone(repository, other.folder) is False
    assert is_clone(repository, bare) is True
    assert is_clone(repository, tmp_path / "shallow") is True
    assert is_clone(open_repository(tmp_path / "shallow"), checkout.folder) is True
    assert is_clone(repository, tmp_path) is None
