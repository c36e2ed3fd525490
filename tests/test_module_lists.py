"""The list of modules in the docstring of a package is complete and current."""

import ast
import re
from pathlib import Path

import pytest

import backscroll

PACKAGE = Path(backscroll.__file__).parent
LISTED = re.compile(r"^ {0,4}(\w+)(?:\.py|/)? {2,}\S", re.MULTILINE)  # "name.py   what it is"


def packages_with_list() -> list[tuple[Path, str]]:
    inits = sorted(PACKAGE.rglob("__init__.py"))
    docstrings = [
        (init.parent, ast.get_docstring(ast.parse(init.read_text("utf-8"))) or "") for init in inits
    ]
    return [(folder, text) for folder, text in docstrings if len(LISTED.findall(text)) > 1]


PACKAGES = packages_with_list()


@pytest.mark.parametrize(("folder", "docstring"), PACKAGES, ids=[folder.name for folder, _ in PACKAGES])
def test_a_package_lists_its_modules(folder: Path, docstring: str) -> None:
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    subpackages = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert modules | subpackages <= set(re.findall(r"\w+", docstring))
    assert set(LISTED.findall(docstring)) <= {path.stem for path in folder.iterdir()}
