"""The OpenAPI 3.1 description of the API, with JSON schemas of its documents."""

import re
from functools import lru_cache
from typing import Any

from backscroll import __version__
from backscroll.documents import ErrorDocument, schemas
from backscroll.web.api import OPERATIONS, Operation, Parameter

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
