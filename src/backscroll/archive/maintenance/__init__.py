"""Maintenance of the archive file.

maintenance     the archive's interface to the modules below
forget          erase sessions and exclude them from later syncs
selection       reduce a copy of the archive to some sessions
relocation      change the paths of units for another machine
compact         reduce the size of the file
status          counts and sizes
growth          sessions and sizes by month
source_counts   record counts and problems of each root
verify          check hashes and counts
legacy_schema   plan the upgrade of another program's database
legacy_upgrade  carry it out, after a backup
legacy_import   import an upgraded database into the archive
legacy_backup   verified copy of that database
"""
