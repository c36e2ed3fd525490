"""Sizes of changes, and ids of their content."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backscroll.git.diff import FileSize, patch_id, read_sizes
from backscroll.git.repository import is_reachable, open_repository
from tests.builders.git_repository import GitRepository

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def checkout(tmp_path: Path) -> GitRepository:
    checkout = GitRepository(tmp_path / "shop")
    checkout.write("a.py", "".join(f"line {number}\n" for number in range(20)))
    checkout.commit("Start", AT)
    return checkout


def test_sizes_name_renamed_binary_and_unusual_files(checkout: GitRepository) -> None:
    checkout.run("mv", "a.py", "b c.py")
    checkout.write("b c.py", "".join(f"line {number}\n" for number in range(19)) + "new\nother\n")
    checkout.write("tab\tname.txt", "one\n")
    checkout.write("image.png", b"\x89PNG\0\1\2")
    sha = checkout.commit("Change", AT)
    assert sorted(read_sizes(open_repository(checkout.folder), sha), key=lambda size: size.path) == [
        FileSize("b c.py", 2, 1),
        FileSize("image.png", None, None),
        FileSize("tab\tname.txt", 1, 0),
    ]


def test_the_first_commit_has_sizes_and_an_empty_one_has_none(checkout: GitRepository) -> None:
    opened = open_repository(checkout.folder)
    assert read_sizes(opened, checkout.head()) == [FileSize("a.py", 20, 0)]
    assert read_sizes(opened, checkout.commit("Nothing", AT)) == []


def test_a_rebase_keeps_the_id_and_another_change_does_not(checkout: GitRepository) -> None:
    start = checkout.head()
    text = (checkout.folder / "a.py").read_text()
    checkout.write("a.py", text.replace("line 10\n", "line ten\n"))
    old = checkout.commit("Ten", AT)
    checkout.run("checkout", "--quiet", "-b", "other", start)
    checkout.write("a.py", "first\n" + text)
    checkout.commit("First", AT + timedelta(hours=1))
    checkout.run("cherry-pick", "main")
    new = checkout.head()
    opened = open_repository(checkout.folder)
    assert new != old and patch_id(opened, new) == patch_id(opened, old)
    checkout.write("a.py", "first\n" + text.replace("line 10\n", "line 10.0\n"))
    assert patch_id(opened, checkout.commit("Other", AT)) != patch_id(opened, old)


def test_binary_files_have_ids_by_content(checkout: GitRepository) -> None:
    opened = open_repository(checkout.folder)
    checkout.write("image.png", b"\x89PNG\0\1\2")
    first = patch_id(opened, checkout.commit("One", AT))
    checkout.write("image.png", b"\x89PNG\0\1\3")
    assert patch_id(opened, checkout.commit("Two", AT)) != first


def test_an_amended_commit_is_not_reachable(checkout: GitRepository) -> None:
    checkout.write("b.py", "b\n")
    old = checkout.commit("Add b", AT)
    opened = open_repository(checkout.folder)
    assert is_reachable(opened, old)
    checkout.run("commit", "--amend", "--quiet", "-m", "Add a file")
    assert not is_reachable(opened, old) and is_reachable(opened, checkout.head())
    assert not is_reachable(opened, "0" * 40)
