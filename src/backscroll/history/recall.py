"""Sessions that help with a task, with excerpts."""

from collections.abc import Callable

import msgspec

from backscroll.archive import Archive
from backscroll.errors import UsageError
from backscroll.history.session_refs import find_session
from backscroll.history.stores import Stores
from backscroll.model import SessionSummary
from backscroll.model.export import SecretLocation
from backscroll.model.search import RecallResult
from backscroll.model.text import sanitize
from backscroll.redact.redactor import Redactor
from backscroll.render.recall import recalled_session_document
from backscroll.render.token_estimate import estimate_tokens
from backscroll.search.excerpts import build_recalled_session
from backscroll.search.known_secrets import learn_named_secrets
from backscroll.search.recall import RecallCandidate, find_candidates

__all__ = ["recall"]

_MAX_SESSIONS = 8
_HEADER_TOKENS = 80  # cost of a session without its excerpts
_MIN_SESSION_TOKENS = 200
_SESSION_SHARE = 0.4  # of the remaining budget


def recall(
    stores: Stores,
    task: str,
    *,
    workspace: str | None,
    token_budget: int,
    redactor: Redactor | None,
    progress: Callable[[int, int], None] | None,
) -> RecallResult:
    """Return the sessions most useful for a task, best first."""
    if token_budget < _MIN_SESSION_TOKENS:
        raise UsageError(f"The token budget must be at least {_MIN_SESSION_TOKENS}, not {token_budget}.")
    archive = stores.archive
    if workspace is not None:
        archive.sessions.workspace_hashes(workspace)  # raises WorkspaceNotFoundError if it is ambiguous
    candidates = stores.index.query(
        lambda index: find_candidates(archive, index, task, workspace=workspace, progress=progress)
    )
    groups = _by_session(archive, candidates)
    if redactor is not None:
        ids = {candidate.session for _, group in groups[:_MAX_SESSIONS] for candidate in group}
        learn_named_secrets(archive, stores.index.index, redactor, ids)

    def redact(text: str, ref: str, position: int) -> str:
        if redactor is None:
            return sanitize(text)
        return redactor.redact_text(text, SecretLocation(ref, position))

    sessions = []
    budget = token_budget
    for summary, group in groups[:_MAX_SESSIONS]:
        if budget < _MIN_SESSION_TOKENS:
            break
        share = max(int(budget * _SESSION_SHARE), _MIN_SESSION_TOKENS)
        session = build_recalled_session(
            archive, summary, group, tokens=share - _HEADER_TOKENS, redact=redact
        )
        cost = estimate_tokens(msgspec.json.encode(recalled_session_document(session)).decode())
        if cost > budget:
            break
        budget -= cost
        sessions.append(session)
    return RecallResult(
        task=task,
        sessions=tuple(sessions),
        token_budget=token_budget,
        left_out=len(groups) - len(sessions),
    )


def _by_session(
    archive: Archive, candidates: list[RecallCandidate]
) -> list[tuple[SessionSummary, list[RecallCandidate]]]:
    """Group candidates by session. A subagent belongs to the session that started it."""
    summaries = archive.sessions.by_ids({candidate.session for candidate in candidates})
    groups: dict[str, tuple[SessionSummary, list[RecallCandidate]]] = {}
    for candidate in candidates:
        summary = summaries.get(candidate.session)
        if summary is None:
            continue
        if summary.parent_ref is not None:
            summary = find_session(archive, summary.parent_ref)
        groups.setdefault(summary.ref, (summary, []))[1].append(candidate)
    return list(groups.values())
