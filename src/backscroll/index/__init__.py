"""The full-text index: a view of the archive that finds messages by what was said in them.

It can be thrown away and made again at any time. Importing it loads no search
engine; using it does.
"""

from backscroll.index.document import Document, Spoken, Whose
from backscroll.index.query import Filter, Query, parse
from backscroll.index.scan import Pattern, exact, regex
from backscroll.index.store import Index, IndexDamagedError

__all__ = [
    "Document",
    "Filter",
    "Index",
    "IndexDamagedError",
    "Pattern",
    "Query",
    "Spoken",
    "Whose",
    "exact",
    "parse",
    "regex",
]
