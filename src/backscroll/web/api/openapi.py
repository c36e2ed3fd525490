"""The OpenAPI 3.1 description of the API."""

import re
from functools import lru_cache
from typing import Any

from backscroll import __version__
from backscroll.web.api.operations import OPERATIONS, Operation
from backscroll.web.api.parameters import MAX_TEXT_CHARS, Parameter
from backscroll.web.api.schemas import SCHEMAS, reference

__all__ = ["API_PATH", "openapi_document"]

API_PATH = "/api/v1"
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "The token of the launch address. Only needed if the server listens on another address"
    " than that of this machine.",
}


@lru_cache(maxsize=1)
def openapi_document() -> dict[str, Any]:
    """Return the description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Backscroll",
            "version": __version__,
            "description": "Read-only access to the sessions of an archive. Times are ISO 8601 in UTC.",
        },
        "servers": [{"url": API_PATH}],
        "paths": {operation.path: {"get": _operation(operation)} for operation in OPERATIONS},
        "components": {"schemas": SCHEMAS, "securitySchemes": {"token": _TOKEN}},
        "security": [{}, {"token": []}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
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
            "200": _content("Success.", operation.schema),
            **{status: _content(text, "Error") for status, text in failures.items()},
        },
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": parameter.type}
    if parameter.type == "integer":
        schema |= {"minimum": parameter.minimum, "maximum": parameter.maximum}
    elif parameter.values:
        schema["enum"] = list(parameter.values)
    elif parameter.type == "string":
        schema["maxLength"] = MAX_TEXT_CHARS
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.description,
        "schema": schema,
    }


def _content(description: str, schema: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": reference(schema)}}}
