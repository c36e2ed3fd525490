"""Builders for the files of Claude Code, for every version.

transcript   write one session line by line; built from lines, turns, events and state_lines
tool_calls   tool calls with their results
blocks       content blocks of a message
versions     differences between the versions
generations  one example history per version range
forks        resumed, forked and continued sessions
side_files   files next to the transcripts: prompts, settings, tasks, plans
legacy_db    the database of Claude Code 0.2
damage       every known kind of file damage
odd_records  valid JSON with unexpected types
project_key  name of the folder of a project
bulk         large histories for benchmarks
"""

from backscroll.testing.claude_code.bulk.history import WrittenHistory, write_history
from backscroll.testing.claude_code.damage import DAMAGE
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
from backscroll.testing.claude_code.generations import GENERATIONS
from backscroll.testing.claude_code.odd_records import ODD_RECORDS
from backscroll.testing.claude_code.project_key import project_key
from backscroll.testing.claude_code.side_files import Prompt
from backscroll.testing.claude_code.tool_calls import Call
from backscroll.testing.claude_code.transcript import Transcript
from backscroll.testing.claude_code.versions import Release

__all__ = [
    "DAMAGE",
    "GENERATIONS",
    "ODD_RECORDS",
    "Call",
    "Prompt",
    "Release",
    "Transcript",
    "WrittenHistory",
    "append_foreign_lines",
    "continue_in_new_file",
    "fork",
    "fork_session",
    "project_key",
    "repeat_conversation",
    "repeat_lines",
    "resume",
    "resume_with_new_ids",
    "write_history",
]
