"""Full-text index of messages, built on Tantivy.

    store.py       `Index`: open, rebuild, write, search
    schema.py      fields, tokenizers and version
    documents.py   a message and its session as documents; the spool of reader processes
    writer.py      `Writer`: add, delete, commit; purge deleted messages
    analysis.py    tokenization and normalization of text
    languages.py   detection, stop words, inflections; endings in endings.txt
    query.py       query syntax, parsed into a value
    pattern.py     substrings and regular expressions
    compile.py     queries and patterns as Tantivy queries
    searcher.py    search in one commit of the index; number of messages and sessions that match
    ranking.py     weights of fields (prose: prompts, answers and notes), order, grouping by session, paging
    highlights.py  query words in the text of a hit, and the line to show

The index stores no message text and is derived from the archive: `Index.rebuild` discards it at any time.
"""
