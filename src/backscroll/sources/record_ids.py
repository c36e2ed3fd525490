"""Ids in raw records, found without decoding the whole record."""

import re

__all__ = ["string_values"]


def string_values(record: bytes, key: str) -> list[str]:
    """Return every string that a JSON document has under a key, at any depth."""
    from backscroll.readers import lenient_json  # start-up: sources import this module to list units

    found = re.findall(rb'"%s"\s*:\s*("(?:[^"\\]|\\.)+")' % key.encode(), record)
    try:
        return [lenient_json.load(value) for value in found]
    except lenient_json.FAILURES:
        return []
