"""Statements of Python files, without the expressions in them. These are most nodes of a syntax tree."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def file_statements(file: Path) -> Iterator[ast.AST]:
    """Yield every statement of a file."""
    return statements(parse_file(file))


@cache
def parse_file(file: Path) -> ast.Module:
    """Return the syntax tree of a file. Several tests read the whole package."""
    return ast.parse(file.read_text(encoding="utf-8"))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement below a node, at any depth."""
    for name in _BLOCKS:
        block = getattr(node, name, [])
        for child in block if isinstance(block, list) else ():
            yield child
            yield from statements(child)
