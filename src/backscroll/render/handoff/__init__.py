"""Summary of a session for another assistant, extracted by rules. Every statement is from the session.

builder       read a session once and select points within a token budget
conversation  goal, decisions, conclusions and open questions from messages
file_changes  changed files and uncommitted work
commands      commands, failures and commits
tasks         unfinished entries of task lists
sentences     split prose into sentences and classify them
output        Markdown and JSON
types         value types of a handoff
"""

from backscroll.render.handoff.builder import build_handoff
from backscroll.render.handoff.output import handoff_document, handoff_lines
from backscroll.render.handoff.types import SECTIONS, Handoff, Point, Section

__all__ = ["SECTIONS", "Handoff", "Point", "Section", "build_handoff", "handoff_document", "handoff_lines"]
