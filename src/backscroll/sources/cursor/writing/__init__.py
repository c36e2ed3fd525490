"""Plan changes of Cursor's databases: move, copy and restore sessions. Nothing here writes.

session_writer  the plans to move, copy and restore a session, and the processes that block them
restore         add sessions from archived rows
store_edits     collect edits of rows; refuse stores of unknown versions
list_edits      entries in the session lists of all generations
folders         paths in records, the storage of a folder, relocated files of a backup
"""
