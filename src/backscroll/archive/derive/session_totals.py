"""What the messages, edits and responses of a session add up to."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from backscroll.archive.derive.counters import Counts
from backscroll.archive.storage.texts import Texts
from backscroll.model.dates import iso

__all__ = ["Figures", "moment"]


class Figures:
    """The figures of the accounts of a session, the best one first, and of those of each of its subagents."""

    def __init__(
        self,
        texts: Texts,
        own: Sequence[Counts],
        helpers: Iterable[Sequence[Counts]] = (),
        *,
        agent: str | None = None,  # of which it is not known who started it
    ) -> None:
        self._texts = texts
        self._own = own
        everybody = [*own, *chain.from_iterable(helpers)]
        counted = [one.tokens for one in everybody if one.tokens is not None]
        self.tokens = sum(counted) if counted else None
        self.is_at_least = any(one.is_at_least for one in everybody)
        self.messages = self.spoken(agent)
        self.interactions = sum(one.interactions for one in own)
        self.first_at = moment(min((one.first_at for one in own if one.first_at is not None), default=None))
        self.last_at = moment(max((one.last_at for one in own if one.last_at is not None), default=None))
        self.tools = self._tools()
        self.models = self._models()
        self.inlined = {texts[number] for one in own for number in one.agents} - {agent}
        self.changes = sum(one.changes for one in everybody)
        self.decisions = self._decisions()

    def spoken(self, agent: str | None) -> int:
        """How many messages are shown and no system's, of an inlined subagent or of none."""
        number = self._texts.number(agent) if agent is not None else None
        return sum(one.spoken[number] for one in self._own)

    @property
    def all_spoken(self) -> int:
        """How many messages are shown and no system's, whoever's they are."""
        return sum(one.spoken.total() for one in self._own)

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted of decided edits; None when none was decided."""
        if not self.decisions:
            return None
        accepted = [one for one in self.decisions if one["decision"] == "accepted"]
        return len(accepted) / len(self.decisions)

    def _tools(self) -> list[str]:
        """The tools in the order of their calls; those of several files by their times."""
        called = list(chain.from_iterable(one.tools for one in self._own))
        if len(self._own) > 1:
            called.sort(key=lambda call: (call[1] is None, call[1]))
        return [self._texts[tool] for tool, _ in called]

    def _models(self) -> list[str]:
        """The models that answered, the one of most messages first."""
        found = Counter[str]()
        for one in self._own:
            for model, count in one.models.items():
                found[self._texts[model]] += count
        return sorted(found, key=lambda model: (-found[model], model))

    def _decisions(self) -> list[dict[str, Any]]:
        """Every edit that somebody, or a standing permission, decided on."""
        texts = self._texts
        return [
            {
                "what": texts[one.tool] if one.tool is not None else None,
                "where": one.path,
                "decision": texts[one.decision],
                "position": one.position,
                "at": iso(moment(one.at)),
            }
            for counts in self._own
            for one in counts.decisions
        ]


def moment(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds is not None else None
