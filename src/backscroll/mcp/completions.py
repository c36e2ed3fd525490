"""What a client may offer while somebody types an argument."""

from backscroll.history import CompletionNames
from backscroll.mcp.call import Call
from backscroll.model.sanitize import one_line

__all__ = ["complete"]

_MOST = 100  # that the protocol lets one answer hold


def complete(call: Call, name: str, typed: str) -> list[str]:
    """Values of an argument that begin so: refs of sessions, workspaces, years; of any other none."""
    match name:
        case "ref":
            return _refs(call, typed)
        case "workspace":
            with CompletionNames(call.history.archive_path) as names:
                every = [one_line(call.text(one, "workspaces"), 300) for one in names.of_kind("workspace")]
            return [one for one in every if one.casefold().startswith(typed.casefold())][:_MOST]
        case "year":
            rows = call.history.statistics.report(by="month").rows
            years = sorted({row.key[:4] for row in rows if row.key}, reverse=True)
            return [year for year in years if year.startswith(typed)]
    return []


def _refs(call: Call, typed: str) -> list[str]:
    source, colon, start = typed.rpartition(":")
    with CompletionNames(call.history.archive_path) as names:
        found = names.sessions(start, source=source if colon else None, limit=_MOST)
    refs = [f"{one.source}:{one.id}" for one in found]
    if refs or colon:
        return refs
    # What was typed may be the beginning of a source's name.
    newest = call.history.list_sessions(limit=10 * _MOST).data
    return [one.ref for one in newest if one.ref.startswith(typed)][:_MOST]
