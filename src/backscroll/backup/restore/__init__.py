"""Restore a backup: all of it, one source, or some sessions.

options.py          what to restore, and where
plan.py             which files of a backup go where, and what exists there already
relocation.py       new paths and contents on another machine
session_copies.py   copies of files with several sessions, reduced to the selected ones
apply.py            apply a plan through the change log
held_databases.py   processes that have a database open
"""

from backscroll.backup.restore.apply import plan_restore, restore_backup
from backscroll.backup.restore.options import RestoreOptions

__all__ = ["RestoreOptions", "plan_restore", "restore_backup"]
