"""Pages of the web app. Each handler takes a History and a request, and runs in a worker thread.

home           recent sessions, notices
figures        cards, charts, tables and top sessions of the home page
sessions       the session list with its filters
session        a session: messages, facts, find, prompts
records        the original record of a message, exports
commits        commits with the sessions behind them
files          files with the session behind each line
journal        the journal of a repository by day
health         sources, problems, events, archive, backups
annotations    stars, tags, notes, titles
search         search results
search_facets  filters beside the search results
palette        suggestions of the command palette
demo           the empty archive, and the demo history
launch         store the token of the launch address in a cookie
"""
