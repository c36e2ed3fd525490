"""What the messages, edits and responses of a session add up to."""

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from backscroll.archive.words import FIXED
from backscroll.readers.times import iso

__all__ = ["Figures", "moment"]

_MESSAGES = (
    "select coalesce(sum(is_active and role <> {system} and agent_id is null), 0),"
    " coalesce(sum(is_active and role = {user} and agent_id is null and copied_from is null"
    " and coalesce(kind, {queued}) = {queued}), 0), min(at), max(at) from message where account = ?"
).format_map(FIXED)
_CHANGES = (
    "select coalesce(sum(e.added + e.removed), 0) from edit e cross join message m"
    " on m.account = e.account and m.position = e.position"
    " where e.account = ? and m.is_active and m.copied_from is null and m.status = {completed}"
).format_map(FIXED)
_TOKENS = (
    "select sum(coalesce(input, 0) + coalesce(output, 0) + coalesce(cache_creation, 0)"
    " + coalesce(cache_read, 0)), max(is_at_least) from response where account = ? and is_copy is not 1"
)


def moment(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds is not None else None


class Figures:
    """The figures of some accounts, and of the subagents they started."""

    def __init__(self, db: sqlite3.Connection, own: Iterable[int], helpers: Iterable[int] = ()) -> None:
        self.db = db
        self._own, self._helpers = sorted(own), sorted(helpers)
        self.is_at_least = False
        self.tokens = self._tokens()
        self.messages = self.interactions = 0
        first: int | None = None
        last: int | None = None
        for account in self._own:
            messages, interactions, began, ended = db.execute(_MESSAGES, [account]).fetchone()
            self.messages += messages
            self.interactions += interactions
            if began is not None:
                first = began if first is None else min(first, began)
                last = ended if last is None else max(last, ended)
        self.first_at, self.last_at = moment(first), moment(last)
        self.tools = self._column(
            "select text from message join word on number = tool where account = ? and is_active"
            " order by position"
        )
        self.models = self._models()
        self.inlined = sorted(
            set(
                self._column(
                    "select text from (select distinct agent_id from message where account = ?"
                    " and agent_id is not null) join word on number = agent_id"
                )
            )
        )
        self.changes = sum(
            db.execute(_CHANGES, [account]).fetchone()[0] for account in (*self._own, *self._helpers)
        )
        self.decisions = self._decisions()

    def _column(self, query: str) -> list[str]:
        return [value for account in self._own for (value,) in self.db.execute(query, [account])]

    def _models(self) -> list[str]:
        """The models that answered, the one of most messages first."""
        found: dict[str, int] = {}
        for account in self._own:
            for model, count in self.db.execute(
                "select text, many from (select model, count(*) as many from message where account = ?"
                " and model is not null group by model) join word on number = model",
                [account],
            ):
                found[model] = found.get(model, 0) + count
        return sorted(found, key=lambda model: (-found[model], model))

    def _decisions(self) -> list[dict[str, Any]]:
        """Every edit that somebody, or a standing permission, decided on."""
        rows = [
            row
            for account in self._own
            for row in self.db.execute(
                "select t.text, e.path, d.text, m.position, m.at from edit e cross join message m"
                " on m.account = e.account and m.position = e.position"
                " left join word t on t.number = m.tool left join word d on d.number = m.decision"
                " where e.account = ? and m.decision is not null and m.is_active order by e.position",
                [account],
            )
        ]
        return [
            {"what": tool, "where": path, "decision": decision, "position": position, "at": iso(moment(at))}
            for tool, path, decision, position, at in rows
        ]

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted of decided edits; None when none was decided."""
        if not self.decisions:
            return None
        accepted = [one for one in self.decisions if one["decision"] == "accepted"]
        return len(accepted) / len(self.decisions)

    def _tokens(self) -> int | None:
        """Each response once, where it was first made; None when nobody counted."""
        total: int | None = None
        for account in (*self._own, *self._helpers):
            tokens, is_at_least = self.db.execute(_TOKENS, [account]).fetchone()
            if tokens is not None:
                total = (total or 0) + tokens
                self.is_at_least = self.is_at_least or bool(is_at_least)
        return total
