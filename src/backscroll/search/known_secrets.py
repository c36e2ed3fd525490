"""Secrets that a session calls by name, learned before anything of it is shown.

A password has no form of its own: it is known by the word before it, and then
wherever else it stands. The index knows the few messages that have such a word, so
that a session of any length need not be read for it.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from backscroll.archive import Archive
from backscroll.index import Index, Query
from backscroll.index.query.parser import Clause, SessionIds, Word
from backscroll.model.searchable_text import ANNOTATIONS_POSITION

if TYPE_CHECKING:
    from backscroll.redact.redactor import Redactor

__all__ = ["learn_named_secrets"]

# Where there are too many, the engine prefers messages that have a rare one.
_NAMES = ("password", "passwd", "passphrase", "passwort", "kennwort", "pwd", "pass", "secret", "credential",
          "credentials", "apikey", "token", "bearer", "key")  # fmt: skip
_SOME, _EACH, _MOST = 100, 20, 1000  # messages that are looked through, and of each session on top


def learn_named_secrets(
    archive: Archive, index: Index, redactor: "Redactor", sessions: Collection[int]
) -> None:
    """Take note of the secrets that some sessions, given by number, call by name."""
    named = Clause(tuple(Word(name) for name in _NAMES))
    asked = Query((named, Clause((SessionIds(frozenset(sessions)),))))
    limit = min(_SOME + _EACH * len(sessions), _MOST)
    hits = index.start_search(asked, limit=limit, by="message", with_counts=False).hits
    places = [(hit.session, hit.position) for hit in hits if hit.position != ANNOTATIONS_POSITION]
    redactor.scan(passage.message for passage in archive.messages.lookup(places).values())
