"""Parsed content of a unit as a JSON document for golden files."""

from pathlib import Path
from typing import Any

import msgspec

from tests.oracle.fold import UnitContent


def unit_document(content: UnitContent, root: Path) -> dict[str, Any]:
    """Return the content without default values and with paths relative to the root."""
    counts = msgspec.to_builtins(content.counts)
    counts.pop("checkpoint")
    counts.pop("file_content")
    document = {
        "readings": [
            {
                "opening": msgspec.to_builtins(session.opening),
                "closing": msgspec.to_builtins(session.closing),
                "messages": msgspec.to_builtins(session.messages),
            }
            for session in content.sessions
        ],
        "namings": msgspec.to_builtins(content.title_hints),
        "links": msgspec.to_builtins(content.links),
        "problems": msgspec.to_builtins(content.problems),
        "tally": counts,
    }
    pruned = _without_defaults(document)
    assert isinstance(pruned, dict)
    text = msgspec.json.encode(pruned).decode().replace(str(root), "ROOT")
    relative = msgspec.json.decode(text)
    assert isinstance(relative, dict)
    return relative


def _without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_defaults(item) for key, item in value.items() if not _is_default(key, item)}
    if isinstance(value, list | tuple):
        return [_without_defaults(item) for item in value]
    return value


def _is_default(key: str, value: Any) -> bool:
    if value is None or value == [] or value == {} or value == ():
        return True
    return (key == "is_active" and value is True) or (
        key in ("is_sidechain", "is_hidden", "is_at_least") and not value
    )
