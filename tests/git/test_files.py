"""Files are read from the checkout or a commit, and never from elsewhere."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backscroll.errors import RepositoryError
from backscroll.git.repository import file_size, list_folder, list_paths, open_repository, read_file
from tests.builders.git_repository import GitRepository

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_file_is_read_as_it_is_or_as_it_was_committed(checkout: GitRepository) -> None:
    checkout.write("a/b.txt", "one\n")
    sha = checkout.commit("Start", AT)
    checkout.write("a/b.txt", "one\ntwo\n")
    opened = open_repository(checkout.folder)
    assert read_file(opened, "a/b.txt", None) == b"one\ntwo\n"
    assert read_file(opened, "a/b.txt", sha) == b"one\n"
    assert (file_size(opened, "a/b.txt", None), file_size(opened, "a/b.txt", sha)) == (8, 4)


def test_a_folder_lists_its_folders_first(checkout: GitRepository) -> None:
    for path in ("z/é ü.txt", "z/y/x.txt", "a.txt", ":/odd.txt"):
        checkout.write(path, "12345")
    sha = checkout.commit("Start", AT)
    opened = open_repository(checkout.folder)
    root = [(entry.path, entry.is_folder, entry.size) for entry in list_folder(opened, "", sha)]
    assert root == [(":", True, None), ("z", True, None), ("a.txt", False, 5)]
    assert [entry.path for entry in list_folder(opened, "z", sha)] == ["z/y", "z/é ü.txt"]
    assert [entry.path for entry in list_folder(opened, ":", sha)] == [":/odd.txt"]
    assert list_folder(opened, "a.txt", sha) == list_folder(opened, "missing", sha) == []
    assert list_paths(opened, sha) == {"z/é ü.txt", "z/y/x.txt", "a.txt", ":/odd.txt"}


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_links_are_not_followed(checkout: GitRepository, tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("secret")
    (checkout.folder / "link").symlink_to(secret)
    checkout.write("folder/secret.txt", "public")
    checkout.commit("Start", AT)
    (checkout.folder / "folder" / "secret.txt").unlink()
    (checkout.folder / "folder").rmdir()
    (checkout.folder / "folder").symlink_to(secret.parent)
    opened = open_repository(checkout.folder)
    assert read_file(opened, "link", None) == os.fsencode(secret)
    for path in ("folder/secret.txt", "../elsewhere/secret.txt", str(secret)):
        with pytest.raises(RepositoryError, match="is not in"):
            read_file(opened, path, None)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_named_pipe_in_place_of_a_file_is_not_opened(checkout: GitRepository) -> None:
    checkout.write("a.txt", "one\n")
    checkout.commit("Start", AT)
    (checkout.folder / "a.txt").unlink()
    os.mkfifo(checkout.folder / "a.txt")
    with pytest.raises(RepositoryError, match="is not a file"):
        read_file(open_repository(checkout.folder), "a.txt", None)
