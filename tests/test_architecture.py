"""Imports go down only, packages on one layer do not import each other, and interfaces use History."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import backscroll
from backscroll import sources
from tests.python_statements import file_statements, parse_file, statements

LAYERS = [
    ["lru_cache"],
    ["model", "errors"],
    ["readers", "config", "documents", "filters", "workers", "http_guard", "testing"],
    ["sources", "archive", "index", "git", "render", "redact", "pricing", "changes"],
    ["stores"],
    [
        "ingest",
        "search",
        "stats",
        "export",
        "annotations",
        "commits",
        "backup",
        "hooks",
        "highlights",
    ],
    ["transfer", "journal"],
    ["history"],
    ["mcp", "tui", "web"],
    ["cli"],  # also starts the servers and the TUI
]
# What interfaces may import, besides themselves.
SHARED = {"history", "model", "errors", "config", "documents", "filters", "render"}
INTERFACES = {
    "cli": {*SHARED, "mcp", "tui", "web", "http_guard"},
    "mcp": {*SHARED, "http_guard", "workers"},
    "tui": {*SHARED, "workers"},
    "web": {*SHARED, "http_guard", "workers"},
}
PACKAGE = Path(backscroll.__file__).parent
BUILDERS = Path(__file__).parent / "builders"
# What else names a tool, and why.
NAMED_OUTSIDE = {
    "archive/derive/windows.py": {"cursor"},  # the unified schema has windows of this platform
    "archive/maintenance/legacy.py": {"cursor", "claude-code", "claude_code"},  # of another program
    "history/resume.py": {"cursor"},  # the command of an editor
    "tui/transcript.py": {"cursor"},  # of the terminal
}
TITLES = re.compile(r"\bClaude (?:Code|Desktop)\b|\bCursor\b")  # of tools, as users know them
TITLE_IN_TEXT = {"mcp/prompts.py"}  # how one client passes the words after a slash command
# Of own modules; each needs a reason, such as start-up time. The capabilities of a source have one.
MAX_IMPORTS_IN_FUNCTIONS = 68


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
    builders = [file for file in BUILDERS.rglob("*.py") if not file.name.startswith("test_")]
    assert builders
    for file in builders:
        for node in file_statements(file):
            assert set(imported_packages(node)) <= {"testing", "errors"}, file


@pytest.mark.parametrize("suffix", [".py", ".css", ".js"])
def test_only_the_sources_name_the_tools(suffix: str) -> None:
    names = {name for source in sources.SOURCES.values() for name in (source.name, source.platform)}
    quoted = re.compile(rf"(?:'|\.source-)({'|'.join(names)})\b")  # in SQL and in style sheets
    for path in engine_files(suffix):
        file = PACKAGE / path
        texts = string_constants(file) if suffix == ".py" else [file.read_text(encoding="utf-8")]
        found = {text for text in texts if text in names}
        found |= {match[1] for text in texts for match in quoted.finditer(text)}
        assert found <= NAMED_OUTSIDE.get(path.as_posix(), set()), f"{path}: {found}"


@pytest.mark.parametrize("suffix", [".py", ".html", ".js"])
def test_texts_of_the_interfaces_stay_true_with_another_source(suffix: str) -> None:
    for path in engine_files(suffix):
        if path.parts[0] in INTERFACES and path.as_posix() not in TITLE_IN_TEXT:
            file = PACKAGE / path
            texts = string_constants(file) if suffix == ".py" else [file.read_text(encoding="utf-8")]
            assert not any(TITLES.search(text) for text in texts), f"{path} names a tool"


def test_only_the_sources_name_stores_and_kinds_of_units() -> None:
    in_sql = re.compile(r"\b(store|kind) (=|<>|in|not in) \(?'\w")
    for path in engine_files(".py"):
        for text in string_constants(PACKAGE / path):
            assert not in_sql.search(text), f"{path}: {text}"
        for node in file_statements(PACKAGE / path):
            if isinstance(node, ast.Compare) and any(map(is_store_or_unit_kind, ast.walk(node))):
                assert not any(isinstance(one, ast.Constant) for one in ast.walk(node)), (
                    f"{path}:{node.lineno}"
                )


def engine_files(suffix: str) -> Iterator[Path]:
    """Return the files of the package, below it, that must know no source."""
    found = (file.relative_to(PACKAGE) for file in PACKAGE.rglob(f"*{suffix}"))
    return (path for path in found if path.parts[0] not in ("sources", "testing"))


def is_store_or_unit_kind(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and (
        node.attr == "store" or ast.unparse(node).endswith("unit.kind")
    )


def string_constants(file: Path) -> list[str]:
    """Return the texts in a file, without docstrings."""
    tree = parse_file(file)
    bodies = (node.body for node in ast.walk(tree) if isinstance(getattr(node, "body", None), list))
    documentation = {
        id(statement.value) for body in bodies for statement in body if isinstance(statement, ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
    ]


def test_few_imports_are_inside_functions() -> None:
    found = {
        (file, node.lineno)
        for file in PACKAGE.rglob("*.py")
        if not file.match("sources/*/__init__.py")
        for function in file_statements(file)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in statements(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and imported_packages(node)
    }
    assert len(found) <= MAX_IMPORTS_IN_FUNCTIONS
