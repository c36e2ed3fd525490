"""The SQLite archive. It keeps everything that was read, also after the tools delete it.

archive.py       Archive: open and close; its parts are attributes
connection.py    open the database, transactions, times as milliseconds, SQLite errors as `ArchiveError`
migrations/      the schema
write/           store one unit in one transaction
derive/          assemble sessions from fragments
query/           list, read and filter sessions and messages
storage/         compressed chunks, original files and rows, interned strings
maintenance/     verify, compact, forget, copy, upgrade and import of older databases
annotations.py   tags, stars, notes and titles of users
commits.py       derived tables that link commits and sessions
hooks.py         events that hooks recorded, and commits that the git hook reported
sync_state.py    the lock and progress of a sync, fingerprints, and what the next sync must complete
session_key.py   SessionKey: platform and id
"""
