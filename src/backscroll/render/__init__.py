"""Sessions as text, Markdown, HTML and JSON. Values in, strings out.

json, markdown, plain_text  a session in one format
html/                       sessions as HTML
transcript                  a session for terminals and pipes
session_table               a list of sessions for terminals and pipes
handoff                     summary of a session for another assistant

annotations                 stars, tags, notes and titles
backups                     backups and restores
commits                     commits, `blame` and `survival`
journal                     entries of the journal
search                      search matches and recalled sessions
statistics, year_review     reports of `stats`
sync                        deleted, restored and expiring sessions

turns                       messages in reading order, subagents nested
session_header, tool_calls  titles, headings, file names and calls, shared by all formats
terminal_text               ANSI styles; measure, truncate and wrap in cells
humanize                    short forms of ages, counts, costs and ids
token_estimate              token counts without a tokenizer
"""
