"""JSON schemas of arguments and results."""

from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["json_schema", "shown_schema"]


def json_schema(struct_type: type, *, is_output: bool = False) -> dict[str, Any]:
    """Return the JSON schema of a struct. Null is left out: optional fields are omitted instead."""
    schema = msgspec.json.schema(struct_type)
    definitions = schema["$defs"]
    root: dict[str, Any] = definitions.pop(schema["$ref"].rpartition("/")[2])
    if not is_output:
        root.pop("title", None)
        root["properties"] = {name: _without_null(field) for name, field in root["properties"].items()}
    else:
        nullable = {name for name, field in root["properties"].items() if _is_nullable(field)}
        root["required"] = [name for name in root.get("required", []) if name not in nullable]
        for definition in definitions.values():
            definition.pop("required", None)
    return root | ({"$defs": definitions} if definitions else {})


def _is_nullable(schema: Mapping[str, Any]) -> bool:
    return any(option.get("type") == "null" for option in schema.get("anyOf", ()))


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an optional argument without null, which costs tokens and says nothing."""
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        schema = options[0] | {key: value for key, value in schema.items() if key != "anyOf"}
    if "enum" in schema:
        schema = schema | {"enum": [value for value in schema["enum"] if value is not None]}
    return {key: value for key, value in schema.items() if key != "default" or value is not None}


def shown_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of arguments as models read it: without the lengths of texts and lists.

    They are checked nevertheless. Without them, the definitions of all tools are a tenth shorter.
    """
    return {
        key: shown_schema(value) if isinstance(value, dict) else value
        for key, value in schema.items()
        if key not in ("minLength", "maxLength", "minItems", "maxItems")
    }
