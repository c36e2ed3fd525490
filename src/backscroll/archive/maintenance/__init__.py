"""Maintenance of the archive file.

maintenance.py  Maintenance: copies, counts and sizes, verification, and the entry points below
forget.py       erase sessions and exclude them from later syncs; reduce a copy to some sessions
relocation.py   change the paths of units for another machine
compact.py      reduce the size of the file
repair.py       copy what can be read of a damaged archive
merge.py        add the sessions of another archive, such as that of a backup
legacy.py       upgrade another program's database, and import it into the archive
"""
