"""Value types of backups, and of changes to the tools' files.

backup     manifest, results of creation, verification and restore
changes    the change log
moved      workspace folders that were moved
path_maps  paths of one machine on another
transfer   restore, move and copy sessions in their tools
"""
