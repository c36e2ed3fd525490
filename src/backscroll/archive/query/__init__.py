"""The read side of the archive.

sessions            SessionQueries: list, find and count sessions and subagents
messages            MessageQueries: messages of a session
message_reader      read messages of sessions and fragments
message_lookup      read single messages of many sessions
session_cache       cache of sessions, list positions and workspaces
message_cache       cache of messages, in decompressed chunks
original_records    the lines and rows that messages were parsed from
filters             filters as SQL
facets              counts of sessions by property
workspaces          find workspaces by path, name or host; what is known about one
events              Events: what changed, and when
statistics          Statistics: activity, tokens, tools, edited files
fragment_selection  which fragments statistics count
usage_records       why each record with token counts is or is not counted
completion          names for shell completion, read without opening the archive
"""
