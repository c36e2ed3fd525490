"""Backups: one ZIP file with the tools' files, snapshots of their databases, and the archive.

create.py        create a backup, also an incremental one
sources.py       files of the roots, and where each goes in the backup
snapshot.py      consistent copies of databases, without credentials
container.py     layout of the ZIP file, and its compression
writer.py        write the ZIP file
reader.py        open a backup, read and check its files, and extract its archive
folder.py        the folder of backups: names, list, delete; check and publish a new file
retention.py     which backups are kept, and which is the latest
restore_plan.py  which files of a backup go where, and with which content
restore.py       restore the files, and open the archive whose sessions are added to the tools' stores
"""
