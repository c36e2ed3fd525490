"""Read SQLite databases that another program may be writing.

connection  read-only connections and snapshots
change      whether a database has changed
copy        copies of a database with some of its rows
files       a database and its side files
wal         the write-ahead log
"""
