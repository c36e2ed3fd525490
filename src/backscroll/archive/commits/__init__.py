"""Derived tables that link commits and sessions.

edit_scans    what each fragment contributes: edits, added lines, calls of `git commit`
commit_cache  what each commit adds, and the sessions that were found for it
temporary     copies of the tables in memory, for an archive that cannot be written
"""
