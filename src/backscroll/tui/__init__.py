"""The terminal UI: a session list on the left, a transcript on the right, and search as you type.

app           layout of the screen, key bindings, status line
actions       resume, export, copy, star, tag; sync in the background
session_list  list, search and filters
transcript    one session as foldable blocks
base          run work in workers and return results to the UI thread
worker        background thread with its own history
dialogs       help, choice, text input
panels        focus and visible panels
footer        keys of the focused panel
clipboard     copy with a program of the system
colors        theme styles
"""
