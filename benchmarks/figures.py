"""What was measured, what was wanted, and the table of both."""

from collections.abc import Sequence

from msgspec import Struct

__all__ = ["Beside", "Figure", "lasted", "markdown", "say", "table"]


class Figure(Struct, frozen=True, kw_only=True):
    """One answer. ``key`` says what a peer must have measured to stand beside it."""

    key: str
    what: str
    value: float
    unit: str
    wanted: float | None = None
    times: float | None = None  # how many times better than agentsview is wanted
    more_is_better: bool = False
    processor: float | None = None  # seconds of the processor's time for it, all processes together

    @property
    def is_met(self) -> bool:
        if self.wanted is None:
            return True
        return self.value >= self.wanted if self.more_is_better else self.value <= self.wanted


def lasted(
    key: str,
    what: str,
    seconds: float,
    *,
    processor: float | None = None,
    wanted: float | None = None,
    times: float | None = None,
) -> Figure:
    """How long something short took, told in milliseconds."""
    return Figure(
        key=key, what=what, value=seconds * 1000, unit="ms", wanted=wanted, times=times, processor=processor
    )


class Beside(Struct, frozen=True, kw_only=True):
    """What another program needed for the same."""

    peer: str
    key: str
    value: float
    processor: float | None = None


_HEAD = (
    "",
    "measured",
    "processor",
    "wanted",
    "met",
    "agentsview",
    "its processor",
    "better by",
    "fast-resume",
)


def table(figures: Sequence[Figure], peers: Sequence[Beside]) -> str:
    """The table for a terminal."""
    rows = [_HEAD, *_rows(figures, peers)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = []
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def markdown(figures: Sequence[Figure], peers: Sequence[Beside]) -> str:
    """The same for a page."""
    lines = [f"| {' | '.join(_HEAD)} |", "|---" + "|--:" * (len(_HEAD) - 1) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in _rows(figures, peers))])


def _rows(figures: Sequence[Figure], peers: Sequence[Beside]) -> list[tuple[str, ...]]:
    return [_row(one, {peer.peer: peer for peer in peers if peer.key == one.key}) for one in figures]


def _row(one: Figure, others: dict[str, Beside]) -> tuple[str, ...]:
    is_met, better = one.is_met, ""
    view, resume = others.get("agentsview"), others.get("fast-resume")
    if view is not None and one.value:
        times = one.value / view.value if one.more_is_better else view.value / one.value
        better = f"{times:.1f}×" + (f" (wanted {one.times:g}×)" if one.times else "")
        is_met = is_met and (one.times is None or times >= one.times)
    has_target = one.wanted is not None or (one.times is not None and better)
    return (
        one.what,
        spelled(one.value, one.unit),
        _seconds(one.processor),
        spelled(one.wanted, one.unit) if one.wanted is not None else "",
        ("yes" if is_met else "no") if has_target else "",
        spelled(view.value, one.unit) if view is not None else "",
        _seconds(view.processor if view is not None else None),
        better,
        spelled(resume.value, one.unit) if resume is not None else "",
    )


def say(what: str, measured: str, wanted: str) -> None:
    """One line, for benchmarks that tell more than figures."""
    print(f"{what:<58} {measured:>14}   wanted {wanted}")


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return spelled(value, "s") if value >= 1 else spelled(value * 1000, "ms")


def spelled(value: float, unit: str) -> str:
    """A number with its unit, in as many digits as mean something."""
    digits = 2 if value < 1 else 1 if value < 10 else 0
    return f"{value:,.{digits}f} {unit}".rstrip()
