"""Read what hooks recorded.

spool        records of the assistants' hooks and of the git hook
new_commits  commits that the git hook did not report
"""
