"""Work beside a command: threads of servers, and processes in the background.

sync_thread    sync and watch in a thread of a server
server_claim   one web server per archive
server_record  the files of its server; loads little
sync_worker    the process that completes a long sync
commit_worker  the process that links commits after the git hook
"""
