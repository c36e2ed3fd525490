"""Sessions as text, Markdown, HTML and JSON. Values in, strings out.

json, markdown, plain_text  a session in one format
html/                       sessions as HTML
terminal/                   lists and transcripts for terminals and pipes
handoff                     summary of a session for another assistant

annotations                 stars, tags, notes and titles
backups                     backups and restores
commits                     commits, `blame` and `survival`
journal                     entries of the journal
search                      search matches and recalled sessions
statistics, year_review     reports of `stats`
sync                        deleted, restored and expiring sessions

turns                       messages in reading order, subagents nested
session_header, tool_calls  titles, headings and calls, shared by all formats
file_names                  file names of exported sessions
humanize                    short forms of ages, counts, costs and ids
token_estimate              token counts without a tokenizer
"""
