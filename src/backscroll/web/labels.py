"""Labels of values that must not be confused."""

from collections import Counter
from collections.abc import Iterable

__all__ = ["distinct_labels"]


def distinct_labels(values: Iterable[tuple[str, str]]) -> list[str]:
    """Return the labels of values. If several have the same, each is followed by the rest of its value.

    A value is a path, or a host and a path; its label is the last part.
    """
    values = list(values)
    counts = Counter(label for _, label in values)
    return [f"{label}{_place(value, label)}" if counts[label] > 1 else label for value, label in values]


def _place(value: str, label: str) -> str:
    place = value.removesuffix(label).rstrip("/\\:")
    return f" ({place})" if place else ""
