"""Result of an audit: record counts of every root."""

from msgspec import Struct, field

from backscroll.model.problem import Problem

__all__ = ["Audit", "AuditedRoot"]


class AuditedRoot(Struct, kw_only=True):
    """One root of one source with the counts of everything below it."""

    source: str
    path: str
    exists: bool
    units: dict[str, int] = field(default_factory=dict)  # by kind
    sessions: int = 0
    subagents: int = 0
    session_messages: int = 0  # active messages except system messages, without subagents
    subagent_messages: int = 0  # the same, of subagents
    messages: int = 0  # all messages of sessions and subagents, with system messages and abandoned branches
    unlisted: dict[str, int] = field(default_factory=dict)  # sessions that are no conversation, by reason
    completeness: dict[str, int] = field(default_factory=dict)
    records: int = 0
    parsed: int = 0
    ignored: int = 0
    problems: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)

    @property
    def is_balanced(self) -> bool:
        return self.records == self.parsed + self.ignored + self.problems


class Audit(Struct, kw_only=True):
    """Every root that was read, and the problems found there."""

    places: list[AuditedRoot]
    problems: list[Problem]

    @property
    def is_understood(self) -> bool:
        return not self.problems and not any(place.problems or place.unknown for place in self.places)
