"""Value types that link sessions with code.

commit   commits, evidence and blame
journal  entries of the journal
hooks    hooks of git and of the assistants
"""
