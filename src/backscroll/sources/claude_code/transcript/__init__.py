"""Parser of transcripts: one JSONL file per session or subagent.

reader.py         Transcript: stream the items of one file, and the facts known at its end
line_parsers.py   the parser of each record type; new types with messages are added here
message_lines.py  user and assistant lines: prompts, thinking, text, tool calls
system_lines.py   system lines, attachments, progress, bare tool lines
state_lines.py    facts about the session: title, folder, files, cost; new types with facts are added here
tool_results.py   text, status, user decision and edits of tool calls
user_text.py      typed text, slash commands and text from the tool in user lines
queue.py          prompts typed while a turn was running, and the lines that queue them
subagents.py      calls that start subagents, their sidecar files and progress lines
branches.py       the branch that Claude Code shows
copies.py         lines that a fork or resume copied from another session
line_structs.py   structs that a line is decoded to, and conversions of their values
state.py          state of one record while it is parsed, and reader state for the next sync
"""
