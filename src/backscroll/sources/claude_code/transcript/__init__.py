"""Parser of transcripts: one JSONL file per session or subagent.

reader.py           Transcript: stream the items of one file
line_parsers.py     the parser of each line type; new types are added here
line_structs.py     structs that a line is decoded to
line_context.py     state of one record while it is parsed
assistant_lines.py  thinking, text and tool calls
user_lines.py       prompts and tool results
user_text.py        typed text and text from the tool in user lines
commands.py         slash commands: prompts, or run by the tool
system_lines.py     system lines, attachments, progress, queue operations
notices.py          notices to the user and context for the model
state_lines.py      facts about the session: title, folder, files, cost
content_blocks.py   content blocks as text and attachments
tool_results.py     status, user decision and edits of tool calls
queue.py            prompts typed while a turn was running
branches.py         the branch that Claude Code shows
copies.py           lines that a fork or resume copied from another session
subagents/          calls that start subagents, their sidecar files and progress lines
checkpoint.py       reader state for the next sync
closing.py          facts known at the end of a file
"""
