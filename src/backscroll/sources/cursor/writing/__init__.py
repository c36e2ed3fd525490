"""Plan changes of Cursor's databases: move, copy and restore sessions. Nothing here writes.

store_edits.py        collect edits of rows; each keeps the value that it replaces
lock_files.py         lock files of a running editor
store_version.py      refuse stores of unknown versions
list_edits.py         entries in the session lists of all generations
workspace_target.py   the storage of a target folder, created if Cursor has never opened it
path_map.py           replace the path of a folder in URIs and tool parameters
session_keys.py       the rows of a session, and its subagents
move.py copy.py restore.py
insert.py             add the sessions of a backup
relocation.py         paths and contents of a backup that is restored onto another machine
session_writer.py     the plans, as the transfer package uses them
"""
