"""Hooks: install them, and record what they report.

backscroll_hook.py  the program that assistants and git run: append an event to the spool
command_line.py     the shell command that runs it
tool_settings.py    hooks in the settings file of an assistant
git_hooks.py        hooks of git: scripts of a repository, or the configuration
"""
