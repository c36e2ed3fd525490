"""Add a field to sessions and a filter, then print what each interface makes of them.

Run by test_documents.py in a process of its own.
"""

import json
import re
import sqlite3
import sys
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import msgspec
from click.testing import CliRunner

from backscroll.model import session


def _extend(struct: Any, *field: Any) -> Any:
    """Return a struct with one more field, in the place of the original."""
    options = {"module": struct.__module__, "namespace": {"__doc__": struct.__doc__}}
    return msgspec.defstruct(struct.__name__, [field], bases=(struct,), frozen=True, kw_only=True, **options)


# The declarations: a field of a session, a filter, and the SQL of the filter.
_TEXT = session.FilterText("Only sessions in this mood.", is_for_assistants=True)
session.SessionSummary = _extend(session.SessionSummary, "mood", str | None, "calm")  # type: ignore[misc]
session.Filter = _extend(session.Filter, "mood", Annotated[str | None, _TEXT], None)  # type: ignore[misc]

from backscroll.archive.query import sessions  # noqa: E402

_where_clause = sessions.where_clause


def _with_mood(db: sqlite3.Connection, filter_: Any, **options: bool) -> tuple[str, dict[str, Any]]:
    condition, parameters = _where_clause(db, filter_, **options)
    if filter_.mood is None:
        return condition, parameters
    return f"{condition} and instr(first_message_preview, :mood)", parameters | {"mood": filter_.mood}


sessions.where_clause = _with_mood

from starlette.testclient import TestClient  # noqa: E402

from backscroll.cli.app import app  # noqa: E402
from backscroll.config import NamedRoot  # noqa: E402
from backscroll.history.history import History  # noqa: E402
from backscroll.mcp.call import Call, ServerOptions  # noqa: E402
from backscroll.mcp.tools.arguments import parse_arguments  # noqa: E402
from backscroll.mcp.tools.plans import PlanStore  # noqa: E402
from backscroll.mcp.tools.registry import TOOLS  # noqa: E402
from backscroll.mcp.tools.results import result_schema  # noqa: E402
from backscroll.web.api import openapi_document  # noqa: E402
from backscroll.web.app import create_app  # noqa: E402
from tests.reference_page import reference_page  # noqa: E402

_ADDRESS = "http://127.0.0.1:7433"


def main(folder: Path) -> None:
    def open_history() -> History:
        return History(home=folder / "home", roots=[NamedRoot("claude-code", folder / "claude")])

    with open_history() as history:
        history.sync()
        cli = _command(folder, "list", "--mood", "calm")
        search = _command(folder, "search", "mood:calm role:user")
        tool = TOOLS["list_sessions"]
        call = Call(
            history,
            options=ServerOptions(is_structured=True),
            plans=PlanStore(),
            client=None,
            cancelled=Event(),
            report=lambda done, total: None,
        )
        mcp = tool.run(call, parse_arguments(tool, {"mood": "calm"})).as_document(None)
    with TestClient(create_app(open_history, "t" * 43, auto_sync=False), base_url=_ADDRESS) as client:
        api = client.get("/api/v1/sessions?mood=calm").json()
        html = client.get("/sessions?mood=calm").text
    page = reference_page()
    components = openapi_document()["components"]["schemas"]
    found = {
        "listed": {
            "cli": [each["first_message_preview"] for each in cli["data"]],
            "search": [each["match"] for each in search["data"]],
            "api": [each["first_message_preview"] for each in api["data"]],
            "page": re.findall(r"fix the calm parser|why is the test flaky", html)[:1],
            "mcp": [each["first_message_preview"] for each in mcp["data"]],
        },
        "documents": {
            name: document["data"][0]["mood"] for name, document in (("cli", cli), ("api", api), ("mcp", mcp))
        },
        "openapi": "mood" in components["SessionSummary"]["required"],
        "mcp_schema": "mood" in result_schema(tool.result)["$defs"]["SessionSummary"]["properties"],
        "reference_field": "| `mood` | string or null |" in page,
        "reference_filter": "| `--mood` | `mood` | `mood:` | yes | Only sessions in this mood. |" in page,
    }
    sys.stdout.write(json.dumps(found))


def _command(folder: Path, *arguments: str) -> Any:
    options = ["--home", str(folder / "home"), "--root", f"claude-code={folder / 'claude'}"]
    result = CliRunner().invoke(app, [*options, *arguments, "--no-sync", "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


main(Path(sys.argv[1]))
