"""Backups: one ZIP file with the tools' files, snapshots of their databases, and the archive.

create.py       create a backup
sources.py      files of the roots, and where each goes in the backup
base.py         files that have not changed since the base of an incremental backup
snapshot.py     consistent copies of databases, without credentials
container.py    layout of the ZIP file; names and paths that are allowed in it
compression.py  Zstandard frames, compressed by several threads
writer.py       write the ZIP file
reader.py       open a backup and read its files
verify.py       check every file of a backup
restore_plan.py     which files of a backup go where, and what exists there already
restore.py          restore files through the change log
held_databases.py   processes that have a database open
browse.py       read the sessions in a backup without restoring it
folder.py       the folder of backups: names, list, prune
"""
