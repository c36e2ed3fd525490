"""What earlier sessions have to say about a task."""

from typing import TYPE_CHECKING

from backscroll.errors import UsageError
from backscroll.history.sessions import Sessions

if TYPE_CHECKING:
    from backscroll.ingest.audit import Progress
    from backscroll.model import SessionSummary
    from backscroll.model.search import RecallResult
    from backscroll.redact.redactor import Redactor
    from backscroll.search.recall import RecallCandidate

__all__ = ["Recalling"]

_MOST_SESSIONS = 8
_HEAD = 80  # tokens that a session costs beside its excerpts
_SMALLEST = 200  # tokens for which a session can say anything
_SHARE = 0.4  # of what is left, for the next session


class Recalling(Sessions):
    """What earlier sessions have to say about a task."""

    def recall(
        self,
        task: str,
        *,
        workspace: str | None = None,
        token_budget: int = 1500,
        redactor: "Redactor | None" = None,
        progress: "Progress | None" = None,
    ) -> "RecallResult":
        """The sessions most useful for a task, best first, with excerpts within so many tokens by estimate.

        The task is plain words, of any length. With a redaction, secrets are replaced. ``progress`` is told
        how many of the words were looked for. Raises `WorkspaceNotFoundError` when the workspace is the end
        of several paths.
        """
        from backscroll.index import IndexDamagedError
        from backscroll.search.recall import find_candidates

        if token_budget < _SMALLEST:
            raise UsageError(f"a recollection takes {_SMALLEST} tokens or more, not {token_budget}")
        if not self._index.is_usable():
            self._update_index()
        if workspace is not None:
            self._archive.sessions.workspace_hashes(workspace)  # raises when it is not clear which is meant
        try:
            found = find_candidates(self._archive, self._index, task, workspace=workspace, progress=progress)
        except IndexDamagedError:
            self._index.rebuild()
            self._update_index()
            found = find_candidates(self._archive, self._index, task, workspace=workspace, progress=progress)
        return self._recollection(task, found, token_budget, redactor)

    def _recollection(
        self, task: str, found: "list[RecallCandidate]", budget: int, redactor: "Redactor | None"
    ) -> "RecallResult":
        import msgspec

        from backscroll.model.redaction import SecretLocation
        from backscroll.model.sanitize import sanitize
        from backscroll.model.search import RecallResult
        from backscroll.render.recall import recalled_session_document
        from backscroll.render.token_estimate import estimate_tokens
        from backscroll.search.excerpts import build_recalled_session

        def redact(text: str, ref: str, position: int) -> str:
            return (
                redactor.redact_text(text, SecretLocation(ref, position))
                if redactor is not None
                else sanitize(text)
            )

        groups = self._grouped(found)
        if redactor is not None:
            from backscroll.search.known_secrets import learn_named_secrets

            numbers = {lead.session for _, group in groups[:_MOST_SESSIONS] for lead in group}
            learn_named_secrets(self._archive, self._index, redactor, numbers)
        sessions = []
        left = budget
        for summary, group in groups[:_MOST_SESSIONS]:
            if left < _SMALLEST:
                break
            share = max(int(left * _SHARE), _SMALLEST)
            one = build_recalled_session(self._archive, summary, group, tokens=share - _HEAD, redact=redact)
            cost = estimate_tokens(msgspec.json.encode(recalled_session_document(one)).decode())
            if cost > left:
                break
            left -= cost
            sessions.append(one)
        return RecallResult(
            task=task, sessions=tuple(sessions), token_budget=budget, left_out=len(groups) - len(sessions)
        )

    def _grouped(
        self, found: "list[RecallCandidate]"
    ) -> "list[tuple[SessionSummary, list[RecallCandidate]]]":
        """The leads by session, a subagent's with the session that started it."""
        known = self._archive.sessions.by_ids({lead.session for lead in found})
        groups: dict[str, tuple[SessionSummary, list[RecallCandidate]]] = {}
        for lead in found:
            summary = known.get(lead.session)
            if summary is None:
                continue
            if summary.parent_ref is not None:
                summary = self.find(summary.parent_ref)
            groups.setdefault(summary.ref, (summary, []))[1].append(lead)
        return list(groups.values())
