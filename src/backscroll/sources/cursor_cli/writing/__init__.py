"""Plan changes of the CLI's stores: move, copy and restore sessions. Nothing here writes.

store_files.py       the folder of a session, and those of its subagents
transcript_files.py  the transcripts of a session
relocation.py        files of a backup with other folders
session_writer.py    the plans, as the transfer package uses them
"""
