"""Pages of the web app. Each handler takes a History and a request, and runs in a worker thread.

home        recent sessions, notices; the empty archive and the demo history
figures     cards, charts, tables and top sessions of the home page
sessions    the session list with its filters
session     a session: messages, facts, find, minimap, prompts, annotations; records, exports
repository  commits, files and journal with the sessions behind them
health      sources, problems, events, archive, backups
search      search results and the filters beside them
palette     suggestions of the command palette
"""
