"""The reference page matches the server.

``pytest tests/mcp_server/test_reference.py --update-golden`` regenerates the page. Review the diff.
"""

import json
import re
from pathlib import Path
from typing import Any

from backscroll import errors
from backscroll.errors import BackscrollError
from backscroll.mcp.errors import failure_for
from backscroll.mcp.options import ServerOptions
from backscroll.mcp.prompts import prompt_list
from backscroll.mcp.resources import TEMPLATES
from backscroll.mcp.server import tool_list
from backscroll.mcp.tools.registry import WRITE_TOOLS
from tests.mcp_server.server_client import McpClient

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "mcp.md"

INTRODUCTION = """\
# MCP

Generated from the server by `pytest tests/mcp_server/test_reference.py --update-golden` and checked by the
tests. [Use from an assistant](../guide/use-from-an-assistant.md) describes the setup.

`backscroll mcp` serves over standard input and output. `backscroll mcp --http` serves over streamable HTTP on
`127.0.0.1`, at `/mcp`, and requires the token as `Authorization: Bearer`.

| status | cause |
|---|---|
| 401 | the token is missing or wrong |
| 403 | the `Origin` is not the server's own |
| 413 | the request is too large |
| 421 | the `Host` is not the server's own |

Every result is compact text for a model. It starts with a notice that history is quoted. The quotation ends
at a mark. The mark is a hash of the quoted text, so no text in the history can end the quotation. Hints of
the server follow the mark: totals, how to get the next page, and whether the first sync is still running.

A session is named by its `ref`, and a message by its `position`, in arguments and in results. In text, a
position is a number in brackets: `[12] user`.

`--structured` adds a document to each result, and an output schema to each tool. It is for programs. Claude
Code 2.0.76 and newer pass only the document to the model, which is up to seven times as long as the text.
Documents have the field names below, without null and empty fields. Except for `ref` and `position`, the
names are those of the [command line's JSON](cli.md). `hints` has the hints of the server.

Control characters are removed. Secrets are redacted, unless the server was started with `--no-redact`. All
tools are read-only, except [those that write](#tools-that-write). Calls can be cancelled, and long ones
report progress.

## Tools

Clients may hide tools until the model searches for them, as Claude Code does. `recall` asks to be always
loaded (`anthropic/alwaysLoad`). The other tools have words to be found by (`anthropic/searchHint`).
"""

WRITES = """\
## Tools that write

These tools exist only if the server was started with `backscroll mcp --allow-writes`. The annotations of a
tool (`readOnlyHint`, `destructiveHint`, `idempotentHint`) say whether it changes or replaces files.

A tool with a `plan_id` changes nothing when it is called without one. It returns a plan with an id. Called
again with the same arguments and this id, it applies the plan. A plan is valid for 15 minutes and for its
arguments. If a file that it concerns has changed since, it is refused. A refused call changes nothing, says
why, and returns a new plan. A plan is applied once; a repeated call returns the first result.

| status | meaning |
|---|---|
| `planned` | nothing was changed; `plan_id` applies the plan; `reason` says why an earlier plan was refused |
| `applied` | the change was made; `result` is a `BackupResult`, `RestoreResult` or `MigrateResult` |
| `blocked` | a running tool has open what would be changed; `command` is the shell command to run later |
| `failed` | nothing was changed, for the reasons in `result`; `plan_id` can be used again |
| `running` | another call is applying the plan |
| `nothing_to_do` | the plan changes nothing |

A change is also `blocked` if the tool that calls would change its own session or store: Cursor must be
closed, and a session of Claude Code must not be in use. Paths must be absolute.
"""

ERRORS = """\
If a tool fails, its result has `isError`, and its text is the type, the message and the next step. With
`--structured`, the document is `error` with `type`, `message`, `next`, the `name` of the error in Python and,
if known, `ref`, `workspace` or `data_path`. Resources and prompts return a protocol error with the same data.

If arguments are invalid, the message names each parameter, its allowed values and the nearest valid call:

```text
invalid_arguments: Unknown parameter 'session_id'. Did you mean 'ref'?
Nearest valid call: get_session {"ref":"7804cbb7"}
Correct the arguments and call again.
```
"""


def _type_text(schema: dict[str, Any]) -> str:
    options = [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"]
    types = []
    for option in options:
        if "enum" in option:
            types.append(" ".join(f"`{value}`" for value in option["enum"] if value is not None))
        elif option.get("type") == "array":
            types.append(f"list of {_type_text(option['items'])}")
        else:
            types.append(str(option.get("type", "any")))
    limits = [
        f"{word} {schema[key]:,}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema
    ]
    return " ".join([", ".join(types), *limits])


def _description(schema: dict[str, Any]) -> str:
    options = [schema, *schema.get("anyOf", [])]
    return next((option["description"] for option in options if "description" in option), "")


def _page() -> str:
    lines = [INTRODUCTION]
    for tool in tool_list(ServerOptions(is_structured=True, allow_writes=True)):
        if tool.name == next(iter(WRITE_TOOLS)):
            lines.append(WRITES)
        lines += [
            f"### {tool.name}",
            "",
            f"{tool.description}",
            "",
            "| argument | type | default | description |",
            "|---|---|---|---|",
        ]
        required = tool.input_schema.get("required", [])
        for name, schema in tool.input_schema["properties"].items():
            default = "required" if name in required else schema.get("default")
            default_text = "" if default is None else f"{default}"
            lines.append(f"| `{name}` | {_type_text(schema)} | {default_text} | {_description(schema)} |")
        assert tool.output_schema is not None
        fields = ", ".join(f"`{name}`" for name in tool.output_schema["properties"])
        lines += ["", f"Document: {fields}.", ""]
    lines += [
        "## Resources",
        "",
        "| uri | content |",
        "|---|---|",
        "| `backscroll://sessions` | The newest sessions, one per line. |",
    ]
    lines += [f"| `{template.uri_template}` | {template.description} |" for template in TEMPLATES]
    lines += [
        "",
        "Completion is available for `ref`. The list of resources contains every session, in pages. The name",
        "and the description of a session's resource contain its title.",
        "",
    ]
    lines += ["## Prompts", "", "| prompt | arguments | content |", "|---|---|---|"]
    for prompt in prompt_list():
        arguments = ", ".join(
            f"`{argument.name}`{'' if argument.required else ' (optional)'}"
            for argument in prompt.arguments or []
        )
        lines.append(f"| `{prompt.name}` | {arguments or 'none'} | {prompt.description} |")
    lines += ["", "## Errors", "", ERRORS, ""]
    lines += ["| type | code | error in Python | next step |", "|---|---|---|---|"]
    for name in errors.__all__:
        error_class = getattr(errors, name)
        is_plain = error_class.__init__ is BackscrollError.__init__
        error = error_class("") if is_plain else error_class("", "")
        failure = failure_for(error)
        if failure.type == "backscroll" and error_class is not BackscrollError:
            continue  # no tool raises it
        lines.append(f"| `{failure.type}` | {failure.code} | `{name}` | {failure.next} |")
    internal = failure_for(ValueError())
    lines.append(f"| `{internal.type}` | {internal.code} | any other error | {internal.next} |")
    return "\n".join(lines) + "\n"


def test_the_reference_page_is_up_to_date(update_golden: bool) -> None:
    if update_golden:
        PAGE.write_text(_page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == _page()


def test_the_example_in_the_guide_is_what_the_tool_returns(mcp_client: McpClient) -> None:
    text = (PAGE.parent.parent / "guide" / "use-from-an-assistant.md").read_text(encoding="utf-8")
    shown = re.findall(
        r'^```json\n(\{"tool"[^\n]*)\n```\n\n```text\n(.*?)\n```$', text, re.MULTILINE | re.DOTALL
    )
    assert shown
    for call, example in shown:
        arguments = json.loads(call)
        returned = mcp_client.text(arguments["tool"], **arguments["arguments"])
        # The example is the best session. The order of the others depends on their age.
        assert example.strip() in returned
