"""Sessions that help with a task, with excerpts."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.errors import UsageError
from backscroll.history.session_refs import find_session
from backscroll.history.stores import Stores
from backscroll.model import SessionSummary
from backscroll.model.export import SecretLocation
from backscroll.model.search import Excerpt, RecalledSession, RecallResult
from backscroll.model.text import sanitize
from backscroll.redact.redactor import Redactor
from backscroll.render.recall import recalled_session_document
from backscroll.render.token_estimate import estimate_tokens
from backscroll.search.excerpts import add_excerpts, session_without_excerpts
from backscroll.search.known_secrets import learn_named_secrets
from backscroll.search.recall import RecallCandidate, find_candidates

__all__ = ["recall"]

_MAX_SESSIONS = 8
_MIN_TOKEN_BUDGET = 200
_MIN_SESSION_TOKENS = 200  # of every session but the first
_SESSION_SHARE = 0.4  # of the remaining budget
_MAX_ATTEMPTS = 3  # to shorten the excerpts of a session until it fits


def recall(
    stores: Stores,
    task: str,
    *,
    workspace: str | None,
    token_budget: int,
    redactor: Redactor | None,
    progress: Callable[[int, int], None] | None,
    measure: Callable[[RecallResult], int] | None,
) -> RecallResult:
    """Return the sessions most useful for a task, best first."""
    if token_budget < _MIN_TOKEN_BUDGET:
        raise UsageError(f"The token budget must be at least {_MIN_TOKEN_BUDGET}, not {token_budget}.")
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

    measure = measure or _measure_json
    result = RecallResult(task=task, sessions=(), token_budget=token_budget, left_out=len(groups))
    overhead_tokens = 0
    for summary, group in groups[:_MAX_SESSIONS]:
        remaining = token_budget - measure(result)
        if result.sessions and remaining < _MIN_SESSION_TOKENS:
            break
        share = max(int(remaining * _SESSION_SHARE), min(remaining, _MIN_SESSION_TOKENS))
        session = session_without_excerpts(summary, redact)
        overhead_tokens = overhead_tokens or _excerpt_tokens(session, result, measure)
        tokens = share - (measure(_with_session(result, session)) - measure(result))  # for the excerpts
        for _ in range(_MAX_ATTEMPTS):
            excerpts = add_excerpts(
                archive, session, group, tokens=tokens, overhead_tokens=overhead_tokens, redact=redact
            )
            longer = _with_session(result, excerpts)
            excess = measure(longer) - token_budget
            if excess <= 0:
                break
            tokens -= excess
        else:
            break
        result = longer
    return result


def _measure_json(result: RecallResult) -> int:
    """Return the tokens of the sessions as JSON."""
    document = [recalled_session_document(session) for session in result.sessions]
    return estimate_tokens(msgspec.json.encode(document).decode())


def _excerpt_tokens(
    session: RecalledSession, result: RecallResult, measure: Callable[[RecallResult], int]
) -> int:
    """Return the tokens of an excerpt without its texts."""
    excerpt = Excerpt(
        agent_ref=None,
        message_index=1000,
        role="assistant",
        timestamp=session.updated_at,
        asked=".",
        text=".",
        outcome=".",
    )
    with_excerpt = _with_session(result, replace(session, excerpts=(excerpt,)))
    return measure(with_excerpt) - measure(_with_session(result, session))


def _with_session(result: RecallResult, session: RecalledSession) -> RecallResult:
    return replace(result, sessions=(*result.sessions, session), left_out=result.left_out - 1)


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
