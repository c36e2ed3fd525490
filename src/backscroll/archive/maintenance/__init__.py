"""Maintenance of the archive file.

maintenance.py     Maintenance: copies, counts and sizes, verification, and the entry points below
forget.py          erase sessions and exclude them from later syncs; reduce a copy to some sessions
relocation.py      change the paths of units for another machine
compact.py         reduce the size of the file
legacy_upgrade.py  upgrade another program's database, after a verified backup
legacy_import.py   import an upgraded database into the archive
"""
