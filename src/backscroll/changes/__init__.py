"""Apply, record and undo changes to the files and databases of tools.

    change_log.py     ChangeLog: check and apply a plan, list changes, undo, recover after a crash
    change_record.py  the record of one change: states, file and line operations, rows before and after
    plan_check.py     names, access and tables: whether a plan can be written at all
    files.py          stage, publish, save and restore single files; replace single lines
    rows.py           compare-and-swap of database rows, one transaction per database

This package knows files and SQLite rows, not tools. A change is prepared completely before anything is
touched: old files and rows are saved and verified, new files are staged next to their targets. Then files
are created, rows are written and files are deleted, in this order. A change that a crash interrupted is
rolled back by the next `ChangeLog.recover`. If that fails, it blocks only changes of the same files, and
`ChangeLog.undo` ends it.
"""
