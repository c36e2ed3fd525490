"""Every tool, called by a client of a server in a separate process."""

import json
import re
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from mcp import Client

from backscroll.history.history import History
from backscroll.mcp.call import ServerOptions
from backscroll.mcp.server import tool_list
from backscroll.mcp.tools.registry import TOOLS
from backscroll.mcp.tools.results import NOTICE
from backscroll.mcp.tools.sessions import Page, page_item, page_lines
from backscroll.model.message import Message, Origin
from tests.mcp_server.server_client import McpClient, start_stdio_server

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
    ("sessions_for_code", {}),
    ("sessions_for_commit", {}),
    ("journal_context", {}),
]


def complete(tool: str, arguments: dict[str, Any], history: History) -> dict[str, Any]:
    """Return the arguments of a call, with those that depend on the history."""
    if tool == "get_agent_session":
        return {"ref": history.find("f841ceec").agent_ids[0]}
    repository = next(one.path for one in history.list_workspaces() if one.name == "saltern")
    if tool == "sessions_for_code":
        return {"repository": str(repository), "file": "README.md"}
    if tool in ("sessions_for_commit", "journal_context"):
        return {"repository": str(repository)}
    return arguments


def list_schemas(mcp_client: McpClient) -> list[dict[str, Any]]:
    tools = mcp_client.run(lambda client: client.list_tools()).tools
    return [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]


def test_the_schemas_match_the_golden_file(structured_client: McpClient, update_golden: bool) -> None:
    schemas = list_schemas(structured_client)
    if update_golden:
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(schemas, indent=1) + "\n", encoding="utf-8")
    assert schemas == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_without_documents_no_output_schema_is_declared(
    mcp_client: McpClient, structured_client: McpClient
) -> None:
    schemas = list_schemas(structured_client)
    assert all(schema.pop("outputSchema") for schema in schemas)
    assert list_schemas(mcp_client) == schemas


def test_recall_is_always_loaded_and_the_other_tools_are_found_by_hints() -> None:
    meta = {tool.name: tool.meta or {} for tool in tool_list(ServerOptions())}
    assert [name for name, fields in meta.items() if fields.get("anthropic/alwaysLoad")] == ["recall"]
    for phrase in ("past conversations", "earlier work", "what did we decide", "have we done this before"):
        assert phrase in meta["recall"]["anthropic/searchHint"]
        assert phrase in meta["search_sessions"]["anthropic/searchHint"]
    assert all(fields["anthropic/searchHint"] for fields in meta.values())


def test_the_definitions_of_the_tools_are_short() -> None:
    """Clients send the definition of every loaded tool with every request."""
    sizes = {
        tool.name: len(tool.description or "") + len(json.dumps(tool.input_schema, separators=(",", ":")))
        for tool in tool_list(ServerOptions())
    }
    assert sizes["recall"] <= 1000
    assert sum(sizes.values()) <= 9500


def test_every_tool_is_read_only_and_has_a_description() -> None:
    for tool in tool_list(ServerOptions()):
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint and tool.annotations.idempotent_hint
        assert not tool.annotations.destructive_hint
        assert tool.title and len(tool.description or "") > 60
        properties = tool.input_schema["properties"].values()
        assert all("description" in json.dumps(schema) for schema in properties), tool.name
        assert tool.input_schema["additionalProperties"] is False


def test_every_tool_is_called_in_these_tests() -> None:
    assert {name for name, _ in CALLS} == set(TOOLS)


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=[name for name, _ in CALLS])
def test_the_result_of_a_tool_matches_its_schema(
    structured_client: McpClient, history: History, tool: str, arguments: dict[str, Any]
) -> None:
    arguments = complete(tool, arguments, history)
    result = structured_client.call(tool, **arguments)  # the client validates the document
    assert not result.is_error
    assert result.structured_content["notice"] == NOTICE
    (content,) = result.content
    text = getattr(content, "text", "")
    assert text.startswith(NOTICE)
    assert len(text) > len(NOTICE) + 40
    hints = "".join(f"\n{hint}" for hint in result.structured_content["hints"])
    assert re.search(rf"\n\[end of quote, mark \w+\]{re.escape(hints)}$", text)


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=[name for name, _ in CALLS])
def test_a_result_is_only_text_by_default(
    mcp_client: McpClient,
    structured_client: McpClient,
    history: History,
    tool: str,
    arguments: dict[str, Any],
) -> None:
    arguments = complete(tool, arguments, history)
    result = mcp_client.call(tool, **arguments)
    assert result.structured_content is None
    if tool != "recall":  # its length depends on the form
        assert result.content == structured_client.call(tool, **arguments).content


def test_the_text_has_the_refs_positions_and_totals_of_the_document(structured_client: McpClient) -> None:
    for tool, arguments in (call for call in CALLS if call[1]):
        result = structured_client.call(tool, **arguments)
        text, document = getattr(result.content[0], "text", ""), result.structured_content
        sessions = [*document.get("data", []), document.get("session", {}), document]
        for ref in (session["ref"] for session in sessions if "ref" in session):
            assert ref[: ref.index(":") + 9] in text, tool
        messages = [*document.get("messages", [])]
        for session in sessions:
            messages += session.get("excerpts", [])
        messages += [item for item in document.get("data", []) if "position" in item]
        for message in messages:
            assert f"[{message['position']}]" in text or f"[{message['position']} of subagent" in text
        if "pagination" in document and (total := document["pagination"].get("total")) is not None:
            assert f"of {total} " in text, tool


def test_one_name_is_used_for_each_thing_in_arguments_and_results(structured_client: McpClient) -> None:
    names: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            names.update(value)
            for each in value.values():
                collect(each)
        elif isinstance(value, list):
            for each in value:
                collect(each)

    for tool, arguments in (call for call in CALLS if call[1] and call[0] != "get_session"):
        collect(structured_client.document(tool, **arguments))
    collect(structured_client.document("get_session", ref="7804cbb7", roles=["user", "assistant"]))
    for tool in tool_list(ServerOptions()):
        names.update(tool.input_schema["properties"])
    assert {"ref", "position"} <= names
    others = {"id", "session_id", "session_ref", "message_id", "message_index", "from", "start", "agent_ids"}
    assert not names & others


def test_all_pages_together_list_every_session(structured_client: McpClient, history: History) -> None:
    pages = structured_client.pages("list_sessions", limit=7)
    found = [summary["ref"] for page in pages for summary in page["data"]]
    assert found == [summary.ref for summary in history.all_sessions()]


def test_a_filter_does_not_change_the_index_of_a_session(
    structured_client: McpClient, history: History
) -> None:
    indexes = {summary.ref: summary.index for summary in history.all_sessions()}
    listed = structured_client.document("list_sessions", workspace="tideline", offset=1, limit=3)["data"]
    assert [summary["index"] for summary in listed] == [indexes[summary["ref"]] for summary in listed]
    assert [summary["index"] for summary in listed] != [2, 3, 4]
    found = structured_client.document("search_sessions", query="redis")["data"]
    assert [match["index"] for match in found] == [indexes[match["ref"]] for match in found]
    session = structured_client.document("get_session", ref=listed[0]["ref"])["session"]
    assert session["index"] == listed[0]["index"]


def test_all_pages_together_have_every_message_of_a_session(
    structured_client: McpClient, history: History
) -> None:
    for ref in ("c227dcf8", "f77d1fed", "856e8aed"):
        found = structured_client.positions(ref, count=4)
        messages = history.get_session(ref).messages
        assert found == [
            position
            for position, message in enumerate(messages)
            if message.is_active and message.role != "thinking"
        ]


def test_all_pages_together_have_every_match(structured_client: McpClient, history: History) -> None:
    found: list[tuple[str, int]] = []
    for page in structured_client.pages("search_sessions", query="redis", by="message", limit=9):
        found += [(match["ref"], match["position"]) for match in page["data"]]
    assert len(found) == page["pagination"]["total"] == len(set(found))


def test_a_search_for_a_substring_can_ignore_case(structured_client: McpClient) -> None:
    arguments = {"query": "FOLD=0)", "pattern": "exact"}
    assert structured_client.document("search_sessions", **arguments)["data"] == []
    assert structured_client.document("search_sessions", **arguments, ignore_case=True)["data"]


def test_only_messages_with_the_requested_roles_are_returned(structured_client: McpClient) -> None:
    page = structured_client.document("get_session", ref="7804cbb7", roles=["user", "assistant"])
    assert {message["role"] for message in page["messages"]} == {"user", "assistant"}


def test_a_long_result_can_be_read_in_parts(structured_client: McpClient, history: History) -> None:
    session = history.get_session("7804cbb7")
    position, message = next(
        (position, message) for position, message in enumerate(session.messages) if message.tool is not None
    )
    assert message.tool is not None and message.tool.result is not None
    page = structured_client.document("get_session", ref="7804cbb7", count=3)
    cut = next(each for each in page["messages"] if each["position"] == position)
    assert cut["cut_chars"] > 0
    result = ""
    while len(result) < len(message.tool.result):
        part = structured_client.document(
            "get_session", ref="7804cbb7", count=1, max_chars=300, from_char=len(result), position=position
        )
        result += part["messages"][0]["tool_result"]
    assert result == message.tool.result


@pytest.mark.parametrize("format", ["md", "txt", "json", "jsonl", "html"])
def test_the_parts_of_an_export_are_the_whole_export(
    structured_client: McpClient, history: History, format: Any
) -> None:
    text, start = "", 0
    while start is not None:
        part = structured_client.document(
            "export_session", ref="7804cbb7", format=format, max_chars=3000, from_char=start
        )
        text += part.get("text", "")
        start = part.get("next_from_char")
    assert text == "".join(history.export_session("7804cbb7", format))


def test_totals_match_those_of_the_library(structured_client: McpClient, history: History) -> None:
    total = structured_client.document("stats")["total"]
    assert total["sessions"] == history.statistics.report().total.sessions
    assert total["messages"] == history.statistics.report().total.messages


def test_all_pages_together_have_every_row_of_the_statistics(
    structured_client: McpClient, history: History
) -> None:
    found: list[str] = []
    for page in structured_client.pages("stats", by="day", limit=9):
        found += [row["key"] for row in page["data"]]
        assert page["total"]["sessions"] == history.statistics.report().total.sessions
    assert found == [row.key for row in reversed(history.statistics.report(by="day").rows)]
    assert len(found) == page["pagination"]["total"] > 9
    assert "9 of " in structured_client.text("stats", by="day", limit=9)


TASKS = (
    "why is the import slow",
    "should the poller use asyncio?",
    "Wie ist das Datumsformat?",
    "redis cache",
)


@pytest.mark.parametrize("budget", [200, 300, 900, 1200, 5000])
def test_recall_stays_within_the_token_budget(
    mcp_client: McpClient, structured_client: McpClient, budget: int
) -> None:
    """The budget applies to the form that the model receives: the text, or the document if there is one."""
    for task in TASKS:
        text = mcp_client.text("recall", task=task, token_budget=budget)
        assert len(text) / 3.2 <= budget
        assert re.search(r"^1\. .* · \w+[\w-]*:\w{8}$", text, re.MULTILINE)
        document = structured_client.document("recall", task=task, token_budget=budget)
        assert len(msgspec.json.encode(document)) / 3.2 <= budget
        assert document["data"]


def test_recall_uses_most_of_the_token_budget(mcp_client: McpClient) -> None:
    text = mcp_client.text("recall", task="should the poller use asyncio?", token_budget=900)
    assert len(text) / 3.2 >= 0.75 * 900


def test_a_model_is_not_addressed_as_the_user(mcp_client: McpClient) -> None:
    text = mcp_client.text("recall", task="should the poller use asyncio?")
    assert "[0] user: Would the poller be better with asyncio?" in text
    assert "you:" not in text


def test_an_invalid_filter_in_a_query_is_reported(mcp_client: McpClient) -> None:
    text = mcp_client.text("search_sessions", query="role:nobody asyncio")
    assert (
        "role:nobody is not a valid filter and was searched as text."
        " Values of role: user, assistant, thinking, tool, error, system." in text
    )
    assert "is:broken is not a valid filter" in mcp_client.text("search_sessions", query="is:broken zzz")
    assert "not a valid filter" not in mcp_client.text("search_sessions", query="role:user https://a.b")
    exact = mcp_client.text("search_sessions", query="role:nobody", pattern="exact")
    assert "not a valid filter" not in exact
    misspelt = mcp_client.text("search_sessions", query="roles:user redis")
    assert "roles:user is not a valid filter and was searched as text. Did you mean role:user?" in misspelt
    assert mcp_client.text("search_sessions", query="source:notepad redis").startswith("Check the filters.")


def test_a_page_after_the_last_match_is_not_reported_as_no_match(mcp_client: McpClient) -> None:
    text = mcp_client.text("search_sessions", query="asyncio", offset=50)
    assert text == "No matches from offset=50 on; 1 session in total."


def test_statistics_are_counted_in_words_that_agree_in_number(mcp_client: McpClient) -> None:
    text = mcp_client.text("stats", by="model")
    assert re.search(
        r"^claude-sonnet-4-5-20250929: 1 session, 5 messages, at least [\d,]+ tokens", text, re.M
    )
    assert re.search(r"^Total: 46 sessions, .* tokens \([\d,]+ input, [\d,]+ output, ", text, re.M)
    assert not re.search(r"\b1 \w+s\b", text)
    assert "at least less" not in text


def test_a_message_that_was_cut_has_the_arguments_to_read_it(
    mcp_client: McpClient, structured_client: McpClient
) -> None:
    text = mcp_client.text("get_session", ref="7804cbb7", count=3)
    (position, max_chars), *_ = re.findall(
        r"more characters: position=(\d+), count=1, max_chars=(\d+)$", text, re.M
    )
    whole = structured_client.document(
        "get_session", ref="7804cbb7", position=int(position), count=1, max_chars=int(max_chars)
    )
    assert "cut_chars" not in whole["messages"][0]


def test_the_rest_of_a_very_long_message_is_read_call_by_call() -> None:
    text = "".join(f"{number:07}," for number in range(12_000))
    message = Message(id="1", role="user", content=text, origin=Origin("a", "line 1"))
    read, arguments = "", {"max_chars": 2000, "from_char": 0}
    for _ in range(10):
        item = page_item(message, 7, tool_chars=0, **arguments)
        page = Page([item], None, 7, 8, arguments["from_char"], arguments["max_chars"])
        *_, last = page_lines(page)
        found = re.search(r"position=7, count=1, max_chars=(\d+)(?:, from_char=(\d+))?$", last)
        if found is None:
            break
        if found[2]:
            read += item["content"]
        arguments = {"max_chars": int(found[1]), "from_char": int(found[2] or 0)}
    assert read + item["content"] == text
    arguments["from_char"] = len(text)
    item = page_item(message, 7, tool_chars=0, **arguments)
    assert list(page_lines(Page([item], None, 7, 8, len(text))))[-1] == (
        "[7] has no text from character 96000 on."
    )


def test_a_session_is_described_with_decisions_and_subagents(mcp_client: McpClient) -> None:
    text = mcp_client.text("get_session", ref="7804cbb7", count=20)
    assert "branch main · claude-opus-4-8 · 2026-08-04 10:17 to 2026-08-04 10:24 UTC" in text
    assert "Edit (rejected by the user)" in text
    assert text.endswith("End of the session.")
    assert "Subagents, to read with get_agent_session: a7dd59a105b7438ad" in mcp_client.text(
        "get_session", ref="f841ceec"
    )


def test_clients_of_the_older_protocol_get_the_same_results(
    structured_client: McpClient, environ: dict[str, str]
) -> None:
    with start_stdio_server(environ, "--structured", mode="legacy") as legacy_client:
        assert legacy_client.run(lambda client: client.list_tools()).tools
        for tool, arguments in (call for call in CALLS if call[1]):
            new, legacy = (
                structured_client.document(tool, **arguments),
                legacy_client.document(tool, **arguments),
            )
            assert {**new, "took_ms": 0} == {**legacy, "took_ms": 0}
        assert legacy_client.error("get_session", ref="zzz")["type"] == "session_not_found"
        assert legacy_client.run(lambda client: client.list_resources()).resources
        assert legacy_client.run(lambda client: client.get_prompt("handoff", {"ref": "f77d1fed"})).messages


def test_fifty_concurrent_calls_all_succeed(mcp_client: McpClient) -> None:
    async def call_all(client: Client) -> list[Any]:
        succeeded: list[Any] = []
        calls = [call for call in CALLS if call[1]]

        async def call_one(index: int) -> None:
            tool, arguments = calls[index % len(calls)]
            result = await client.call_tool(tool, arguments)
            assert not result.is_error
            succeeded.append(tool)

        async with anyio.create_task_group() as group:
            for index in range(50):
                group.start_soon(call_one, index)
        return succeeded

    assert len(mcp_client.run(call_all)) == 50
