"""The public library. Everything an interface can do is reachable from here.

history        `History`: the contract's methods, and its parts as attributes
backups        create, check, list and restore
commits        commits with their sessions, and what the lines cost
hooks          install hooks of the tools and of git, process what they report
resume         resume in the tool, open files, hand over
transcript     messages and turns of a session
highlighting   find the words of a query in any text; names of filters
sync_thread    thread of a server: sync, then watch the tools' files
commit_worker  process that links commits after the git hook has reported them
web_server     one web server per archive
demo           write the sample history
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backscroll.archive.query.completion import CompletionNames as CompletionNames
    from backscroll.history.history import History as History
    from backscroll.redact import Redactor as Redactor
else:
    # Loaded on first use: shell completion needs `CompletionNames` alone, at every key press.
    _MODULES = {
        "CompletionNames": "backscroll.archive.query.completion",
        "History": "backscroll.history.history",
        "Redactor": "backscroll.redact",
    }

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULES[name]), name)
