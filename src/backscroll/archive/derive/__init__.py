"""Assemble sessions from fragments.

derive.py        derive_sessions: the steps, in one transaction; the sessions that changed fragments affect
copies.py        messages that resumed and forked sessions repeat
usage.py         usage of each response, the fragment in which it counts, and totals that a tool reports
fragments.py     fragments of a session, best first, and their closings
counts.py        counts of a fragment and by 15-minute bucket, and totals of a session
session_rows.py  rows of `conversations`, `cursor_sessions` and `subagent`; what the index must read again
windows.py       workspace and times of Cursor windows; end of idle sessions and windows
"""
