"""What commands print.

change_plans.py     planned and recorded changes of the tools' stores
errors.py           errors as messages and exit codes
hints.py            commands named in messages, welcome and permission messages
json_documents.py   JSON documents
moved_workspaces.py workspace folders that are gone, and where they may be
progress.py         progress bar with an estimate
sessions.py         the messages or the original records of a session
sync.py  sync_report.py   run a sync and print its result
terminal.py         width, colors and pager
"""
