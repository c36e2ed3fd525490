"""The codes of problems are listed, documented and used."""

import ast
import re
from pathlib import Path

from tests.python_statements import parse_file

from backscroll.model.problem import PROBLEM_CODES

REPOSITORY = Path(__file__).parents[2]
MENTIONS = "|".join([r"\b(?:Problem|Fault)\(", *(f'"{code}"' for code in PROBLEM_CODES)])


def codes_in_use() -> set[str]:
    """Return every string in the source code that has the form of a code and is passed as one."""
    found = set()
    for path in (REPOSITORY / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name == "problem.py" or not re.search(MENTIONS, text):
            continue  # to walk every tree takes 4 s
        for node in ast.walk(parse_file(path)):
            if isinstance(node, ast.Constant) and node.value in PROBLEM_CODES:
                found.add(node.value)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                position = {"Problem": 1, "Fault": 0}.get(node.func.id)
                if position is not None and len(node.args) > position:
                    code = node.args[position]
                    if isinstance(code, ast.Constant):
                        found.add(code.value)
    return found


def test_every_code_in_use_is_listed_and_every_listed_code_is_in_use() -> None:
    assert codes_in_use() == set(PROBLEM_CODES)


def test_the_documentation_lists_every_code_with_its_meaning() -> None:
    page = (REPOSITORY / "docs/reference/errors.md").read_text(encoding="utf-8")
    _, _, page = page.partition("| code | meaning |")
    table, _, _ = page.partition("\n\n")
    listed = dict(re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", table, re.MULTILINE))
    assert listed == PROBLEM_CODES
