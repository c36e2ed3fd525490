"""The SQLite file that outlives the tools: the truth.

A name is loaded when it is first asked for: whoever only asks what sessions are called, as a shell does with
every key, does not wait for what reads and writes them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlite3 import IntegrityError

    from backscroll.archive.archive import Archive
    from backscroll.archive.index_queue import IndexJob
    from backscroll.archive.query.message_lookup import MessageInSession, MessageKey
    from backscroll.archive.query.session_state import SessionState
    from backscroll.archive.session_key import SessionKey
    from backscroll.archive.write.exclusions import Exclusions
    from backscroll.archive.write.units import KnownUnit

__all__ = [
    "Archive",
    "Exclusions",
    "IndexJob",
    "IntegrityError",
    "KnownUnit",
    "MessageInSession",
    "MessageKey",
    "SessionKey",
    "SessionState",
]

_PLACES = {
    "SessionKey": "backscroll.archive.session_key",
    "Archive": "backscroll.archive.archive",
    "Exclusions": "backscroll.archive.write.exclusions",
    "IntegrityError": "sqlite3",
    "KnownUnit": "backscroll.archive.write.units",
    "IndexJob": "backscroll.archive.index_queue",
    "MessageInSession": "backscroll.archive.query.message_lookup",
    "MessageKey": "backscroll.archive.query.message_lookup",
    "SessionState": "backscroll.archive.query.session_state",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return value
