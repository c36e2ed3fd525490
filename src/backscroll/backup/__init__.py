"""Backups: one ZIP file with the tools' files, snapshots of their databases, and the archive.

create.py       create a backup
sources.py      files of the roots, and where each goes in the backup
base.py         files that have not changed since the base of an incremental backup
snapshot.py     consistent copies of databases, without credentials
snapshot_queue.py   snapshots that are taken in another thread
container.py    layout of the ZIP file; names and paths that are allowed in it
compression.py  Zstandard frames, compressed by several threads
background_hash.py  hashes, computed in another thread
writer.py       write the ZIP file
target_file.py  check the place of a new backup, and give it its name
reader.py       open a backup and read its files
verify.py       check every file of a backup
restore/        restore all of a backup, one source, or some sessions
browse.py       read the sessions in a backup without restoring it
folder.py       the folder of backups: names, list, prune
"""
