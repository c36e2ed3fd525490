"""A sync that is asked for in plain words, understood without what reads every command line."""

from pathlib import Path

from backscroll.cli.context import Setup

__all__ = ["plain_sync"]


def plain_sync(words: list[str]) -> tuple[Setup, bool] | None:
    """What the global options say, and whether JSON is wanted; None when anything else is asked for."""
    home: Path | None = None
    roots: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in ("--home", "--root"):
            value = value if equals else next(rest, "")
            if not value or value.startswith("-"):
                return None
            if name == "--home":
                home = Path(value)
            else:
                roots.append(value)
        elif word == "sync":
            options = list(rest)
            return (Setup(home, tuple(roots)), bool(options)) if options in ([], ["--json"]) else None
        else:
            return None
    return None
