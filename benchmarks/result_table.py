"""Benchmark results, their targets, and the table that compares both."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

RESULTS_FOLDER = Path(__file__).parent / "results"
HEADINGS = (
    "",
    "result",
    "CPU",
    "target",
    "met",
    "agentsview",
    "agentsview CPU",
    "ratio",
    "fast-resume",
)


class Result(Struct, frozen=True, kw_only=True):
    """One measured value. The results of other programs are matched by ``key``."""

    key: str
    label: str
    value: float
    unit: str
    target: float | None = None
    target_ratio: float | None = None  # how many times better than agentsview
    higher_is_better: bool = False
    cpu_seconds: float | None = None  # of all processes

    @property
    def is_met(self) -> bool:
        if self.target is None:
            return True
        return self.value >= self.target if self.higher_is_better else self.value <= self.target


def duration_result(
    key: str,
    label: str,
    seconds: float,
    *,
    cpu_seconds: float | None = None,
    target: float | None = None,
    target_ratio: float | None = None,
) -> Result:
    """Return a result in milliseconds; the target is in milliseconds, too."""
    return Result(
        key=key,
        label=label,
        value=seconds * 1000,
        unit="ms",
        target=target,
        target_ratio=target_ratio,
        cpu_seconds=cpu_seconds,
    )


class PeerResult(Struct, frozen=True, kw_only=True):
    """Value that another program reached in the benchmark with the same key."""

    peer: str
    key: str
    value: float
    cpu_seconds: float | None = None


def table(results: Sequence[Result], peer_results: Sequence[PeerResult]) -> str:
    """Format the results with aligned columns for a terminal."""
    rows = [HEADINGS, *_rows(results, peer_results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = []
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def markdown(results: Sequence[Result], peer_results: Sequence[PeerResult]) -> str:
    """Format the results as a Markdown table."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" + "|--:" * (len(HEADINGS) - 1) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in _rows(results, peer_results))])


def write_results(scale: str, text: str) -> None:
    """Replace the stored results of this scale."""
    page = RESULTS_FOLDER / f"{scale}.md"
    page.write_text(f"# Benchmark results: history {scale}\n\n{text.strip()}\n")


def _rows(results: Sequence[Result], peer_results: Sequence[PeerResult]) -> list[tuple[str, ...]]:
    return [
        _row(result, {peer.peer: peer for peer in peer_results if peer.key == result.key})
        for result in results
    ]


def _row(result: Result, peers: dict[str, PeerResult]) -> tuple[str, ...]:
    is_met, ratio_text = result.is_met, ""
    agentsview, fast_resume = peers.get("agentsview"), peers.get("fast-resume")
    if agentsview is not None and result.value:
        ours, theirs = result.value, agentsview.value
        ratio = ours / theirs if result.higher_is_better else theirs / ours
        ratio_text = f"{ratio:.1f}×" + (f" (target {result.target_ratio:g}×)" if result.target_ratio else "")
        is_met = is_met and (result.target_ratio is None or ratio >= result.target_ratio)
    has_target = result.target is not None or (result.target_ratio is not None and ratio_text)
    return (
        result.label,
        format_value(result.value, result.unit),
        _format_seconds(result.cpu_seconds),
        format_value(result.target, result.unit) if result.target is not None else "",
        ("yes" if is_met else "no") if has_target else "",
        format_value(agentsview.value, result.unit) if agentsview is not None else "",
        _format_seconds(agentsview.cpu_seconds if agentsview is not None else None),
        ratio_text,
        format_value(fast_resume.value, result.unit) if fast_resume is not None else "",
    )


def _format_seconds(value: float | None) -> str:
    if value is None:
        return ""
    return format_value(value, "s") if value >= 1 else format_value(value * 1000, "ms")


def format_value(value: float, unit: str) -> str:
    """Format a number with its unit: two decimals below 1, one below 10, otherwise none."""
    digits = 2 if value < 1 else 1 if value < 10 else 0
    return f"{value:,.{digits}f} {unit}".rstrip()
