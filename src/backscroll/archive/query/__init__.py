"""The read side of the archive.

sessions.py        SessionQueries: list, find and count sessions and subagents; Facets; their cache
messages.py        MessageQueries: messages of a session, single messages of many sessions; their cache
message_reader.py  read the messages of sessions and fragments in order
originals.py       Originals: stored files and rows; OriginalRecords: the lines and rows of messages
filters.py         filters as SQL
workspaces.py      find workspaces by path, name or host; what is known about one
events.py          Events: what changed, and when
statistics.py      Statistics: activity, tokens, tools, edited files; why a record is or is not counted
completion.py      names for shell completion, read without opening the archive
"""
