"""Formats that a session can be exported to."""

from typing import Literal, get_args

__all__ = ["FORMATS", "Format"]

Format = Literal["md", "html", "json", "jsonl", "txt"]
FORMATS: tuple[Format, ...] = get_args(Format)
