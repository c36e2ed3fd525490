"""Restore sessions into their tools, and move or copy them to another folder.

    transfers.py         `Transfers`: plan and apply, undo, recover; then sync
    stored_sessions.py   the sessions of the archive as the sources' writers need them
    safety.py            checks before a change, and what can be read back after it
    restore.py           restore a session that the tool has deleted, also from the archive in a backup
    migrate.py           move and copy sessions
    moved_workspaces.py  workspace folders that are gone, and where they may be

The writers of the sources plan, the change log applies. After a change, the store is read again; if the
result is not as expected, the change is undone.
"""
