"""Work beside a command: threads of servers, and processes in the background.

sync_thread    sync and watch in a thread of a server
server_claim   one web server per archive
sync_worker    the process that completes a long sync
commit_worker  the process that links commits after the git hook
"""
