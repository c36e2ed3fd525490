"""The JSON API below ``/api/v1``, with the documents of the command line: paths, parameters and handlers.

Parameters are declared once, for checking a request and for the OpenAPI description.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, get_args, get_type_hints

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from backscroll import __version__
from backscroll.documents import (
    ErrorDocument,
    MatchPage,
    MessagePage,
    SessionDetails,
    SessionPage,
    WorkspaceList,
    message_document,
    schemas,
    search_document,
    to_document,
)
from backscroll.errors import BackscrollError, UsageError
from backscroll.filters import FILTERS, FilterKind, make_filter
from backscroll.history.history import History
from backscroll.model.search import SearchFacets, has_words
from backscroll.model.session import SORT_KEYS, SessionFacets
from backscroll.model.statistics import By
from backscroll.model.sync import SyncStatus
from backscroll.render.json import encode_json
from backscroll.render.statistics import ReportDocument, report_document
from backscroll.web.errors import error_document, status_of
from backscroll.web.urls import decode_ref

MAX_TEXT_CHARS = 1000
MAX_LIMIT = 1000
MAX_OFFSET = 10_000_000
MAX_MESSAGE_BYTES = 16 * 1024 * 1024  # of one page; then it has fewer messages than the limit
MAX_CONTEXT_LINES = 20
_TEXT = {"type": "string", "maxLength": MAX_TEXT_CHARS}
_FLAG = {"type": "boolean", "default": False}
_Values = dict[str, Any]


class Parameter(Struct, frozen=True):
    """A parameter of the query."""

    name: str
    description: str
    schema: dict[str, Any]
    is_required: bool = False

    def parse(self, text: str | None) -> Any:
        """Return the value of a text. Raises `UsageError` if it is not valid."""
        if not text:
            if self.is_required:
                raise UsageError(f"The parameter {self.name!r} is missing.")
            return self.schema.get("default")
        if self.schema["type"] == "boolean":
            if text not in ("true", "false", "1", "0"):
                raise UsageError(f"{self.name} must be true or false, not {text[:40]!r}.")
            return text in ("true", "1")
        if self.schema["type"] == "integer":
            first, last = self.schema["minimum"], self.schema["maximum"]
            is_number = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_OFFSET))
            if not is_number or not first <= int(text) <= last:
                raise UsageError(f"{self.name} must be a number from {first} to {last}, not {text[:40]!r}.")
            return int(text)
        if "enum" in self.schema and text not in self.schema["enum"]:
            allowed = ", ".join(self.schema["enum"])
            raise UsageError(f"{self.name} must be one of {allowed}, not {text[:40]!r}.")
        if len(text) > MAX_TEXT_CHARS:
            raise UsageError(f"{self.name} has more than {MAX_TEXT_CHARS} characters.")
        return text


class Operation(Struct, frozen=True, kw_only=True):
    """One path of the API."""

    path: str
    name: str
    summary: str
    result: type[Struct]  # the response, without ``is_complete``
    handler: Callable[[History, Request, _Values], dict[str, Any]]
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


def _sessions(history: History, request: Request, values: _Values) -> dict[str, Any]:
    return to_document(
        history.list_sessions(
            make_filter(values),
            limit=values["limit"],
            offset=values["offset"],
            sort=values["sort"],
            is_reversed=values["reversed"],
        )
    )


def _session(history: History, request: Request, values: _Values) -> dict[str, Any]:
    summary = history.find(decode_ref(request.path_params["ref"]))
    return {**to_document(summary), "reported_cost_usd": history.transcript.reported_cost(summary)}


def _messages(history: History, request: Request, values: _Values) -> dict[str, Any]:
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


def _kind(values: _Values) -> Literal["words", "exact", "regex"]:
    """Return the kind of search. Punctuation alone is searched as exact text."""
    kind: Literal["words", "exact", "regex"] = values["mode"]
    is_punctuation = kind == "words" and values["q"].strip() and not has_words(values["q"])
    return "exact" if is_punctuation else kind


def _search(history: History, request: Request, values: _Values) -> dict[str, Any]:
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


def _search_facets(history: History, request: Request, values: _Values) -> dict[str, Any]:
    counts = history.search_facets(
        values["q"],
        pattern=_kind(values),
        ignore_case=values["ignore_case"],
        filter_query=values["filter"] or "",
    )
    return dict(msgspec.to_builtins(counts))


def _facets(history: History, request: Request, values: _Values) -> dict[str, Any]:
    return dict(msgspec.to_builtins(history.session_facets(make_filter(values))))


def _workspaces(history: History, request: Request, values: _Values) -> dict[str, Any]:
    return to_document(WorkspaceList(tuple(history.list_workspaces())))


def _statistics(history: History, request: Request, values: _Values) -> dict[str, Any]:
    return report_document(history.statistics.report(make_filter(values), by=values["by"]))


def _status(history: History, request: Request, values: _Values) -> dict[str, Any]:
    return history.background_sync.status()._asdict()


def _choice(name: str, description: str, default: str | None, values: Iterable[str]) -> Parameter:
    schema = {"type": "string", "enum": list(values)} | ({"default": default} if default is not None else {})
    return Parameter(name, description, schema)


def _number(name: str, description: str, default: int, minimum: int, maximum: int) -> Parameter:
    schema = {"type": "integer", "minimum": minimum, "maximum": maximum, "default": default}
    return Parameter(name, description, schema)


def _filters(of_messages: tuple[FilterKind, ...] = ()) -> Iterator[Parameter]:
    """Return a parameter for each filter. Those of the kinds in ``of_messages`` apply to messages."""
    for each in FILTERS:
        description = each.help(of_messages=each.kind in of_messages)
        schema = _FLAG if each.kind == "flag" else _TEXT
        yield Parameter(each.name, description, schema)


_PAGING = (
    _number("limit", "Results to return.", 20, 1, MAX_LIMIT),
    _number("offset", "Results to skip.", 0, 0, MAX_OFFSET),
)
_QUERY = (
    Parameter("q", "The query, in the query syntax.", _TEXT, is_required=True),
    _choice("mode", "Kind of search.", "words", ("words", "exact", "regex")),
    Parameter(
        name="ignore_case", description="Ignore case in exact and regex; words always do.", schema=_FLAG
    ),
    Parameter("filter", "Only filters, in the query syntax: role:user since:7d.", _TEXT),
)
OPERATIONS = (
    Operation(
        path="/sessions",
        name="listSessions",
        summary="List sessions, newest first.",
        result=SessionPage,
        handler=_sessions,
        parameters=(
            *_filters(),
            _choice("sort", "Order. Times and numbers are descending.", "updated", SORT_KEYS),
            Parameter("reversed", "Reverse the order.", _FLAG),
            *_PAGING,
        ),
    ),
    Operation(
        path="/sessions/{ref}",
        name="getSession",
        summary="Return a session without its messages.",
        result=SessionDetails,
        handler=_session,
    ),
    Operation(
        path="/sessions/{ref}/messages",
        name="listMessages",
        summary="Return messages of a session in order. A page of large messages has fewer than its limit.",
        result=MessagePage,
        handler=_messages,
        parameters=_PAGING,
    ),
    Operation(
        path="/search",
        name="search",
        summary="Search all messages, best match first.",
        result=MatchPage,
        handler=_search,
        parameters=(
            *_QUERY,
            _choice("by", "One result per session, or every message.", "session", ("session", "message")),
            _number("context", "Lines around a match.", 2, 0, MAX_CONTEXT_LINES),
            *_PAGING,
        ),
    ),
    Operation(
        path="/search/facets",
        name="getSearchFacets",
        summary="Count the matching messages of each value of each filter.",
        result=SearchFacets,
        handler=_search_facets,
        parameters=_QUERY,
    ),
    Operation(
        path="/facets",
        name="getFacets",
        summary="Count the sessions of each value of each filter.",
        result=SessionFacets,
        handler=_facets,
        parameters=tuple(_filters()),
    ),
    Operation(
        path="/workspaces",
        name="listWorkspaces",
        summary="List workspaces, last used first.",
        result=WorkspaceList,
        handler=_workspaces,
    ),
    Operation(
        path="/statistics",
        name="getStatistics",
        summary="Return counts, tokens and costs.",
        result=ReportDocument,
        handler=_statistics,
        parameters=(*_filters(("date",)), _choice("by", "Rows.", None, get_args(By))),
    ),
    Operation(
        path="/status",
        name="getStatus",
        summary="Return the state of the sync.",
        result=msgspec.defstruct("SyncStatus", list(get_type_hints(SyncStatus).items())),
        handler=_status,
    ),
)

# The OpenAPI description

API_PATH = "/api/v1"
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "The token of the launch address. Only needed if the server listens on another address"
    " than that of this machine.",
}
_IS_COMPLETE = {  # in every response; false while the first sync is running
    "type": "object",
    "properties": {"is_complete": {"type": "boolean"}},
    "required": ["is_complete"],
}


@lru_cache(maxsize=1)
def openapi_document() -> dict[str, Any]:
    """Return the description."""
    types = [operation.result for operation in OPERATIONS]
    (error, *results), components = schemas([ErrorDocument, *types], "#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Backscroll",
            "version": __version__,
            "description": "Read-only access to the sessions of an archive. Times are ISO 8601 in UTC.",
        },
        "servers": [{"url": API_PATH}],
        "paths": {
            operation.path: {"get": _operation(operation, {"allOf": [result, _IS_COMPLETE]}, error)}
            for operation, result in zip(OPERATIONS, results, strict=True)
        },
        "components": {"schemas": components, "securitySchemes": {"token": _TOKEN}},
        "security": [{}, {"token": []}],
    }


def _operation(operation: Operation, result: dict[str, Any], error: dict[str, Any]) -> dict[str, Any]:
    in_path = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": "A ref: an id with or without its source, an unambiguous prefix, or an index.",
            "schema": {"type": "string", "minLength": 1},
        }
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    failures = {
        "400": "A parameter is not valid.",
        "401": "The token is missing or wrong.",
        "404": "Not found.",
        "503": "The archive is not available.",
    }
    return {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*in_path, *map(_parameter, operation.parameters)],
        "responses": {
            "200": _content("Success.", result),
            **{status: _content(text, error) for status, text in failures.items()},
        },
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.description,
        "schema": parameter.schema,
    }


def _content(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
