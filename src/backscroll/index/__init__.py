"""Full-text index of messages, built on Tantivy.

    engine/   index files: store, schema, writer, encoding of documents, purge
    text/     tokenization, normalization, English inflections
    query/    query syntax, compilation to Tantivy queries, search, ranking, counts
    pattern/  substrings and regular expressions: candidates from the term dictionary
    results/  highlights and snippets in the text of a hit

The index stores no message text and is derived from the archive: `Index.rebuild` discards it at any time.
Importing this package does not load Tantivy; the first use of an `Index` does.
"""

from backscroll.index.engine.documents import Document, IndexMessage, IndexSession
from backscroll.index.engine.store import Index, IndexDamagedError
from backscroll.index.pattern.pattern import Pattern, exact, regex
from backscroll.index.query.parser import Filter, Query, parse

__all__ = [
    "Document",
    "Filter",
    "Index",
    "IndexDamagedError",
    "IndexMessage",
    "IndexSession",
    "Pattern",
    "Query",
    "exact",
    "parse",
    "regex",
]
