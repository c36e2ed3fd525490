"""Word search.

parser    query syntax as a value
dates     date expressions of ``since:`` and ``until:``
compile   a parsed query as Tantivy queries
searcher  `Snapshot`: search one commit of the index
ranking   order, grouping by session, paging
counts    number of messages and sessions that match
"""
