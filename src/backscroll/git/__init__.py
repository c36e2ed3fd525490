"""Commits, diffs and blame from the git executable. Nothing is written to a repository.

process     run git with settings that do not depend on the user's configuration
repository  a repository: its checkouts, branch and remotes, its commits, files and folders
log         commits, the lines that each one adds, and the commit that each line of a file comes from
diff        what commits change: lines, hunks, sizes, and an id of the content that a rebase keeps
"""

from backscroll.git.diff import patch_id as patch_id
from backscroll.git.diff import read_diff as read_diff
from backscroll.git.diff import read_sizes as read_sizes
from backscroll.git.log import Commit as Commit
from backscroll.git.log import list_commits as list_commits
from backscroll.git.log import read_changes as read_changes
from backscroll.git.log import read_commits as read_commits
from backscroll.git.repository import FolderEntry as FolderEntry
from backscroll.git.repository import Repository as Repository
from backscroll.git.repository import file_size as file_size
from backscroll.git.repository import is_reachable as is_reachable
from backscroll.git.repository import list_folder as list_folder
from backscroll.git.repository import list_paths as list_paths
from backscroll.git.repository import open_repository as open_repository
from backscroll.git.repository import read_file as read_file
