"""Hooks: install them, and record what they report.

backscroll_hook.py     the program that assistants and git run
event_recorder.py      append an event to the spool; loads almost nothing
shell_command.py       the shell command that runs it, and which a commit waits for
install_tool_hooks.py  hooks in the settings file of an assistant
install_git_hooks.py   hooks of git: scripts of a repository, or the configuration
"""
