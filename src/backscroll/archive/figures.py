"""What the messages, edits and responses of a session add up to."""

import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from backscroll.model import TokenUsage
from backscroll.readers.times import iso

__all__ = ["Figures", "moment"]

_FAR = 1 << 61


def moment(milliseconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds is not None else None


class Figures:
    """The figures of some accounts, and of the subagents they started."""

    def __init__(self, db: sqlite3.Connection, own: Iterable[int], helpers: Iterable[int] = ()) -> None:
        self.db = db
        db.execute("create temp table if not exists chosen (account integer primary key, is_helper integer)")
        db.execute("delete from chosen")
        db.executemany("insert or ignore into chosen values (?, 0)", [(number,) for number in own])
        db.executemany("insert or ignore into chosen values (?, 1)", [(number,) for number in helpers])
        self.is_at_least = False
        self.tokens = self._tokens()
        (self.messages, self.interactions, first, last) = db.execute(
            "select coalesce(sum(is_active and role <> 'system' and agent_id is null), 0),"
            " coalesce(sum(is_active and role = 'user' and agent_id is null and copied_from is null"
            " and coalesce(kind, 'queued') = 'queued'), 0), min(at), max(at)"
            " from chosen cross join message using (account) where not is_helper"
        ).fetchone()
        self.first_at, self.last_at = moment(first), moment(last)
        self.tools = self._column(
            "select tool from chosen cross join message using (account)"
            " where not is_helper and tool is not null and is_active order by account, position"
        )
        self.models = self._column(
            "select model from chosen cross join message using (account)"
            " where not is_helper and model is not null group by model order by count(*) desc, model"
        )
        self.inlined = self._column(
            "select distinct agent_id from chosen cross join message using (account)"
            " where not is_helper and agent_id is not null order by 1"
        )
        self.changes: int = db.execute(
            "select coalesce(sum(e.added + e.removed), 0)"
            " from chosen c cross join edit e on e.account = c.account"
            " cross join message m on m.account = e.account and m.position = e.position"
            " where m.is_active and m.copied_from is null and m.status = 'completed'"
        ).fetchone()[0]
        self.decisions = self._decisions()

    def _column(self, query: str) -> list[str]:
        return [value for (value,) in self.db.execute(query)]

    def _decisions(self) -> list[dict[str, Any]]:
        """Every edit that somebody, or a standing permission, decided on."""
        rows = self.db.execute(
            "select m.tool, e.path, m.decision, m.position, m.at"
            " from chosen c cross join edit e on e.account = c.account"
            " cross join message m on m.account = e.account and m.position = e.position"
            " where not c.is_helper and m.decision is not null and m.is_active order by e.account, e.position"
        )
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
        rows = self.db.execute(
            "select r.id, r.usage, r.account, (select o.account from response o"
            "  left join message m indexed by message_record on m.record = o.record and m.account = o.account"
            "  where o.id = r.id"
            "  order by m.copied_from is not null, coalesce(o.at, :far), o.is_agent, o.account limit 1)"
            " from chosen c cross join response r on r.account = c.account",
            {"far": _FAR},
        )
        usage: dict[str, TokenUsage] = {}
        for id_, packed, account, maker in rows:
            if account != maker:
                continue  # it was first made elsewhere
            one = msgspec.msgpack.decode(packed, type=TokenUsage)
            usage[id_] = usage[id_].merged(one) if id_ in usage else one
        self.is_at_least = any(one.is_at_least for one in usage.values())
        return sum(one.total for one in usage.values()) if usage else None
