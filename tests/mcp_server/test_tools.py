"""Every tool, asked by a real client of a server in a process of its own."""

import json
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from mcp import Client

from backscroll.history import History
from backscroll.mcp.quoting import NOTICE
from backscroll.mcp.server import tool_list
from backscroll.mcp.tools.registry import TOOLS
from tests.mcp_server.serving import Asking, over_stdio

GOLDEN = Path(__file__).parent.parent / "golden" / "mcp" / "tools.json"

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("recall", {"task": "why did we drop the redis cache"}),
    ("search_sessions", {"query": "asyncio"}),
    ("search_sessions", {"query": "fold=0)", "pattern": "exact", "by": "message"}),
    ("search_sessions", {"query": r"TS\d{4}", "pattern": "regex", "role": "tool"}),
    ("list_sessions", {"limit": 3, "workspace": "tideline", "since": "2026-09", "until": "2026-10-31"}),
    ("get_session", {"ref": "7804cbb7"}),
    ("get_agent_session", {}),
    ("export_session", {"ref": "7804cbb7", "format": "txt"}),
    ("list_workspaces", {}),
    ("stats", {"by": "month", "source": "claude-code"}),
]


def test_the_schemas_are_those_of_the_golden_file(asking: Asking, update_golden: bool) -> None:
    tools = asking.run(lambda client: client.list_tools()).tools
    told = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]
    if update_golden:
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    assert told == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_every_tool_only_reads_and_says_what_it_is_for() -> None:
    for tool in tool_list():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint and tool.annotations.idempotent_hint
        assert not tool.annotations.destructive_hint
        assert tool.title and len(tool.description or "") > 60
        properties = tool.input_schema["properties"].values()
        assert all("description" in json.dumps(one) for one in properties), tool.name
        assert tool.input_schema["additionalProperties"] is False


def test_every_tool_is_tried() -> None:
    assert {name for name, _ in CALLS} == set(TOOLS)


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=[name for name, _ in CALLS])
def test_a_tool_answers_as_its_schema_says(
    asking: Asking, history: History, tool: str, arguments: dict[str, Any]
) -> None:
    if tool == "get_agent_session":
        arguments = {"ref": history.find("f841ceec").agent_ids[0]}
    result = asking.call(tool, **arguments)  # the client checks the document against the schema
    assert not result.is_error
    assert result.structured_content["notice"] == NOTICE
    (content,) = result.content
    assert getattr(content, "text", "").startswith(NOTICE)
    assert len(getattr(content, "text", "")) > len(NOTICE) + 40


def test_the_list_is_paged_to_its_end(asking: Asking, history: History) -> None:
    found = [one["ref"] for page in asking.pages("list_sessions", limit=7) for one in page["data"]]
    assert found == [one.ref for one in history.all_sessions()]


def test_a_session_is_paged_to_its_end(asking: Asking, history: History) -> None:
    for ref in ("c227dcf8", "f77d1fed", "856e8aed"):
        found = asking.positions(ref, count=4)
        messages = history.get_session(ref).messages
        assert found == [at for at, one in enumerate(messages) if one.is_active and one.role != "thinking"]


def test_matches_are_paged_to_their_end(asking: Asking, history: History) -> None:
    found: list[tuple[str, int]] = []
    for page in asking.pages("search_sessions", query="redis", by="message", limit=9):
        found += [(one["session_ref"], one["message_index"]) for one in page["data"]]
    assert len(found) == page["pagination"]["total"] == len(set(found))


def test_only_the_roles_that_were_asked_for_come(asking: Asking) -> None:
    page = asking.document("get_session", ref="7804cbb7", roles=["user", "assistant"])
    assert {one["role"] for one in page["messages"]} == {"user", "assistant"}


def test_what_was_cut_can_be_had_in_pieces(asking: Asking, history: History) -> None:
    session = history.get_session("7804cbb7")
    position, message = next((at, one) for at, one in enumerate(session.messages) if one.tool is not None)
    assert message.tool is not None and message.tool.result is not None
    page = asking.document("get_session", ref="7804cbb7", count=3)
    first = next(one for one in page["messages"] if one["position"] == position)
    assert first["cut_chars"] > 0
    whole = ""
    while len(whole) < len(message.tool.result):
        some = asking.document(
            "get_session", ref="7804cbb7", count=1, max_chars=300, from_char=len(whole), **{"from": position}
        )
        whole += some["messages"][0]["tool_result"]
    assert whole == message.tool.result


@pytest.mark.parametrize("format", ["md", "txt", "json", "jsonl", "html"])
def test_an_export_in_pieces_is_the_whole(asking: Asking, history: History, format: Any) -> None:
    whole, start = "", 0
    while start is not None:
        piece = asking.document(
            "export_session", ref="7804cbb7", format=format, max_chars=3000, from_char=start
        )
        whole += piece.get("text", "")
        start = piece.get("next_from_char")
    assert whole == "".join(history.export_session("7804cbb7", format))


def test_figures_are_those_of_the_library(asking: Asking, history: History) -> None:
    told = asking.document("stats")
    assert told["total"]["sessions"] == history.statistics.report().total.sessions
    assert told["total"]["messages"] == history.statistics.report().total.messages


def test_rows_of_figures_are_paged_to_their_end(asking: Asking, history: History) -> None:
    found: list[str] = []
    for page in asking.pages("stats", by="day", limit=9):
        found += [row["key"] for row in page["data"]]
        assert page["total"]["sessions"] == history.statistics.report().total.sessions
    assert found == [row.key for row in reversed(history.statistics.report(by="day").rows)]
    assert len(found) == page["pagination"]["total"] > 9
    assert "9 of " in asking.text("stats", by="day", limit=9)


def test_recall_stays_within_its_budget(asking: Asking) -> None:
    for budget in (300, 900):
        told = asking.document("recall", task="why is the import slow", token_budget=budget)
        assert len(msgspec.json.encode(told["data"])) / 4 <= budget


def test_clients_of_the_older_protocol_are_answered_alike(asking: Asking, environ: dict[str, str]) -> None:
    with over_stdio(environ, mode="legacy") as older:
        assert older.run(lambda client: client.list_tools()).tools
        for tool, arguments in (one for one in CALLS if one[1]):
            here, there = asking.document(tool, **arguments), older.document(tool, **arguments)
            assert {**here, "took_ms": 0} == {**there, "took_ms": 0}
        assert older.error("get_session", ref="zzz")["type"] == "session_not_found"
        assert older.run(lambda client: client.list_resources()).resources
        assert older.run(lambda client: client.get_prompt("handoff", {"ref": "f77d1fed"})).messages


def test_fifty_calls_at_once_are_all_answered(asking: Asking) -> None:
    async def ask(client: Client) -> list[Any]:
        found: list[Any] = []
        answerable = [one for one in CALLS if one[1]]

        async def one(number: int) -> None:
            tool, arguments = answerable[number % len(answerable)]
            result = await client.call_tool(tool, arguments)
            assert not result.is_error
            found.append(tool)

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(one, number)
        return found

    assert len(asking.run(ask)) == 50
