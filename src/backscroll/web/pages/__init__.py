"""Pages of the web app. Each handler takes a History and a request, and runs in a worker thread.

home         recent sessions, activity, charts, notices
sessions     the session list with its filters
session      a session: messages, facts, find, prompts
records      the original record of a message, exports
commits      commits with the sessions behind them
files        files with the session behind each line
journal      the journal of a repository by day
health       sources, problems, events, archive, backups
annotations  stars, tags, notes, titles
search       search results
launch       store the token of the launch address in a cookie
"""
