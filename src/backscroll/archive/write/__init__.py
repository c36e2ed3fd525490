"""Store one unit in one transaction.

unit_store.py       UnitStore: known units, and the entry points below
put_unit.py         store a unit: the steps of the transaction
unit_writer.py      write the stream of a unit
fragment_writer.py  write one fragment of the stream in chunks
closings.py         closings of fragments: encode, decode, edit
message_rows.py     rows of messages and edits
unit_rows.py        rows of units: checkpoint, record counts, events
fingerprints.py     fingerprints of units and folders, compared at every refresh
file_snapshot.py    detect that a file changed while it was read
exclusions.py       forgotten sessions and excluded workspaces
superseded.py       keep messages that a rewritten unit no longer contains
reparse.py          parse a stored original again
shard_merge.py      merge the archives that parallel readers wrote
"""
