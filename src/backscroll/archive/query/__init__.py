"""The read side of the archive.

sessions.py    SessionQueries: list, find and count sessions and subagents; Facets; filters as SQL; the cache
messages.py    MessageQueries: messages of a session, single messages of many sessions; their cache
originals.py   Originals: stored files and rows; OriginalRecords: the lines and rows of messages
workspaces.py  find workspaces by path, name or host; what is known about one
events.py      Events: what changed, and when
statistics.py  Statistics: activity, tokens, tools, edited files; why a record is or is not counted
completion.py  names for shell completion, read without opening the archive
"""
