"""Word search.

parser           query syntax as a value
compile          a parsed query as Tantivy queries
elements         terms, phrases and combinations that queries consist of
unknown_words    language of a query by its unknown words
searcher         `Snapshot`: search one commit of the index
ranking          order of messages, grouping by session, paging
session_ranking  order of sessions for several words
coverage         share of the words that a session contains
hit_pages        results of a search
counts           number of messages and sessions that match
facet_counter    number of messages by session, attribute and time
"""
