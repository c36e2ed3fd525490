"""Version numbers of Claude Code."""

from collections.abc import Sequence


class Version(tuple[int, ...]):
    """Version that compares by number: 2.1.9 is older than 2.1.105."""

    __slots__ = ()

    def __new__(cls, text: str) -> "Version":
        return super().__new__(cls, (int(part) for part in text.split(".")))

    def __str__(self) -> str:
        return ".".join(map(str, self))

    def __ge__(self, other: object) -> bool:
        return super().__ge__(Version(other) if isinstance(other, str) else other)  # type: ignore[operator]

    def __lt__(self, other: object) -> bool:
        return not self >= other


def spread(published: Sequence[str], count: int) -> list[str]:
    """Return versions at equal distances in the list of all published ones, with the first and the last."""
    ordered = sorted(published, key=Version)
    if count >= len(ordered):
        return ordered
    step = (len(ordered) - 1) / (count - 1)
    return [ordered[round(number * step)] for number in range(count)]
