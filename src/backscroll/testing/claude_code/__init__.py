"""Builders for the files of Claude Code, for every version.

transcript   write one session line by line; built from lines, turns, events and state_lines
tool_calls   tool calls with their results
blocks       content blocks of a message
versions     differences between the versions
forks        resumed, forked and continued sessions
side_files   files next to the transcripts: prompts, settings, tasks, plans
project_key  name of the folder of a project
"""

from backscroll.testing.claude_code.forks import (
    append_foreign_lines,
    continue_in_new_file,
    fork,
    fork_session,
    repeat_conversation,
    repeat_lines,
    resume,
    resume_with_new_ids,
)
from backscroll.testing.claude_code.project_key import project_key
from backscroll.testing.claude_code.side_files import Prompt
from backscroll.testing.claude_code.tool_calls import Call
from backscroll.testing.claude_code.transcript import Transcript
from backscroll.testing.claude_code.versions import Release

__all__ = [
    "Call",
    "Prompt",
    "Release",
    "Transcript",
    "append_foreign_lines",
    "continue_in_new_file",
    "fork",
    "fork_session",
    "project_key",
    "repeat_conversation",
    "repeat_lines",
    "resume",
    "resume_with_new_ids",
]
