"""Commits, diffs and blame from the git executable. Nothing is written to a repository.

process     run git with settings that do not depend on the user's configuration
repository  find a repository: its checkouts, branch, first commit and remotes
log         commits, and the lines that each one adds
diff        the changed lines of a commit
patch       size of a commit's changes, and an id of its content that a rebase keeps
files       files and folders, in the checkout or in a commit
blame       the commit that each line of a file comes from
hunks       the first-parent history as hunks
"""

from backscroll.git.blame import BlamedLine, blame
from backscroll.git.diff import read_diff
from backscroll.git.files import FolderEntry, file_size, list_folder, list_paths, read_file
from backscroll.git.log import (
    Commit,
    FileChange,
    list_commits,
    list_file_commits,
    read_changes,
    read_commits,
    read_modifications,
)
from backscroll.git.patch import FileSize, is_reachable, patch_id, read_sizes
from backscroll.git.repository import Repository, open_repository

__all__ = [
    "BlamedLine",
    "Commit",
    "FileChange",
    "FileSize",
    "FolderEntry",
    "Repository",
    "blame",
    "file_size",
    "is_reachable",
    "list_commits",
    "list_file_commits",
    "list_folder",
    "list_paths",
    "open_repository",
    "patch_id",
    "read_changes",
    "read_commits",
    "read_diff",
    "read_file",
    "read_modifications",
    "read_sizes",
]
