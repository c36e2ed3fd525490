"""Read-only access to the rows of ``state.vscdb``.

decode         tolerant decoding of JSON and times; counts and problems of a unit
records        records of the database, with the fields that are used; new fields are added here
keys           families of keys; sessions and row counts, from the keys alone
session_rows   rows of one session, loaded in batches
session_lists  the lists in which Cursor names its sessions
unowned_rows   counts and problems of the rows of no session
"""
