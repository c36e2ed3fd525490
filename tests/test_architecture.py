"""Imports go down only, packages on one layer do not import each other, and interfaces use History."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import backscroll
from tests.python_statements import file_statements, statements

LAYERS = [
    ["lazy_names", "lru_cache"],
    ["model", "errors"],
    ["readers", "config", "http_guard", "testing"],
    ["sources", "archive", "index", "git", "render", "redact", "pricing", "changes"],
    ["ingest", "search", "stats", "export", "resume", "commits", "backup", "hooks"],
    ["transfer", "journal"],
    ["history"],
    ["mcp", "tui", "web"],
    ["cli"],  # also starts the servers and the TUI
]
# What interfaces may import, besides themselves.
SHARED = {"history", "model", "errors", "config", "render"}
INTERFACES = {
    "cli": {*SHARED, "mcp", "tui", "web", "http_guard"},
    "mcp": {*SHARED, "http_guard"},
    "tui": SHARED,
    "web": {*SHARED, "http_guard", "lru_cache"},
}
PACKAGE = Path(backscroll.__file__).parent
MAX_MODULE_LINES = 400
MAX_MODULES = 15  # in a folder
MAX_MODULES_OF_A_SOURCE = 20  # also in render
MAX_IMPORTS_IN_FUNCTIONS = 59  # of own modules; each needs a reason, such as start-up time


def imported_packages(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name.split(".")[1] for alias in names if alias.name.startswith("backscroll.")]
        case ast.ImportFrom(module="backscroll", names=names):
            return [alias.name for alias in names if not alias.name.startswith("__")]
        case ast.ImportFrom(module=str(module)) if module.startswith("backscroll."):
            return [module.split(".")[1]]
    return []


@cache
def imports() -> list[tuple[Path, str, str]]:
    """Return every import of an own package: the file, its package, and the imported package."""
    return list(_find_imports())


def _find_imports() -> Iterator[tuple[Path, str, str]]:
    for file in PACKAGE.rglob("*.py"):
        package = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if package in ("__init__", "__main__"):
            continue  # they load History on first use, and run the command
        for node in file_statements(file):
            for imported in imported_packages(node):
                yield file, package, imported


def test_imports_only_go_down() -> None:
    layer = {package: level for level, row in enumerate(LAYERS) for package in row}
    for file, package, imported in imports():
        assert imported == package or layer[imported] < layer[package], f"{file} imports {imported}"


def test_every_package_has_a_layer() -> None:
    known = {package for row in LAYERS for package in row} | {"__init__", "__main__", "py", "__pycache__"}
    assert {path.name.split(".")[0] for path in PACKAGE.iterdir()} <= known


def test_interfaces_reach_everything_else_through_history() -> None:
    for file, package, imported in imports():
        if package in INTERFACES:
            assert imported in {package, *INTERFACES[package]}, f"{file} imports {imported}"


def test_the_builders_do_not_import_the_readers() -> None:
    assert {imported for _, package, imported in imports() if package == "testing"} <= {"testing", "errors"}


def test_only_the_sources_compare_source_names() -> None:
    for file in PACKAGE.rglob("*.py"):
        if file.relative_to(PACKAGE).parts[0] in ("sources", "testing"):
            continue
        if file.name == "session_rows.py":
            continue  # the unified schema itself distinguishes the two platforms
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare | ast.MatchValue):
                names = {child.value for child in ast.walk(node) if isinstance(child, ast.Constant)}
                assert not names & {"claude-code", "cursor", "cursor-cli", "claude_code"}, (
                    f"{file}:{node.lineno}"
                )


def test_modules_and_folders_are_small() -> None:
    for file in PACKAGE.rglob("*.py"):
        assert len(file.read_text(encoding="utf-8").splitlines()) <= MAX_MODULE_LINES, file
        modules = [other for other in file.parent.glob("*.py") if other.name != "__init__.py"]
        is_large = file.relative_to(PACKAGE).parts[0] in ("sources", "render")
        assert len(modules) <= (MAX_MODULES_OF_A_SOURCE if is_large else MAX_MODULES), file.parent


def test_few_imports_are_inside_functions() -> None:
    found = {
        (file, node.lineno)
        for file in PACKAGE.rglob("*.py")
        for function in file_statements(file)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in statements(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and imported_packages(node)
    }
    assert len(found) <= MAX_IMPORTS_IN_FUNCTIONS
