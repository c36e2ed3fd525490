"""The histories that the web app serves, and their threads.

served_history  the user's history and the demo, each with its threads
workers         threads with a History each
renderers       processes that render pages
change_feed     changes as server-sent events
backup_job      create and verify a backup in a thread
result_cache    results that are expensive to compute
rendered_parts  rendered parts of sessions
streamed_file   a file that is sent while it is written
"""
