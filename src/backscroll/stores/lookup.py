"""Arguments of callers: find the session of a ref and the workspace of a name, and check the others.

Type hints are not checked at run time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, get_args

from backscroll import model, sources
from backscroll.errors import SessionNotFoundError, UsageError, WorkspaceNotFoundError
from backscroll.model.text import one_line

if TYPE_CHECKING:
    from backscroll.archive.archive import Archive
    from backscroll.model.session import Filter, SessionSummary
    from backscroll.model.workspace import WorkspaceSummary

_MAX_INDEX_DIGITS = 18
_MAX_TITLE_CHARS = 100
_MAX_PATH_CHARS = 300
_MAX_SUGGESTIONS = 5
AnyPath = str | PathLike[str]
_MAX_PAGE_SIZE = 1000
_MAX_OFFSET = 2**63 - 1  # of SQLite


def find_session(archive: Archive, ref: str) -> SessionSummary:
    """Return the session of a ref: an index in the complete list, an id, or an unambiguous prefix of an id.

    A prefix of a session's id means the session, even if ids of its subagents start with it. A copied session
    has subagents with the same ids. Such a ref means the original; ``SESSION/SUBAGENT`` selects any of
    them. If the id of a subagent starts with that of its session, SUBAGENT is the rest.

    Raises `SessionNotFoundError`. If several sessions match, the message lists them.
    """
    ref = ref.strip()
    if _may_be_index(ref) and (listed := archive.sessions.page(model.Filter(), limit=1, offset=int(ref) - 1)):
        return listed[0]
    source, colon, id_ = ref.partition(":")
    if not colon or source not in sources.names():
        id_ = ref
    parent, slash, name = id_.rpartition("/")
    found = (archive.sessions.find(name) or archive.sessions.find(name.lower())) if name else []
    if slash:
        found = [summary for summary in found if _has_parent(summary, parent)]
        found = found or _find_subagents(archive, parent, name)
    if len(found) > 1 and id_ != ref:
        # Prefer sessions of the named source. A ref with another source's prefix still resolves.
        found = [summary for summary in found if summary.source == source] or found
    if not found:
        raise SessionNotFoundError(
            f"No session matches {ref!r}.", ref, hint="Run 'backscroll list' to see all sessions."
        )
    oldest = min(found, key=_age)  # a session, if there is one
    if all(oldest.ref in (summary.ref, summary.parent_ref) for summary in found):
        return oldest
    names = "\n".join(f"  {one.ref}  {one_line(one.title or '', _MAX_TITLE_CHARS)}".rstrip() for one in found)
    raise SessionNotFoundError(f"{ref!r} matches several sessions. Use a longer prefix:\n{names}", ref)


def find_session_to_change(archive: Archive, ref: str) -> SessionSummary:
    """Return the session of a ref, to change or erase it.

    Raises `UsageError` for an index during an incomplete sync: each session that is read can move the others.
    """
    summary = find_session(archive, ref)
    if ref.strip() == str(summary.index) and not archive.sync_state.is_complete:
        title = one_line(summary.title or "(untitled)", _MAX_TITLE_CHARS)
        raise UsageError(
            f"The sync is not complete, so index {summary.index} can soon mean another session.\n"
            f"It is now {summary.ref} ({title}).\n"
            "Use the id, or run 'backscroll sync' first to complete the sync."
        )
    return summary


def find_top_session(archive: Archive, ref: str) -> SessionSummary:
    """Return the session of a ref; for a subagent, the session that started it."""
    return _top(archive, find_session(archive, ref))


def _top(archive: Archive, summary: SessionSummary) -> SessionSummary:
    return summary if summary.parent_ref is None else find_session(archive, summary.parent_ref)


def select_sessions(
    archive: Archive, refs: Sequence[str] = (), filter: Filter | None = None
) -> list[SessionSummary]:
    """Return the sessions of refs that match a filter, newest first; without refs, all that match it.

    A subagent stands for its session. Raises `UsageError` if no session matches.
    """
    wanted = {_top(archive, find_session_to_change(archive, ref)).ref for ref in refs}
    filter = check_filter(filter)
    if filter.workspace is not None:
        find_workspace(archive, filter.workspace)  # raises WorkspaceNotFoundError
    if refs and filter == model.Filter():
        filter = model.Filter(with_unlisted=True)
    found = archive.sessions.page(filter, limit=-1, offset=0)
    found = [one for one in found if one.parent_ref is None and (not refs or one.ref in wanted)]
    if not found:
        raise UsageError(
            "No session matches.", hint="Run 'backscroll list' with the same options to see all."
        )
    return found


def find_subagent(archive: Archive, ref: str) -> SessionSummary:
    """Return the subagent of a ref. Raises `SessionNotFoundError` if it is a session."""
    summary = find_session(archive, ref)
    if summary.parent_ref is None:
        ids = ", ".join(summary.agent_ids)
        hint = f"Its subagents are {ids}." if ids else "It has no subagents."
        raise SessionNotFoundError(f"{summary.ref} is a session, not a subagent. {hint}", ref)
    return summary


def find_workspace(archive: Archive, name: str) -> list[str]:
    """Return the hashes of the workspaces that match a path, a name, the end of a path or a host.

    Raises `WorkspaceNotFoundError` if none matches, with suggestions, or if the end of a path is ambiguous.
    """
    if found := archive.sessions.workspace_hashes(name):
        return found
    similar = _similar_paths(name, archive.sessions.workspaces())
    lines = "".join(f"\n  {one_line(path, _MAX_PATH_CHARS)}" for path in similar[:_MAX_SUGGESTIONS])
    reason = f"No session has the workspace {name!r}."
    if lines:
        raise WorkspaceNotFoundError(f"{reason} Similar workspaces:{lines}", name)
    raise WorkspaceNotFoundError(reason, name, hint="Run 'backscroll list' to see all sessions.")


def check_page(limit: int, offset: int) -> None:
    """Raise `UsageError` if the limit or the offset of a page is out of range."""
    if not 1 <= limit <= _MAX_PAGE_SIZE:
        raise UsageError(f"The limit must be between 1 and {_MAX_PAGE_SIZE}, not {limit}.")
    if not 0 <= offset <= _MAX_OFFSET:
        raise UsageError(f"The offset must be between 0 and {_MAX_OFFSET}, not {offset}.")


def check_choice(name: str, value: object, choices: Any) -> None:
    """Raise `UsageError` if a value is none of the choices: a collection or a `Literal`."""
    allowed = choices if isinstance(choices, Collection) else get_args(choices)
    if value not in allowed:
        raise UsageError(f"{value!r} is not a valid {name}. Use one of: {', '.join(allowed)}.")


def check_filter(filter: Filter | None) -> Filter:
    """Return the filter, or one without conditions. Raises `UsageError` for an unknown source."""
    if filter is None:
        return model.Filter()
    if filter.source is not None and filter.source not in sources.names():
        sources.named(filter.source)  # raises UsageError with the known names
    return filter


def _may_be_index(ref: str) -> bool:
    """Return whether a ref can be an index. An index has no leading zero; an id may have one."""
    return ref.isascii() and ref.isdigit() and not ref.startswith("0") and len(ref) <= _MAX_INDEX_DIGITS


def _has_parent(summary: SessionSummary, prefix: str) -> bool:
    return summary.parent_ref is not None and summary.parent_ref.partition(":")[2].startswith(prefix)


def _find_subagents(archive: Archive, parent: str, name: str) -> list[SessionSummary]:
    """Return the subagents of a session whose ids continue the id of the session with this name."""
    sessions = [summary for summary in archive.sessions.find(parent) if summary.parent_ref is None]
    return [
        subagent
        for session in sessions
        for subagent, _ in archive.sessions.subagents(session)
        if name and subagent.id.startswith(f"{session.id}-{name}")
    ]


def _age(summary: SessionSummary) -> tuple[bool, str]:
    """Sort key: sessions before subagents, older before newer."""
    created = summary.created_at.isoformat() if summary.created_at is not None else "~"
    return summary.parent_ref is not None, created


def _similar_paths(name: str, workspaces: Iterable[WorkspaceSummary]) -> list[str]:
    """Return paths above or below the given one, and paths with a similar last component."""
    from difflib import get_close_matches  # start-up time

    path = name.casefold().rstrip("/")
    last = path.rpartition("/")[2]
    paths = {workspace.path: workspace.path.casefold().rstrip("/") for workspace in workspaces}
    names = {known: folded.rpartition("/")[2] for known, folded in paths.items()}
    above = [known for known, folded in paths.items() if path.startswith(f"{folded}/")]
    below = [known for known, folded in paths.items() if path and folded.startswith(f"{path}/")]
    similar = [known for known in paths if last and last in names[known]]
    close = get_close_matches(last, names.values())
    similar += [known for known in paths if names[known] in close]
    return list(dict.fromkeys([*sorted(above, key=len, reverse=True), *similar, *below]))
