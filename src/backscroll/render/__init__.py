"""Sessions as text, Markdown, HTML and JSON. Values in, strings out.

json, plain_text, markdown                one module per format
html/                                     sessions as HTML
markdown_escape                           escape foreign text in Markdown
turns                                     messages in reading order, subagents nested
session_header, tool_calls, diffs         parts that all formats share
annotations, search_results, recall,
events, retention, backups, commits       output of single commands
token_estimate                            token counts without a tokenizer
terminal/                                 lists and transcripts for terminals and pipes
statistics/                               reports of `stats`
code/                                     lines of code and commits: `blame`, `survival`, `journal`
handoff/                                  summary of a session for another assistant
"""
