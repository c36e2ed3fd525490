"""Sessions as HTML, for exported files and for the web app.

messages        messages, tool calls and subagents
markdown        Markdown
highlighting    code in color
diff            edits of files
diff_alignment  lines beside each other, words that differ
listings        files that a tool has read
session_page    a session as a single file
index_page      the index of exported sessions
page_frame      head and end of an exported file
"""
