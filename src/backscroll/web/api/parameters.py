"""Parameters of the API: declared once, for checking a request and for its description."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Struct

from backscroll.errors import UsageError
from backscroll.model import Filter
from backscroll.model.dates import parse_date_range

__all__ = ["FILTERS", "PAGING", "Parameter", "filter_of", "parse"]

MAX_TEXT_CHARS = 1000
MAX_LIMIT = 1000
MAX_OFFSET = 10_000_000


class Parameter(Struct, frozen=True, kw_only=True):
    """A parameter of the query."""

    name: str
    description: str
    type: Literal["string", "integer", "boolean"] = "string"
    default: str | int | bool | None = None
    values: tuple[str, ...] = ()  # the allowed ones; empty for any
    minimum: int = 0
    maximum: int = MAX_OFFSET
    is_required: bool = False

    def parse(self, text: str | None) -> Any:
        """Return the value of a text. Raises `UsageError` if it is not valid."""
        if not text:
            if self.is_required:
                raise UsageError(f"The parameter {self.name!r} is missing.")
            return self.default
        if self.type == "boolean":
            if text not in ("true", "false", "1", "0"):
                raise UsageError(f"{self.name} must be true or false, not {text[:40]!r}.")
            return text in ("true", "1")
        if self.type == "integer":
            is_number = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_OFFSET))
            if not is_number or not self.minimum <= int(text) <= self.maximum:
                raise UsageError(
                    f"{self.name} must be a number from {self.minimum} to {self.maximum}, not {text[:40]!r}."
                )
            return int(text)
        if self.values and text not in self.values:
            raise UsageError(f"{self.name} must be one of {', '.join(self.values)}, not {text[:40]!r}.")
        if len(text) > MAX_TEXT_CHARS:
            raise UsageError(f"{self.name} has more than {MAX_TEXT_CHARS} characters.")
        return text


FILTERS = (
    Parameter(name="source", description="Only sessions from this source."),
    Parameter(
        name="workspace",
        description="Only this workspace: its path, its name, the end of its path or, if remote, its host.",
    ),
    Parameter(name="since", description="On or after this date: 2026-10-03, 2026-10, yesterday or 7d."),
    Parameter(name="until", description="On or before this date."),
    Parameter(name="branch", description="Only sessions started on this git branch; may contain *."),
    Parameter(name="model", description="Only sessions that used a model with this text in its name."),
    Parameter(name="tag", description="Only sessions with this tag."),
    Parameter(
        name="has_edits", type="boolean", default=False, description="Only sessions that changed files."
    ),
    Parameter(
        name="gone", type="boolean", default=False, description="Only sessions that the tool has deleted."
    ),
    Parameter(name="starred", type="boolean", default=False, description="Only starred sessions."),
)
PAGING = (
    Parameter(
        name="limit",
        type="integer",
        default=20,
        minimum=1,
        maximum=MAX_LIMIT,
        description="Results to return.",
    ),
    Parameter(name="offset", type="integer", default=0, description="Results to skip."),
)


def parse(parameters: Iterable[Parameter], query: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the values of all parameters. Raises `UsageError` for an invalid, unknown or repeated one."""
    known = {parameter.name: parameter for parameter in parameters}
    given: dict[str, str] = {}
    for name, text in query:
        if name not in known:
            raise UsageError(f"Unknown parameter {name[:40]!r}. Known: {', '.join(known) or 'none'}.")
        if name in given:
            raise UsageError(f"The parameter {name!r} is given twice.")
        given[name] = text
    return {name: parameter.parse(given.get(name)) for name, parameter in known.items()}


def filter_of(values: Mapping[str, Any]) -> Filter:
    """Return the values of `FILTERS` as a filter. Raises `UsageError` for an invalid date."""
    return Filter(
        source=values["source"],
        workspace=values["workspace"],
        since=_date(values["since"], is_end=False),
        until=_date(values["until"], is_end=True),
        branch=values["branch"],
        model=values["model"],
        tags=(values["tag"].lstrip("#").lower(),) if values["tag"] else (),
        has_edits=values["has_edits"],
        is_gone=True if values["gone"] else None,
        is_starred=values["starred"],
    )


def _date(text: str | None, *, is_end: bool) -> datetime | None:
    if text is None:
        return None
    found = parse_date_range(text, datetime.now(UTC))
    if found is None:
        raise UsageError(f"{text[:40]!r} is not a date. Use 2026-10-03, 2026-10, yesterday or 7d.")
    return found[1] if is_end else found[0]
