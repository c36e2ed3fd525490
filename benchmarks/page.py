"""The figures in docs/explain/performance.md, as a run writes them there."""

from pathlib import Path

__all__ = ["PAGE", "write"]

PAGE = Path(__file__).parent.parent / "docs/explain/performance.md"


def write(scale: str, told: str) -> None:
    """Put a run's figures where the last ones of that scale stood."""
    begin, end = f"<!-- figures {scale} -->\n", "<!-- end -->"
    before, found, after = PAGE.read_text().partition(begin)
    if not found:
        raise RuntimeError(f"{PAGE.name} has no place for the figures of {scale}")
    PAGE.write_text(f"{before}{begin}\n{told.strip()}\n\n{end}{after.partition(end)[2]}")
