"""What the messages, edits and responses of a session add up to."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from backscroll.archive.words import FIXED
from backscroll.readers.times import iso

__all__ = ["Figures", "moment", "not_before"]

_MESSAGES = (
    "select coalesce(sum(is_active and role <> {system}"
    " and agent_id is (select number from word where text = :agent)), 0),"
    " coalesce(sum(is_active and role = {user} and agent_id is null and copied_from is null"
    " and coalesce(kind, {queued}) = {queued}), 0), min(at), max(at) from message m where account = :account"
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


def not_before(accounts: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Accounts of one session, each with the condition that a row of ``message m`` is in none before it.

    Two files of a session may both hold a message, and it counts once.
    """
    for place, account in enumerate(accounts):
        before = ", ".join(map(str, accounts[:place]))
        repeated = f"select 1 from message e where e.record = m.record and e.account in ({before})"  # noqa: S608
        yield account, f" and not exists ({repeated})" if before else ""


class Figures:
    """The figures of the accounts of a session, the best one first, and of those of each of its subagents."""

    def __init__(
        self,
        db: sqlite3.Connection,
        own: Sequence[int],
        helpers: Iterable[Sequence[int]] = (),
        *,
        agent: str | None = None,  # of which it is not known who started it
    ) -> None:
        self.db = db
        self._agent = agent
        self._own, self._helpers = own, list(helpers)
        self.is_at_least = False
        self.tokens = self._tokens()
        self.messages = self.interactions = 0
        first: int | None = None
        last: int | None = None
        for account, anew in not_before(own):
            values = {"account": account, "agent": agent}
            messages, interactions, began, ended = db.execute(_MESSAGES + anew, values).fetchone()
            self.messages += messages
            self.interactions += interactions
            if began is not None:
                first = began if first is None else min(first, began)
                last = ended if last is None else max(last, ended)
        self.first_at, self.last_at = moment(first), moment(last)
        self.tools = self._tools()
        self.models = self._models()
        self.inlined = sorted(self._inlined())
        self.changes = sum(
            db.execute(_CHANGES + anew, [account]).fetchone()[0]
            for accounts in (own, *self._helpers)
            for account, anew in not_before(accounts)
        )
        self.decisions = self._decisions()

    def _tools(self) -> list[str]:
        """The tools in the order of their calls; those of several files by their times."""
        rows = [
            row
            for account, anew in not_before(self._own)
            for row in self.db.execute(
                "select text, at from message m join word on number = tool where account = ? and is_active"  # noqa: S608
                f"{anew} order by position",
                [account],
            )
        ]
        if len(self._own) > 1:
            rows.sort(key=lambda row: (row[1] is None, row[1]))
        return [tool for tool, _ in rows]

    def _inlined(self) -> set[str]:
        """The subagents that are written into the session's own files."""
        query = (
            "select text from (select distinct agent_id from message where account = ?"
            " and agent_id is not null) join word on number = agent_id"
        )
        found = {agent for account in self._own for (agent,) in self.db.execute(query, [account])}
        return found - {self._agent}

    def _models(self) -> list[str]:
        """The models that answered, the one of most messages first."""
        found: dict[str, int] = {}
        for account, anew in not_before(self._own):
            for model, count in self.db.execute(
                "select text, many from (select model, count(*) as many from message m where account = ?"  # noqa: S608
                f" and model is not null{anew} group by model) join word on number = model",
                [account],
            ):
                found[model] = found.get(model, 0) + count
        return sorted(found, key=lambda model: (-found[model], model))

    def _decisions(self) -> list[dict[str, Any]]:
        """Every edit that somebody, or a standing permission, decided on."""
        rows = [
            row
            for account, anew in not_before(self._own)
            for row in self.db.execute(
                "select t.text, e.path, d.text, m.position, m.at from edit e cross join message m"  # noqa: S608
                " on m.account = e.account and m.position = e.position"
                " left join word t on t.number = m.tool left join word d on d.number = m.decision"
                f" where e.account = ? and m.decision is not null and m.is_active{anew} order by e.position",
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
        for account in chain(self._own, *self._helpers):
            tokens, is_at_least = self.db.execute(_TOKENS, [account]).fetchone()
            if tokens is not None:
                total = (total or 0) + tokens
                self.is_at_least = self.is_at_least or bool(is_at_least)
        return total
