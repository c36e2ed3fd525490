"""Assemble sessions from fragments.

derive.py          derive_sessions: the steps, in one transaction
affected.py        sessions that changed fragments affect
dedup.py           messages that resumed and forked sessions repeat
token_usage.py     usage of each response, and the fragment in which it counts
new_id_copies.py   copied messages with new ids
fragments.py       fragments of a session, best first
counters.py        counts of one fragment
rollups.py         counts by 15-minute bucket, for statistics
session_totals.py  totals of a session
reported_usage.py  usage totals that the tool itself reports
session_rows.py    rows of `conversations` and `cursor_sessions`
subagent_rows.py   rows of `subagent`
cursor_windows.py  workspace and times of Cursor windows
index_changes.py   queue what the search index must read again
idle_sessions.py   end of idle sessions
"""
