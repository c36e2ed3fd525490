"""Evidence that a session led to a commit.

content.py       lines that the session wrote and the commit adds
files.py         files of the commit that the session changed
commit_calls.py  calls of `git commit`, and commits that subagents report
workspaces.py    folders of sessions, compared with the checkouts of the repository
activity.py      time between the last message and the commit
tracking.py      what a tool tracks itself
"""
