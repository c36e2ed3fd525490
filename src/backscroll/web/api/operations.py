"""Paths, parameters and handlers of the API."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from backscroll.errors import BackscrollError
from backscroll.history import History
from backscroll.model.dates import iso
from backscroll.model.search import has_words
from backscroll.model.session import SORT_KEYS
from backscroll.render.json import (
    encode_json,
    message_document,
    page_document,
    search_document,
    summary_document,
)
from backscroll.render.statistics.json import report_document
from backscroll.web.api.parameters import FILTERS, PAGING, Parameter, filter_of, parse
from backscroll.web.errors import error_document, status_of
from backscroll.web.urls import decode_ref

__all__ = ["OPERATIONS", "Operation", "run_operation"]

MAX_MESSAGE_BYTES = 16 * 1024 * 1024  # of one page; then it has fewer messages than the limit
MAX_CONTEXT_LINES = 20
_PERIODS = ("day", "week", "month", "source", "workspace", "model", "tool")

Values = dict[str, Any]


class Operation(Struct, frozen=True, kw_only=True):
    """One path of the API."""

    path: str
    name: str
    summary: str
    schema: str  # of the response
    handler: Callable[[History, Request, Values], dict[str, Any]]
    parameters: tuple[Parameter, ...] = ()


def run_operation(operation: Operation, history: History, request: Request) -> Response:
    """Return the response to a request: the document, or an error."""
    try:
        values = parse(operation.parameters, request.query_params.multi_items())
        document = operation.handler(history, request, values)
        document["is_complete"] = document.get("is_complete", history.is_complete)
        return Response(encode_json(document), media_type="application/json")
    except BackscrollError as error:
        return error_document(status_of(error)[0], error.reason)


def _sessions(history: History, request: Request, values: Values) -> dict[str, Any]:
    return page_document(
        history.list_sessions(
            filter_of(values),
            limit=values["limit"],
            offset=values["offset"],
            sort=values["sort"],
            is_reversed=values["reversed"],
        )
    )


def _session(history: History, request: Request, values: Values) -> dict[str, Any]:
    summary = history.find(decode_ref(request.path_params["ref"]))
    return {**summary_document(summary), "reported_cost_usd": history.transcript.reported_cost(summary)}


def _messages(history: History, request: Request, values: Values) -> dict[str, Any]:
    summary = history.find(decode_ref(request.path_params["ref"]))
    total = history.transcript.count(summary)
    limit, offset = values["limit"], values["offset"]
    data: list[dict[str, Any]] = []
    size = 0
    for message in islice(history.transcript.messages(summary, min(offset, total)), limit):
        data.append(message_document(message, offset + len(data)))
        size += len(message.content) + len(message.tool.result or "" if message.tool is not None else "")
        if size > MAX_MESSAGE_BYTES:
            break
    has_more = offset + len(data) < total
    return {
        "data": data,
        "pagination": {"total": total, "limit": limit, "offset": offset, "has_more": has_more},
    }


def _kind(values: Values) -> Literal["words", "exact", "regex"]:
    """Return the kind of search. Punctuation alone is searched as exact text."""
    kind: Literal["words", "exact", "regex"] = values["mode"]
    is_punctuation = kind == "words" and values["q"].strip() and not has_words(values["q"])
    return "exact" if is_punctuation else kind


def _search(history: History, request: Request, values: Values) -> dict[str, Any]:
    return search_document(
        history.search_sessions(
            values["q"],
            limit=values["limit"],
            offset=values["offset"],
            by=values["by"],
            context=values["context"],
            pattern=_kind(values),
            ignore_case=values["ignore_case"],
            filter_query=values["filter"] or "",
        )
    )


def _search_facets(history: History, request: Request, values: Values) -> dict[str, Any]:
    counts = history.search_facets(
        values["q"],
        pattern=_kind(values),
        ignore_case=values["ignore_case"],
        filter_query=values["filter"] or "",
    )
    return dict(msgspec.to_builtins(counts))


def _facets(history: History, request: Request, values: Values) -> dict[str, Any]:
    return dict(msgspec.to_builtins(history.session_facets(filter_of(values))))


def _workspaces(history: History, request: Request, values: Values) -> dict[str, Any]:
    workspaces = history.list_workspaces()
    return {"data": [msgspec.structs.asdict(one) | {"updated_at": iso(one.updated_at)} for one in workspaces]}


def _statistics(history: History, request: Request, values: Values) -> dict[str, Any]:
    return report_document(history.statistics.report(filter_of(values), by=values["by"]))


def _status(history: History, request: Request, values: Values) -> dict[str, Any]:
    return dict(vars(history.background_sync.status()))


def _string(name: str, description: str, default: str | None, values: Iterable[str]) -> Parameter:
    return Parameter(name=name, description=description, default=default, values=tuple(values))


_QUERY = (
    Parameter(name="q", description="The query, in the query syntax.", is_required=True),
    _string("mode", "Kind of search.", "words", ("words", "exact", "regex")),
    Parameter(
        name="ignore_case",
        type="boolean",
        default=False,
        description="Ignore case in exact and regex; words always do.",
    ),
    Parameter(name="filter", description="Only filters, in the query syntax: role:user since:7d."),
)

OPERATIONS = (
    Operation(
        path="/sessions",
        name="listSessions",
        summary="List sessions, newest first.",
        schema="SessionPage",
        handler=_sessions,
        parameters=(
            *FILTERS,
            _string("sort", "Order. Times and numbers are descending.", "updated", SORT_KEYS),
            Parameter(name="reversed", type="boolean", default=False, description="Reverse the order."),
            *PAGING,
        ),
    ),
    Operation(
        path="/sessions/{ref}",
        name="getSession",
        summary="Return a session without its messages.",
        schema="Session",
        handler=_session,
    ),
    Operation(
        path="/sessions/{ref}/messages",
        name="listMessages",
        summary="Return messages of a session in order. A page of large messages has fewer than its limit.",
        schema="MessagePage",
        handler=_messages,
        parameters=PAGING,
    ),
    Operation(
        path="/search",
        name="search",
        summary="Search all messages, best match first.",
        schema="MatchPage",
        handler=_search,
        parameters=(
            *_QUERY,
            _string("by", "One result per session, or every message.", "session", ("session", "message")),
            Parameter(
                name="context",
                type="integer",
                default=2,
                maximum=MAX_CONTEXT_LINES,
                description="Lines around a match.",
            ),
            *PAGING,
        ),
    ),
    Operation(
        path="/search/facets",
        name="getSearchFacets",
        summary="Count the matching messages of each value of each filter.",
        schema="SearchFacets",
        handler=_search_facets,
        parameters=_QUERY,
    ),
    Operation(
        path="/facets",
        name="getFacets",
        summary="Count the sessions of each value of each filter.",
        schema="Facets",
        handler=_facets,
        parameters=FILTERS,
    ),
    Operation(
        path="/workspaces",
        name="listWorkspaces",
        summary="List workspaces, last used first.",
        schema="WorkspaceList",
        handler=_workspaces,
    ),
    Operation(
        path="/statistics",
        name="getStatistics",
        summary="Return counts, tokens and costs.",
        schema="Report",
        handler=_statistics,
        parameters=(*FILTERS, _string("by", "Rows.", None, _PERIODS)),
    ),
    Operation(
        path="/status",
        name="getStatus",
        summary="Return the state of the sync.",
        schema="Status",
        handler=_status,
    ),
)
