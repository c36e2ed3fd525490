"""Read the tools' files into the archive and the index.

sync.py             the steps of a sync
changes.py          which units are new, changed or gone
read_units.py       read changed units, one by one or in bulk
first_page.py       the newest units, read first in a long sync
bulk_read.py        read many units in parallel, merge and index them in rounds
parallel.py         worker processes, each with a shard of its own
index_documents.py  documents for the index, made while reading
indexer.py          write queued sessions to the index
hooks/              records of hooks, and commits that the git hook did not report
watch.py            keep the archive up to date while the tools write
follow.py           new messages of one session
audit.py            count every record without storing anything
erase.py            erase forgotten sessions from archive and index
rebuild.py          rebuild sessions and index from archived originals
extract.py          write archived originals back to files
malloc.py           return free memory to the system
"""
