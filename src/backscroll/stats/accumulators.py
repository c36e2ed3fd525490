"""Accumulators of tokens, costs and activity."""

from collections.abc import Iterator

from backscroll.archive.query.statistics import ActivityTotals, GroupTotals, PriceClass, TokenTotals
from backscroll.model.statistics import By, Consumption, Sums, Tokens
from backscroll.pricing.costs import bill_of
from backscroll.pricing.prices import PriceTable

__all__ = ["RowSums", "TokenSums"]


class TokenSums:
    """Sums of tokens and costs by price class."""

    def __init__(self) -> None:
        self._kinds: dict[PriceClass, list[float]] = {}

    def add(self, spent: TokenTotals) -> None:
        """Add the tokens of responses."""
        known = self._kinds.get(spent.price_class)
        if known is None:
            known = self._kinds[spent.price_class] = [0, 0, 0, 0, 0, 0, 0, 0, 0]
        for place, count in enumerate(spent.counts):
            known[place] += count
        if spent.reported_usd is not None:
            known[6] += spent.reported_usd
            known[7] = 1
        known[8] = known[8] or spent.is_at_least

    def consumed(self) -> Iterator[Consumption]:
        """Yield the consumption by price class."""
        for kind, (
            responses,
            input_tokens,
            output,
            write,
            write_1h,
            read,
            usd,
            is_reported,
            at_least,
        ) in self._kinds.items():
            yield Consumption(
                model=kind.model,
                speed=kind.speed,
                at=kind.at,
                prompt=kind.prompt,
                responses=int(responses),
                tokens=Tokens(
                    input=int(input_tokens),
                    output=int(output),
                    cache_write=int(write),
                    cache_write_1h=int(write_1h),
                    cache_read=int(read),
                ),
                reported_usd=usd if is_reported else None,
                is_at_least=bool(at_least),
            )


class RowSums:
    """Sums of one row."""

    def __init__(self) -> None:
        self.tokens = TokenSums()
        self.reported_usd: float | None = None
        self.sessions: set[int] = set()
        self.messages = self.subagent_messages = self.prompts = self.calls = self.failures = 0
        self.active = self.added = self.removed = self.decided = self.accepted = 0

    def add_activity(self, done: ActivityTotals) -> None:
        """Add the activity of 15 minutes."""
        self.sessions.add(done.session_id)
        self.messages += done.messages
        self.subagent_messages += done.subagent_messages
        self.prompts += done.prompts
        self.calls += done.calls
        self.failures += done.failures
        self.active += done.active_ms
        self.added += done.lines_added
        self.removed += done.lines_removed
        self.decided += done.decided
        self.accepted += done.accepted

    def add_reported(self, usd: float) -> None:
        """Add a cost that a tool reports for a session."""
        self.reported_usd = (self.reported_usd or 0) + usd

    def add_group(self, part: GroupTotals) -> None:
        """Add the activity of one tool or model."""
        self.sessions.add(part.session_id)
        self.messages += part.messages
        self.calls += part.calls
        self.failures += part.failures
        self.added += part.lines_added
        self.removed += part.lines_removed
        self.decided += part.decided
        self.accepted += part.accepted

    def sums(
        self, prices: PriceTable, key: str | None, by: By | None = None, *, sessions: int | None = None
    ) -> Sums:
        """Return the row. Fields that are unknown by tool or by model are None."""
        is_part, is_tool = by in ("tool", "model"), by == "tool"
        bill = bill_of(self.tokens.consumed(), prices)
        reported = [usd for usd in (bill.reported_usd, self.reported_usd) if usd is not None]
        return Sums(
            key=key,
            sessions=len(self.sessions) if sessions is None else sessions,
            prompts=None if is_part else self.prompts,
            messages=None if is_tool else self.messages,
            subagent_messages=None if is_part else self.subagent_messages,
            active_seconds=None if is_part else self.active / 1000,
            responses=bill.responses,
            tokens=bill.tokens,
            cost_usd=bill.usd,
            unpriced_tokens=sum(one.tokens for one in bill.unpriced),
            reported_usd=sum(reported) if reported else None,
            is_at_least=bill.is_at_least,
            lines_added=None if by == "model" else self.added,
            lines_removed=None if by == "model" else self.removed,
            edits_decided=None if by == "model" else self.decided,
            edits_accepted=None if by == "model" else self.accepted,
            tool_calls=self.calls,
            tool_failures=self.failures,
        )
