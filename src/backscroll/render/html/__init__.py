"""Sessions as HTML, for exported files and for the web app.

messages      messages, tool calls, diffs and subagents
markdown      Markdown and code
session_page  a session as a single file
index_page    the index of exported sessions
page_frame    head and end of an exported file
"""
