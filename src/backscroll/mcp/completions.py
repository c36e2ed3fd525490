"""Completion of prompt and resource arguments."""

from backscroll.history import CompletionNames
from backscroll.mcp.call import Call
from backscroll.model.sanitize import one_line

__all__ = ["complete"]

MAX_VALUES = 100  # limit of the protocol


def complete(call: Call, name: str, typed: str) -> list[str]:
    """Return completions of refs, workspaces and years."""
    match name:
        case "ref":
            return _refs(call, typed)
        case "workspace":
            with CompletionNames(call.history.archive_path) as names:
                every = [one_line(call.text(one, "workspaces"), 300) for one in names.of_kind("workspace")]
            return [one for one in every if one.casefold().startswith(typed.casefold())][:MAX_VALUES]
        case "year":
            rows = call.history.statistics.report(by="month").rows
            years = sorted({row.key[:4] for row in rows if row.key}, reverse=True)
            return [year for year in years if year.startswith(typed)]
    return []


def _refs(call: Call, typed: str) -> list[str]:
    source, colon, start = typed.rpartition(":")
    with CompletionNames(call.history.archive_path) as names:
        found = names.sessions(start, source=source if colon else None, limit=MAX_VALUES)
    refs = [f"{one.source}:{one.id}" for one in found]
    if refs or colon:
        return refs
    # The input may be a prefix of a source name.
    newest = call.history.list_sessions(limit=10 * MAX_VALUES).data
    return [one.ref for one in newest if one.ref.startswith(typed)][:MAX_VALUES]
