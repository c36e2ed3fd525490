"""Store one unit in one transaction.

units.py         UnitStore: known units; store a unit, or parse its stored original again
unit_writer.py   write the stream of a unit: fragments in chunks, rows of messages and edits
unit_rows.py     rows of units: checkpoint, record counts, events
superseded.py    keep messages that a rewritten unit no longer contains
shard_merge.py   merge the archives that parallel readers wrote
fingerprints.py  fingerprints of units and folders, compared at every refresh
exclusions.py    forgotten sessions and excluded workspaces
"""
