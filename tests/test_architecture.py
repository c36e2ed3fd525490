"""Imports only go down; rooms on one floor never import each other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import backscroll

LAYERS = [
    ["model", "errors"],
    ["readers", "config", "http_guard", "testing"],
    ["sources", "archive", "index", "render", "redact", "pricing"],
    ["ingest", "search", "stats", "export", "resume"],
    ["history"],
    ["mcp", "tui"],
    ["cli"],  # also starts the other interfaces
]
PACKAGE = Path(backscroll.__file__).parent


def rooms(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name.split(".")[1] for alias in names if alias.name.startswith("backscroll.")]
        case ast.ImportFrom(module="backscroll", names=names):
            return [alias.name for alias in names if not alias.name.startswith("__")]
        case ast.ImportFrom(module=str(module)) if module.startswith("backscroll."):
            return [module.split(".")[1]]
    return []


def imports() -> Iterator[tuple[Path, str, str]]:
    for file in PACKAGE.rglob("*.py"):
        here = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            for room in rooms(node):
                yield file, here, room


def test_imports_only_go_down() -> None:
    floor = {room: level for level, row in enumerate(LAYERS) for room in row}
    for file, here, room in imports():
        assert room == here or floor[room] < floor.get(here, -1), f"{file} imports {room}"


def test_every_room_has_a_floor() -> None:
    known = {room for row in LAYERS for room in row} | {"__init__", "py", "__pycache__"}
    assert {path.name.split(".")[0] for path in PACKAGE.iterdir()} <= known


def test_the_builders_know_nothing_of_the_readers() -> None:
    assert {room for _, here, room in imports() if here == "testing"} <= {"testing", "errors"}


def test_only_the_sources_name_a_tool_to_switch_on() -> None:
    for file in PACKAGE.rglob("*.py"):
        room = file.relative_to(PACKAGE).parts[0]
        if room in ("sources", "testing"):
            continue
        if file.name == "session_rows.py":
            continue  # the unified schema itself tells the two platforms apart
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare | ast.MatchValue):
                names = {child.value for child in ast.walk(node) if isinstance(child, ast.Constant)}
                assert not names & {"claude-code", "cursor", "cursor-cli", "claude_code"}, (
                    f"{file}:{node.lineno}"
                )
