"""Options, parameters and names in the query syntax, derived from `Filter`. A new filter needs no line here.

A filter of sessions is a field of `Filter` in ``model/session.py``, with its SQL in `where_clause` of
``archive/query/sessions.py``. A filter of messages, such as ``role:``, is a name in ``index/query.py`` and a
tag that ``index/documents.py`` writes.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Struct

from backscroll.errors import UsageError
from backscroll.model.dates import parse_date_range
from backscroll.model.session import Filter, FilterText

FilterKind = Literal["text", "date", "flag", "tags"]
_KINDS: dict[Any, FilterKind] = {
    str | None: "text",
    datetime | None: "date",
    bool: "flag",
    bool | None: "flag",
    tuple[str, ...]: "tags",
}


class SessionFilter(Struct, frozen=True):
    """A filter of sessions: a field of `Filter`."""

    name: str  # of the option, the parameter and the argument, such as "gone"
    field: str  # such as "is_gone"
    kind: FilterKind
    text: FilterText

    @property
    def query(self) -> str:
        """The filter in the query syntax: its name or, for a flag, such as ``is:gone``."""
        return self.field.replace("_", ":", 1) if self.kind == "flag" else self.name

    @property
    def label(self) -> str:
        return self.text.label or self.name.capitalize()

    def help(self, *, of_messages: bool = False) -> str:
        """Return the description where sessions are listed, or where messages are searched or counted."""
        return (of_messages and self.text.of_messages) or self.text.help


def _declared_filters() -> Iterable[SessionFilter]:
    for field, annotation in get_type_hints(Filter, include_extras=True).items():
        if get_origin(annotation) is Annotated:
            type_, text = get_args(annotation)
            kind = _KINDS[type_]
            name = field.removesuffix("s") if kind == "tags" else field.removeprefix("is_")
            yield SessionFilter(name, field, kind, text)


FILTERS = tuple(_declared_filters())


def make_filter(values: Mapping[str, Any], *, with_subagents: bool = False) -> Filter:
    """Return the filter with these values, by name. Other names are ignored.

    Dates may be texts. Raises `UsageError` for an invalid one.
    """
    given = {each: values.get(each.name) for each in FILTERS}
    fields = {
        each.field: _filter_value(each, value) for each, value in given.items() if value not in (None, False)
    }
    return Filter(**fields, with_subagents=with_subagents)


def _filter_value(filter_: SessionFilter, value: Any) -> Any:
    if filter_.kind == "flag":
        return True
    if filter_.kind == "tags":
        return tuple(tag.lstrip("#").lower() for tag in ((value,) if isinstance(value, str) else value))
    if filter_.kind == "date" and isinstance(value, str):
        found = parse_date_range(value, datetime.now(UTC))
        if found is None:
            raise UsageError(
                f"{filter_.name}: {value[:40]!r} is not a date. Use 2026-10-03, 2026-10, yesterday or 7d."
            )
        return found[1] if filter_.field == "until" else found[0]
    return value


def query_filters(values: Mapping[str, Any]) -> dict[str, str | tuple[str, ...]]:
    """Return the values as filters of the query syntax, by name; without dates."""
    found: dict[str, str | tuple[str, ...]] = {}
    for each in FILTERS:
        value = values.get(each.name)
        if value and each.kind != "date":
            name, _, flag = each.query.partition(":")
            found[name] = (*found.get(name, ()), flag) if flag else value
    return found
