"""The terminal UI: a session list on the left, a transcript on the right, and search as you type.

app                 layout of the screen, keys; resume, export, copy, star, tag; sync, status line, footer
session_list_panel  the list in the app: search, filter, order; focus of the panels
session_list        sessions and their entries, and the widget that shows them
transcript_panel    the transcript in the app: load and reload a session, find matches
transcript          layout of blocks, and the widget that shows them
blocks              a session as foldable blocks
dialogs             help, choice, text input
workers             results of the worker threads for the UI thread
colors              theme styles
"""
