"""Secrets that a session mentions by name, learned before any of its text is shown.

A password has no recognizable form. It is recognized by the word before it ("password:
…") and then redacted wherever it occurs. The index finds the few messages with such a
word, so that a long session need not be read completely.
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

# If too many messages match, the ranking prefers those with a rare word.
_SECRET_NAMES = (
    "password", "passwd", "passphrase", "passwort", "kennwort", "pwd", "pass", "secret", "credential",
    "credentials", "apikey", "token", "bearer", "key",
)  # fmt: skip
_BASE_MESSAGES = 100
_MESSAGES_PER_SESSION = 20
_MAX_MESSAGES = 1000


def learn_named_secrets(
    archive: Archive, index: Index, redactor: "Redactor", sessions: Collection[int]
) -> None:
    """Scan the messages of some sessions that mention a secret by name.

    For a subagent, the session that started it is scanned as well.
    """
    sessions = {*sessions, *archive.sessions.parents_of(sessions).values()}
    names = Clause(tuple(Word(name) for name in _SECRET_NAMES))
    query = Query((names, Clause((SessionIds(frozenset(sessions)),))))
    limit = min(_BASE_MESSAGES + _MESSAGES_PER_SESSION * len(sessions), _MAX_MESSAGES)
    hits = index.start_search(query, limit=limit, by="message", with_counts=False).hits
    keys = [(hit.session, hit.position) for hit in hits if hit.position != ANNOTATIONS_POSITION]
    redactor.scan(found.message for found in archive.messages.lookup(keys).values())
