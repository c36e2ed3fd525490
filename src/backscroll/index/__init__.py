"""Full-text index of messages, built on Tantivy.

    engine/   index files: store, schema, writer, encoding of documents, purge
    text/     tokenization, normalization, inflections
    query/    query syntax, compilation to Tantivy queries, search, ranking, counts
    pattern/  substrings and regular expressions: candidates from the term dictionary
    results/  highlights and snippets in the text of a hit

The index stores no message text and is derived from the archive: `Index.rebuild` discards it at any time.
Importing this package does not load Tantivy; importing `Index` does. Patterns are loaded on first use too.
"""

from typing import TYPE_CHECKING

from backscroll.index.engine.documents import Document, IndexMessage, IndexSession
from backscroll.index.query.parser import Filter, Query, parse
from backscroll.lazy_names import lazy_names

if TYPE_CHECKING:
    from backscroll.index.engine.store import Index, IndexDamagedError
    from backscroll.index.pattern.pattern import Pattern, exact, regex

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

# Loading Tantivy takes 20 ms.
__getattr__ = lazy_names(
    __name__,
    {
        ".engine.store": "Index IndexDamagedError",
        ".pattern.pattern": "Pattern exact regex",
    },
)
