"""Builders of histories that only tests and benchmarks need, and tests of all builders.

claude_code       every version, damage and odd records, the database of Claude Code 0.2, large histories
cursor            every generation, special sessions, damage, large histories
cursor_cli        every state of a store, damage, large histories
from_description  tool folders built from JSON descriptions
coding_session    sessions that change and commit the files of a real checkout
git_repository    repositories with commits at given times
hooks             events of hooks
lorem             random text
"""
