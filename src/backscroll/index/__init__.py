"""The full-text index: a view of the archive that finds messages by what was said in them.

It can be thrown away and made again at any time. Importing it loads no search
engine; using it does.
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
