"""The page about the server says what the server says.

``pytest tests/mcp_server/test_reference.py --update-golden`` writes it anew; the diff is to be reviewed.
"""

import json
import re
from pathlib import Path
from typing import Any

from backscroll import errors
from backscroll.errors import BackscrollError
from backscroll.mcp.errors import failure_of
from backscroll.mcp.prompts import prompt_list
from backscroll.mcp.resources import TEMPLATES
from backscroll.mcp.server import tool_list
from tests.mcp_server.serving import Asking

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "mcp.md"

INTRODUCTION = """\
# MCP

Written by `pytest tests/mcp_server/test_reference.py --update-golden` from what the server tells its clients,
and checked by the tests. [Use from an assistant](../guide/use-from-an-assistant.md) shows how to set it up.

`backscroll mcp` serves over standard input and output; `backscroll mcp --http` over streamable HTTP on
`127.0.0.1`, at `/mcp`, to whoever sends the token as `Authorization: Bearer`. A request with another `Host`
is answered with 421, one with an `Origin` that is not the server's own with 403, one without the token with
401.

Every result is there twice: as a compact text for a model, and as a document with the names of the
[command line's JSON](cli.md), in which a field that is null or empty is left out. Both begin with a notice
that what follows is quoted. The text names a mark at which the quotation ends, made from all that is quoted,
so that nothing in it can end it; what follows the mark is the server's own: how many there are, how to go on.
Control characters are removed, and secrets replaced unless the server was started with `--no-redact`. All
tools only read. A call that is cancelled stops, and long ones report progress.

## Tools
"""

ERRORS = """\
A tool that cannot answer says so in a result with `isError`, whose document is `error` with `type`,
`message`, `next` and what it is about; resources and prompts answer with an error of the protocol that has
the same as its data."""


def _kind(schema: dict[str, Any]) -> str:
    options = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    told = []
    for one in options:
        if "enum" in one:
            told.append(" ".join(f"`{value}`" for value in one["enum"] if value is not None))
        elif one.get("type") == "array":
            told.append(f"list of {_kind(one['items'])}")
        else:
            told.append(str(one.get("type", "any")))
    limits = [
        f"{word} {schema[key]:,}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema
    ]
    return " ".join([", ".join(told), *limits])


def _described(schema: dict[str, Any]) -> str:
    options = [schema, *schema.get("anyOf", [])]
    return next((one["description"] for one in options if "description" in one), "")


def _page() -> str:
    lines = [INTRODUCTION]
    for tool in tool_list():
        lines += [
            f"### {tool.name}",
            "",
            f"{tool.description}",
            "",
            "| argument | takes | default | |",
            "|---|---|---|---|",
        ]
        needed = tool.input_schema.get("required", [])
        for name, schema in tool.input_schema["properties"].items():
            default = "needed" if name in needed else schema.get("default")
            told = "" if default is None else f"{default}"
            lines.append(f"| `{name}` | {_kind(schema)} | {told} | {_described(schema)} |")
        assert tool.output_schema is not None
        gives = ", ".join(f"`{name}`" for name in tool.output_schema["properties"])
        lines += ["", f"Gives {gives}.", ""]
    lines += [
        "## Resources",
        "",
        "| uri | |",
        "|---|---|",
        "| `backscroll://sessions` | the newest sessions, a line each |",
    ]
    lines += [f"| `{one.uri_template}` | {one.description} |" for one in TEMPLATES]
    lines += [
        "",
        "`ref` is completed from what is typed. Every session is listed as a resource, by the page.",
        "",
    ]
    lines += ["## Prompts", "", "| prompt | arguments | |", "|---|---|---|"]
    for prompt in prompt_list():
        asked = ", ".join(
            f"`{one.name}`{'' if one.required else ' (optional)'}" for one in prompt.arguments or []
        )
        lines.append(f"| `{prompt.name}` | {asked} | {prompt.description} |")
    lines += ["", "## Errors", "", ERRORS, ""]
    lines += ["| type | code | library's error | what to do next |", "|---|---|---|---|"]
    for name in errors.__all__:
        kind = getattr(errors, name)
        error = kind("") if kind.__init__ is BackscrollError.__init__ else kind("", "")
        failure = failure_of(error)
        lines.append(f"| `{failure.type}` | {failure.code} | `{name}` | {failure.next} |")
    internal = failure_of(ValueError())
    lines.append(f"| `{internal.type}` | {internal.code} | anything else | {internal.next} |")
    return "\n".join(lines) + "\n"


def test_the_page_is_what_the_server_tells(update_golden: bool) -> None:
    if update_golden:
        PAGE.write_text(_page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == _page()


def test_the_example_in_the_guide_is_what_the_tool_returns(asking: Asking) -> None:
    text = (PAGE.parent.parent / "guide" / "use-from-an-assistant.md").read_text(encoding="utf-8")
    shown = re.findall(
        r'^```json\n(\{"tool"[^\n]*)\n```\n\n```text\n(.*?)\n```$', text, re.MULTILINE | re.DOTALL
    )
    assert shown
    for call, example in shown:
        arguments = json.loads(call)
        returned = asking.text(arguments["tool"], **arguments["arguments"])
        # The best session; the order of the others changes as they grow older.
        assert example.strip() in returned
