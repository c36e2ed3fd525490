"""Money, spans of time and shares as people read them."""

from backscroll.model.statistics import Sums

__all__ = ["format_cost", "format_duration", "format_percent", "format_usd"]


def format_usd(usd: float) -> str:
    """Dollars and cents; less than a cent is not nothing."""
    return f"${usd:,.2f}" if usd >= 0.005 or usd == 0 else "<$0.01"


def format_cost(row: Sums) -> str:
    """What a row cost: ``≥`` when some of its models have no price, ``?`` when none has."""
    if row.cost_usd is None:
        return "?" if row.unpriced_tokens else ""
    return ("≥" if row.unpriced_tokens else "") + format_usd(row.cost_usd)


def format_duration(seconds: float) -> str:
    """Hours and minutes, or what is less."""
    minutes = round(seconds / 60)
    if minutes >= 60:
        return f"{minutes // 60:,} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60:,} h"
    return f"{minutes} min" if minutes else f"{round(seconds)} s"


def format_percent(share: float) -> str:
    """A share; one that is not quite all or nothing does not look like it."""
    text = f"{share * 100:.1f}" if share < 0.1 else f"{share * 100:.0f}"
    if text == "100" and share < 1:
        text = ">99"
    if text == "0.0" and share > 0:
        text = "<0.1"
    return f"{text.removesuffix('.0')} %"
