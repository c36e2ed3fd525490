"""Read-only access to the rows of ``state.vscdb``.

decode         tolerant JSON decoding
record_types   records of the database, with the fields that are used
keys           sessions and row counts, from the key index alone
damaged_index  a copy of the keys, for a damaged index
session_rows   rows of one session, loaded in batches
session_lists  the lists in which Cursor names its sessions
key_families   row counts by key family, for rows of no session
unowned_rows   counts and problems of the rows of no session
"""
