"""Sessions as HTML, for exported files and for the web app.

session       messages, tool calls and subagents; a session as a single file
pages         frame of exported files, and their index
markdown      Markdown
highlighting  code in color
diff          edits of files: lines beside each other, words that differ
"""
