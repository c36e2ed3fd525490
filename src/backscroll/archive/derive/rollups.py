"""Rollups of activity, tool use and tokens by 15-minute bucket, so that statistics over years are quick."""

import sqlite3
from collections import defaultdict

from msgspec import Struct, field

from backscroll.model.statistics import PROMPT_SIZES

__all__ = ["BUCKET_MS", "MAX_IDLE_MS", "UNDATED_BUCKET", "FragmentRollup", "RollupWriter"]

BUCKET_MS = 900_000  # the largest span that never crosses midnight in any time zone
UNDATED_BUCKET = -1  # messages without a time
MAX_IDLE_MS = 300_000  # a longer gap between messages is not active time
BATCH_ROWS = 10_000

_INSERT_ACTIVITY = "insert into activity_rollup values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_TOOLS = "insert into tool_rollup values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# Counts each response once: is_copy = 1 means that another fragment produced it.
_INSERT_TOKENS = (
    f"insert into token_rollup select fragment_id, coalesce(at / {BUCKET_MS}, {UNDATED_BUCKET}),"  # noqa: S608
    " coalesce(model_string_id, 0), coalesce(speed_string_id, 0),"
    f" {' + '.join(f'(prompt > {size})' for size in PROMPT_SIZES)} as prompt_size_class, count(*),"
    " sum(coalesce(input_tokens, 0)), sum(coalesce(output_tokens, 0)),"
    " sum(coalesce(cache_creation_tokens, 0) - coalesce(cache_creation_1h_tokens, 0)),"
    " sum(coalesce(cache_creation_1h_tokens, 0)), sum(coalesce(cache_read_tokens, 0)), sum(cost_usd),"
    " max(is_lower_bound)"
    " from (select *, coalesce(input_tokens, 0) + coalesce(cache_creation_tokens, 0)"
    "  + coalesce(cache_read_tokens, 0) as prompt"
    "  from response where fragment_id = ? and is_copy is not 1) group by 2, 3, 4, 5"
)
_SUM_TOKENS = (
    "select sum(input_tokens + output_tokens + cache_write_tokens + cache_write_1h_tokens"
    " + cache_read_tokens), max(is_lower_bound) from token_rollup where fragment_id = ?"
)


class _MessageCounts(Struct):
    """Message counts of one bucket."""

    messages: int = 0
    subagent_messages: int = 0
    prompts: int = 0
    calls: int = 0
    failures: int = 0


class _ToolCounts(Struct):
    """Counts of one tool with one model in one bucket."""

    messages: int = 0
    calls: int = 0
    failures: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    decided: int = 0
    accepted: int = 0


class FragmentRollup(Struct):
    """Counts of one fragment by bucket."""

    activity: defaultdict[int, _MessageCounts] = field(default_factory=lambda: defaultdict(_MessageCounts))
    tools: defaultdict[tuple[int, int, int], _ToolCounts] = field(  # by bucket, tool and model
        default_factory=lambda: defaultdict(_ToolCounts)
    )
    active_ms: dict[int, int] = field(default_factory=dict)  # each span in the bucket in which it ends


class RollupWriter:
    """Writes rollup rows in batches of many fragments."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._fragment_ids: list[tuple[int]] = []
        self._activity: list[tuple[int, ...]] = []
        self._tools: list[tuple[int, ...]] = []

    def write(self, fragment_id: int, rollup: FragmentRollup) -> None:
        """Replace the activity and tool rows of a fragment."""
        edits = {bucket: [0, 0, 0, 0] for bucket in rollup.activity}
        for (bucket, tool, model), counts in rollup.tools.items():
            changes = counts.lines_added, counts.lines_removed, counts.decided, counts.accepted
            key = fragment_id, bucket, tool, model
            self._tools.append((*key, counts.messages, counts.calls, counts.failures, *changes))
            if any(changes):
                edits[bucket] = [a + b for a, b in zip(edits[bucket], changes, strict=True)]
        for bucket, sums in rollup.activity.items():
            self._activity.append(
                (
                    fragment_id,
                    bucket,
                    sums.messages,
                    sums.subagent_messages,
                    sums.prompts,
                    sums.calls,
                    sums.failures,
                    rollup.active_ms.get(bucket, 0),
                    *edits[bucket],
                )
            )
        self._fragment_ids.append((fragment_id,))
        if len(self._tools) > BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the current batch."""
        db = self._db
        db.executemany("delete from activity_rollup where fragment_id = ?", self._fragment_ids)
        db.executemany("delete from tool_rollup where fragment_id = ?", self._fragment_ids)
        db.executemany(_INSERT_ACTIVITY, self._activity)
        db.executemany(_INSERT_TOOLS, self._tools)
        self._fragment_ids, self._activity, self._tools = [], [], []

    def delete_tokens(self, fragment_id: int) -> None:
        """Delete the token rows of a fragment: they count elsewhere or not at all."""
        self._db.execute("delete from token_rollup where fragment_id = ?", [fragment_id])

    def write_tokens(self, fragment_id: int) -> tuple[int | None, bool]:
        """Replace the token rows of a fragment. Return the sum of tokens and whether it is a lower bound.

        The sum is None if no response has token counts.
        """
        self.delete_tokens(fragment_id)
        self._db.execute(_INSERT_TOKENS, [fragment_id])
        tokens, is_lower_bound = self._db.execute(_SUM_TOKENS, [fragment_id]).fetchone()
        return tokens, bool(is_lower_bound)
