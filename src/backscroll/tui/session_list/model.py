"""Which sessions are shown, and in which order: everything that needs no search."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, get_args

from msgspec import Struct

from backscroll.model import SessionSummary

__all__ = ["ORDERS", "Choice", "Narrowing", "Order", "Shelf"]

Order = Literal["newest", "oldest", "longest", "tokens", "title"]
ORDERS: tuple[Order, ...] = get_args(Order)
_NEVER = datetime.min.replace(tzinfo=UTC)


class Narrowing(Struct, frozen=True):
    """What the sessions that are shown have in common."""

    source: str | None = None
    workspace: str | None = None  # its path
    is_starred: bool = False
    words: str = ""

    @property
    def named(self) -> str:
        """The same in words, without the words themselves; empty when there is nothing else."""
        parts = [self.source, self.workspace.rstrip("/").rpartition("/")[2] if self.workspace else None]
        return " · ".join([part for part in parts if part] + (["★"] if self.is_starred else []))

    @property
    def conditions(self) -> dict[str, str]:
        """The same as filters of a search."""
        named = {"source": self.source, "workspace": self.workspace}
        named["is"] = "starred" if self.is_starred else None
        return {name: value for name, value in named.items() if value is not None}


class Choice(Struct, frozen=True):
    """Something to narrow by, and how many sessions that leaves."""

    name: str
    value: str
    number: int


class Shelf:
    """Every session, and those of them that are wanted."""

    def __init__(self) -> None:
        self.every: Sequence[SessionSummary] = ()
        self._haystacks: list[str] | None = None
        self._by_ref: dict[str, SessionSummary] | None = None

    def fill(self, summaries: Sequence[SessionSummary]) -> None:
        """Put other sessions on it, newest first."""
        self.every = summaries
        self._haystacks = self._by_ref = None

    def find(self, ref: str) -> SessionSummary | None:
        """The session of that ref."""
        if self._by_ref is None:
            self._by_ref = {summary.ref: summary for summary in self.every}
        return self._by_ref.get(ref)

    def change(self, summary: SessionSummary) -> None:
        """Put a session in the place of the one that has its ref, or where its time belongs."""
        known = self.find(summary.ref)
        if known is not None and known.updated_at == summary.updated_at:
            self.fill([summary if one.ref == summary.ref else one for one in self.every])
            return
        others = [one for one in self.every if one.ref != summary.ref]
        at = summary.updated_at or _NEVER
        place = next((n for n, one in enumerate(others) if (one.updated_at or _NEVER) <= at), len(others))
        self.fill([*others[:place], summary, *others[place:]])

    def wanted(self, narrowing: Narrowing, order: Order) -> list[SessionSummary]:
        """The sessions that fit, in an order."""
        found: Iterable[SessionSummary] = self.every
        if words := narrowing.words.casefold().split():
            if self._haystacks is None:
                self._haystacks = list(map(_haystack, self.every))
            pairs = zip(self.every, self._haystacks, strict=True)
            found = (one for one, text in pairs if all(word in text for word in words))
        kept = [
            one
            for one in found
            if (narrowing.source is None or one.source == narrowing.source)
            and (narrowing.workspace is None or one.workspace_path == narrowing.workspace)
            and (one.is_starred or not narrowing.is_starred)
        ]
        return _ordered(kept, order)

    def sources(self) -> list[Choice]:
        """The sources that there are sessions of, the most used first."""
        counts = Counter(summary.source for summary in self.every)
        return [Choice(name, name, number) for name, number in counts.most_common()]

    def workspaces(self) -> list[Choice]:
        """The folders that there are sessions of, the one used last first."""
        counts = Counter(summary.workspace_path for summary in self.every if summary.workspace_path)
        return [
            Choice(path.rstrip("/").rpartition("/")[2] or path, path, number)
            for path, number in counts.items()
        ]


def _haystack(summary: SessionSummary) -> str:
    parts = (
        summary.title, summary.original_title, summary.workspace_path, summary.workspace_name,
        summary.git_branch, summary.ref, summary.first_message_preview,
        *(f"#{tag}" for tag in summary.tags), *summary.models,
    )  # fmt: skip
    return "\n".join(part for part in parts if part).casefold()


def _ordered(summaries: list[SessionSummary], order: Order) -> list[SessionSummary]:
    match order:
        case "newest":
            return summaries
        case "oldest":
            return summaries[::-1]
        case "longest":
            return sorted(summaries, key=lambda one: -one.message_count)
        case "tokens":
            return sorted(summaries, key=lambda one: -(one.total_tokens or 0))
        case "title":
            return sorted(summaries, key=lambda one: (one.title or "~").casefold())
