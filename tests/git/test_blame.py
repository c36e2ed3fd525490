"""The commit that each line comes from."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backscroll.errors import RepositoryError
from backscroll.git.log import BlamedLine
from backscroll.git.log import blame as trace
from backscroll.git.repository import Repository, open_repository
from tests.builders.git_repository import GitRepository

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
FUNCTION = "def total(prices):\n    amount = sum(prices)\n    return round(amount, 2)\n"


def blame(
    repository: Repository, file: Path, lines: tuple[int, int] | None = None, *, revision: str | None = None
) -> list[BlamedLine]:
    return [each.origin for each in trace(repository, file, lines, revision=revision)]


def test_each_line_has_its_commit_and_changes_in_the_checkout_have_none(checkout: GitRepository) -> None:
    checkout.write("a.py", "one\ntwo\n")
    first = checkout.commit("Start", AT)
    checkout.write("a.py", "one\n2\n")
    second = checkout.commit("Change", AT + HOUR)
    checkout.write("a.py", "one\n2\nthree\n")
    lines = blame(open_repository(checkout.folder), Path("a.py"))
    assert [(line.number, line.text, line.sha) for line in lines] == [
        (1, b"one", first),
        (2, b"2", second),
        (3, b"three", None),
    ]
    (last,) = blame(open_repository(checkout.folder), Path("a.py"), (2, 2), revision="HEAD")
    assert (last.number, last.sha) == (2, second)


def test_moved_and_indented_lines_keep_their_commit(checkout: GitRepository) -> None:
    checkout.write("old.py", FUNCTION)
    first = checkout.commit("Start", AT)
    checkout.run("mv", "old.py", "new.py")
    checkout.write("new.py", "class Shop:\n" + "".join(f"    {line}\n" for line in FUNCTION.splitlines()))
    second = checkout.commit("Move", AT + HOUR)
    lines = blame(open_repository(checkout.folder), Path("new.py"))
    assert [line.sha for line in lines] == [second, first, first, first]
    assert lines[1].path == "old.py"
    traced = trace(open_repository(checkout.folder), Path("new.py"))
    assert {(each.added.sha, each.added.path) for each in traced} == {(second, "new.py")}


def test_a_missing_file_is_an_error(checkout: GitRepository) -> None:
    checkout.commit("Start", AT)
    with pytest.raises(RepositoryError, match=r"missing\.py is not a file of"):
        blame(open_repository(checkout.folder), Path("missing.py"))


@pytest.mark.parametrize("is_missing", [False, True])
def test_commits_that_the_configuration_ignores_are_not_ignored(
    checkout: GitRepository, is_missing: bool
) -> None:
    checkout.write("a.py", "def price(value):\n    return value + 1000\n")
    checkout.commit("Start", AT)
    checkout.write("a.py", "def price(value):\n    return value + 2000\n")
    second = checkout.commit("Change", AT + HOUR)
    if not is_missing:
        checkout.write("ignored", f"{second}\n")
    checkout.run("config", "blame.ignoreRevsFile", "ignored")
    assert blame(open_repository(checkout.folder), Path("a.py"))[1].sha == second


def test_a_path_with_parent_folders_is_normalized(checkout: GitRepository) -> None:
    checkout.write("src/a.py", "one\n")
    sha = checkout.commit("Start", AT)
    repository = open_repository(checkout.folder)
    for path in (Path("src/../src/a.py"), checkout.folder / ".." / checkout.folder.name / "src" / "a.py"):
        (line,) = blame(repository, path)
        assert (line.sha, line.path) == (sha, "src/a.py")
    with pytest.raises(RepositoryError, match="is not in"):
        blame(repository, Path("../a.py"))


def test_a_file_of_a_submodule_names_the_submodule(checkout: GitRepository, tmp_path: Path) -> None:
    library = GitRepository(tmp_path / "library")
    library.write("tool.py", "one\n")
    library.commit("Start", AT)
    checkout.run(
        *("-c", "protocol.file.allow=always", "submodule", "--quiet"),
        *("add", str(library.folder), "vendor/library"),
    )
    checkout.commit("Add the library", AT)
    with pytest.raises(
        RepositoryError, match=r"in the submodule vendor/library, .* Pass --repo .*library\.$"
    ):
        blame(open_repository(checkout.folder), Path("vendor/library/tool.py"))


def test_a_damaged_index_is_an_error(checkout: GitRepository) -> None:
    checkout.write("a.py", "one\n")
    checkout.commit("Start", AT)
    (checkout.folder / ".git" / "index").write_bytes(b"garbage")
    with pytest.raises(RepositoryError, match="index file"):
        blame(open_repository(checkout.folder), Path("a.py"))
