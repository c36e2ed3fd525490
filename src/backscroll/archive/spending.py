"""What responses took in each quarter of an hour: counted when a session is told."""

import sqlite3
from collections.abc import Iterable

from backscroll.archive.work import QUARTER, UNDATED
from backscroll.model.statistics import PROMPT_SIZES

__all__ = ["write_spending"]

# Each response once: is_copy says that another account made it first.
_RESPONSES = (
    f"insert into spending select account, coalesce(at / {QUARTER}, {UNDATED}), coalesce(model, 0),"  # noqa: S608
    f" coalesce(speed, 0), {' + '.join(f'(prompt > {size})' for size in PROMPT_SIZES)} as size, count(*),"
    " sum(coalesce(input, 0)), sum(coalesce(output, 0)),"
    " sum(coalesce(cache_creation, 0) - coalesce(cache_creation_1h, 0)), sum(coalesce(cache_creation_1h, 0)),"
    " sum(coalesce(cache_read, 0)), sum(cost), max(is_at_least)"
    " from (select *, coalesce(input, 0) + coalesce(cache_creation, 0) + coalesce(cache_read, 0) as prompt"
    "  from response where account = ? and is_copy is not 1) group by 1, 2, 3, 4, 5"
)


def write_spending(db: sqlite3.Connection, accounts: Iterable[int]) -> None:
    """Count anew what the responses of these accounts took."""
    for account in accounts:
        db.execute("delete from spending where account = ?", [account])
        db.execute(_RESPONSES, [account])
