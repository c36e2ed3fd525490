"""The terminal UI: a session list on the left, a transcript on the right, and search as you type.

app.py         layout of the screen, key bindings, status line
actions.py     resume, export, copy, star, tag; sync in the background
base.py        runs work on background threads
session_list/  list, search and filters
transcript/    one session as foldable blocks
"""
