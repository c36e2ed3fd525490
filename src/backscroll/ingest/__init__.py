"""Read the tools' files into the archive and the index.

sync             sync one home: lock, find and read what changed, update the index
read_units       read changed units, one by one or in parallel
parallel         worker processes, each with a shard of its own
hooks            records of hooks, and commits that the git hook did not report
hook_payloads    what the archive keeps of the payload of an event
background_sync  hand a long sync over to another process; what runs there
watch            keep the archive up to date while the tools write; changes of sessions, messages of one
audit            count every record without storing anything
archive_admin    status, verification, erasure, rebuild, extraction
repair           keep what can be read of a damaged archive, and read the rest again
originals        rebuild sessions and index from archived originals, or write the originals to files
"""
