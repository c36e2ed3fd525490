"""Totals of a session: sums over its fragments and subagents."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from backscroll.archive.derive.counters import FragmentCounts
from backscroll.archive.storage.strings import StringLookup
from backscroll.archive.timestamps import from_ms
from backscroll.model.dates import iso

__all__ = ["SessionTotals"]


class SessionTotals:
    """Totals of the fragments of a session, best first, and of its subagents.

    `agent_id` is the id of a subagent without a known parent, treated as a session of its own.
    """

    def __init__(
        self,
        strings: StringLookup,
        own: Sequence[FragmentCounts],
        subagents: Iterable[Sequence[FragmentCounts]] = (),
        *,
        agent_id: str | None = None,
    ) -> None:
        self._strings = strings
        self._own = own
        every = [*own, *chain.from_iterable(subagents)]
        known_tokens = [counts.tokens for counts in every if counts.tokens is not None]
        self.tokens = sum(known_tokens) if known_tokens else None
        self.has_own_tokens = self.tokens is not None
        self.is_lower_bound = any(counts.is_lower_bound for counts in every)
        self.message_count = self.messages_of(agent_id)
        self.interactions = sum(counts.interactions for counts in own)
        first = min((counts.first_at for counts in own if counts.first_at is not None), default=None)
        last = max((counts.last_at for counts in own if counts.last_at is not None), default=None)
        self.first_at = from_ms(first) if first is not None else None
        self.last_at = from_ms(last) if last is not None else None
        self.tools = self._tools()
        self.models = self._models()
        self.inlined = {strings[id_] for counts in own for id_ in counts.agents} - {agent_id}
        self.changes = sum(counts.changes for counts in every)
        self.decisions = self._decisions()

    def messages_of(self, agent_id: str | None) -> int:
        """Return the number of messages of an inlined subagent, or of the session itself."""
        string_id = self._strings.find_id(agent_id) if agent_id is not None else None
        return sum(counts.messages[string_id] for counts in self._own)

    @property
    def all_messages(self) -> int:
        """Number of messages of the session and its inlined subagents."""
        return sum(counts.messages.total() for counts in self._own)

    @property
    def acceptance_rate(self) -> float | None:
        """Share of accepted edits; None if there was no decision."""
        if not self.decisions:
            return None
        accepted = [decision for decision in self.decisions if decision["decision"] == "accepted"]
        return len(accepted) / len(self.decisions)

    def _tools(self) -> list[str]:
        """Return the tools in the order of their calls, over several files by time."""
        calls = list(chain.from_iterable(counts.tools for counts in self._own))
        if len(self._own) > 1:
            calls.sort(key=lambda call: (call[1] is None, call[1]))
        return [self._strings[tool] for tool, _ in calls]

    def _models(self) -> list[str]:
        """Return the models, by number of messages."""
        found = Counter[str]()
        for counts in self._own:
            for model, count in counts.models.items():
                found[self._strings[model]] += count
        return sorted(found, key=lambda model: (-found[model], model))

    def _decisions(self) -> list[dict[str, Any]]:
        """Return the decisions on edits, as stored in `conversations.acceptance_decisions`."""
        strings = self._strings
        return [
            {
                "what": strings[decision.tool] if decision.tool is not None else None,
                "where": decision.path,
                "decision": strings[decision.decision],
                "position": decision.position,
                "at": iso(from_ms(decision.at)) if decision.at is not None else None,
            }
            for counts in self._own
            for decision in counts.decisions
        ]
