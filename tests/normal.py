"""What a source tells, as plain JSON without any path of the machine it was read on."""

from pathlib import Path
from typing import Any

import msgspec

from tests.oracle.fold import UnitContent

__all__ = ["normal"]


def normal(told: UnitContent, root: Path) -> dict[str, Any]:
    """Readable and comparable: paths relative to the root, nothing that is unset."""
    tally = msgspec.to_builtins(told.counts)
    tally.pop("checkpoint")
    tally.pop("file_content")
    document = {
        "readings": [
            {
                "opening": msgspec.to_builtins(reading.opening),
                "closing": msgspec.to_builtins(reading.closing),
                "messages": msgspec.to_builtins(reading.messages),
            }
            for reading in told.sessions
        ],
        "namings": msgspec.to_builtins(told.title_hints),
        "links": msgspec.to_builtins(told.links),
        "problems": msgspec.to_builtins(told.problems),
        "tally": tally,
    }
    pruned = _pruned(document)
    assert isinstance(pruned, dict)
    text = msgspec.json.encode(pruned).decode().replace(str(root), "ROOT")
    found = msgspec.json.decode(text)
    assert isinstance(found, dict)
    return found


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if not _is_default(key, item)}
    if isinstance(value, list | tuple):
        return [_pruned(item) for item in value]
    return value


def _is_default(key: str, value: Any) -> bool:
    if value is None or value == [] or value == {} or value == ():
        return True
    return (key == "is_active" and value is True) or (
        key in ("is_sidechain", "is_hidden", "is_at_least") and not value
    )
