"""Restore sessions into their tools, and move or copy them to another folder.

    stored_sessions.py   the sessions of the archive as the sources' writers need them
    safety.py            what prevents a change: running tools, unsuitable folders
    restore.py           restore a session that the tool has lost
    backup_archive.py    the same from the archive in a backup
    migrate.py           move and copy sessions
    read_back.py         read the result with the source's reader and compare it
    moved_workspaces.py  workspace folders that are gone, and where they may be
    folder_search.py     the folders that are compared with them

The writers of the sources plan, the change log applies. After a change, the store is read again; if the
result is not as expected, the change is undone.
"""
