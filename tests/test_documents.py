"""Documents and filters are declared once, and every interface follows the declaration.

``pytest tests/test_documents.py --update-golden`` regenerates the reference page. Review the diff.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import click
import pytest

from backscroll.cli.app import app
from backscroll.documents import MessageDocument, message_document, to_document
from backscroll.errors import UsageError
from backscroll.filters import FILTERS, make_filter, query_filters
from backscroll.index.query import FILTER_NAMES, parse
from backscroll.mcp.tools.arguments import argument_schema
from backscroll.mcp.tools.registry import TOOLS
from backscroll.model.message import Message, Origin, TokenUsage, ToolCall
from backscroll.model.session import Filter, SessionFacets
from backscroll.testing.claude_code import Transcript
from backscroll.web.api import OPERATIONS
from tests.reference_page import reference_page

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "documents.md"
EXTENSION = Path(__file__).parent / "extended_declarations.py"
CALM = "fix the calm parser"
LISTING_COMMANDS = ("list", "search", "stats", "export", "secrets")
LISTING_TOOLS = ("list_sessions", "search_sessions", "stats")
LISTING_OPERATIONS = ("listSessions", "getFacets", "getStatistics")

every_filter = pytest.mark.parametrize("filter_", FILTERS, ids=lambda each: each.name)


def test_the_reference_page_is_up_to_date(update_golden: bool) -> None:
    if update_golden:
        PAGE.write_text(reference_page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == reference_page()


@every_filter
def test_a_filter_is_an_option_of_every_command_that_selects_sessions(filter_: Any) -> None:
    for name in LISTING_COMMANDS:
        command = app.get_command(click.Context(app), name)
        assert command is not None
        options = {option.name: option for option in command.params if isinstance(option, click.Option)}
        assert options[filter_.name].is_flag == (filter_.kind == "flag")


@every_filter
def test_a_filter_is_a_parameter_of_the_web_api(filter_: Any) -> None:
    for operation in OPERATIONS:
        names = [parameter.name for parameter in operation.parameters]
        assert (filter_.name in names) == (operation.name in LISTING_OPERATIONS)


@every_filter
def test_a_filter_for_assistants_is_an_argument_of_their_tools(filter_: Any) -> None:
    for name in LISTING_TOOLS:
        arguments = argument_schema(TOOLS[name].arguments)["properties"]
        assert (filter_.name in arguments) == filter_.text.is_for_assistants


@every_filter
def test_a_filter_is_part_of_the_query_syntax(filter_: Any) -> None:
    name, _, flag = filter_.query.partition(":")
    assert name in FILTER_NAMES
    value = flag or ("2026" if filter_.kind == "date" else "x")
    assert not parse(f"{name}:{value}").words


@every_filter
def test_a_filter_names_its_facet(filter_: Any) -> None:
    assert not filter_.text.facet or filter_.text.facet in get_type_hints(SessionFacets)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, Filter()),
        ({"source": None, "gone": False, "tag": ()}, Filter()),
        ({"gone": True, "limit": 5}, Filter(is_gone=True)),
        ({"tag": ("#Flaky",)}, Filter(tags=("flaky",))),
        ({"tag": "flaky"}, Filter(tags=("flaky",))),
        ({"branch": ""}, Filter(branch="")),
    ],
)
def test_values_make_a_filter(values: dict[str, Any], expected: Filter) -> None:
    assert make_filter(values) == expected


def test_the_end_of_a_time_range_is_included() -> None:
    filter_ = make_filter({"since": "2026-10-03", "until": "2026-10-03"})
    assert filter_.since is not None and filter_.until is not None
    assert (filter_.until - filter_.since).days == 1
    with pytest.raises(UsageError, match="since: 'soon' is not a date"):
        make_filter({"since": "soon"})


def test_values_make_filters_of_the_query_syntax() -> None:
    values = {
        "source": "cursor",
        "since": "7d",
        "gone": True,
        "starred": True,
        "has_edits": True,
        "tag": ("a",),
    }
    assert query_filters(values) == {
        "source": "cursor",
        "has": ("edits",),
        "is": ("gone", "starred"),
        "tag": ("a",),
    }


def test_a_message_has_the_declared_fields_in_order() -> None:
    tool = ToolCall("t", "Bash", {"a": 1}, "out", "completed")
    message = Message("m", "tool", "", Origin("a.jsonl", "line 1"), tool=tool, usage=TokenUsage(1, 2))
    document = message_document(message, 7)
    assert tuple(document) == MessageDocument.__struct_fields__
    assert document["position"] == 7
    assert document["tool_name"] == "Bash"
    assert document["usage"] == dict.fromkeys(document["usage"]) | {"input_tokens": 1, "output_tokens": 2}
    assert document["origin"] == to_document(message.origin)


def test_a_new_field_and_a_new_filter_appear_in_every_interface(tmp_path: Path) -> None:
    """`extended_declarations` adds a field and a filter to the model, and the SQL of the filter."""
    for seed, text in ((1, CALM), (2, "why is the test flaky")):
        Transcript(seed=seed).user(text).assistant("done").write(tmp_path / "claude")
    done = subprocess.run(
        [sys.executable, EXTENSION, tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("listed") == {name: [CALM] for name in ("cli", "search", "api", "page", "mcp")}
    assert found.pop("documents") == dict.fromkeys(["cli", "api", "mcp"], "calm")
    assert found == dict.fromkeys(["openapi", "mcp_schema", "reference_field", "reference_filter"], True)
