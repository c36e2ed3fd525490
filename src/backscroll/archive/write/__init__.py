"""Store one unit in one transaction.

units.py         UnitStore: known units; store a unit; merge the archives that parallel readers wrote
unit_writer.py   write the stream of a unit: fragments in chunks, rows of messages and edits
unit_rows.py     rows of units: checkpoint, record counts, events
rewrites.py      a unit that is read again: keep what it no longer contains
exclusions.py    forgotten sessions and excluded workspaces
"""
