"""The public library. Everything an interface can do is reachable from here.

    history.py         History: the contract's methods, and its parts as attributes
    parts/             transcript, search, annotations, statistics, exports, resume and more
    stores.py          the archive and the index of one home
    index_access.py    build, update and query the index
    arguments.py       checks of arguments
    retention.py       sessions that the tools will delete
    session_refs.py    find a session by ref
    workspaces.py      find a workspace by name
    sync.py            read changes into the archive
    tool_changes.py    the contract's methods for backups and changes of the tools' stores
    background/        threads of servers, and processes that sync and link commits in the background
    recall.py          sessions that help with a task
    survival_rows.py   lines and costs of sessions, by session, model or month
    demo.py            write the sample history
    demo_archive.py    the sample history next to an archive, for the web app

Names are loaded on first use. Shell completion imports `CompletionNames` alone, which keeps it fast.
"""

from typing import TYPE_CHECKING

from backscroll.lazy_names import lazy_names

if TYPE_CHECKING:
    from backscroll.archive.query.completion import CompletionNames, NameKind
    from backscroll.history.history import History
    from backscroll.redact.redactor import Redactor

__all__ = ["CompletionNames", "History", "NameKind", "Redactor"]

__getattr__ = lazy_names(
    __name__,
    {
        "backscroll.archive.query.completion": "CompletionNames NameKind",
        ".history": "History",
        "backscroll.redact.redactor": "Redactor",
    },
)
