"""Completion of prompt and resource arguments."""

from backscroll.history import CompletionNames
from backscroll.mcp.call import Call

__all__ = ["complete"]

MAX_VALUES = 100  # limit of the protocol


def complete(call: Call, name: str, typed: str) -> list[str]:
    """Return completions of refs and years."""
    match name:
        case "ref":
            return _complete_ref(call, typed)
        case "year":
            rows = call.history.statistics.report(by="month").rows
            years = sorted({row.key[:4] for row in rows if row.key}, reverse=True)
            return [year for year in years if year.startswith(typed)]
    return []


def _complete_ref(call: Call, typed: str) -> list[str]:
    source, colon, id_prefix = typed.rpartition(":")
    with CompletionNames(call.history.archive_path) as names:
        sessions = names.sessions(id_prefix, source=source if colon else None, limit=MAX_VALUES)
    refs = [f"{session.source}:{session.id}" for session in sessions]
    if refs or colon:
        return refs
    # The input may be a prefix of a source name.
    newest = call.history.list_sessions(limit=10 * MAX_VALUES).data
    return [summary.ref for summary in newest if summary.ref.startswith(typed)][:MAX_VALUES]
