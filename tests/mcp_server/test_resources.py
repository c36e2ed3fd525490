"""Resources, prompts and completions."""

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from backscroll.history.history import History
from backscroll.mcp.prompts import PROMPTS
from backscroll.mcp.tools.results import NOTICE
from tests.mcp_server.server_client import McpClient

SESSION_TEMPLATE = ResourceTemplateReference(uri="backscroll://session/{ref}")


def read(mcp_client: McpClient, uri: str) -> str:
    (content,) = mcp_client.run(lambda client: client.read_resource(uri)).contents
    assert (content.uri, content.mime_type) == (uri, "text/markdown")
    return getattr(content, "text", "")


def test_every_session_is_listed_as_a_resource(mcp_client: McpClient, history: History) -> None:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = mcp_client.run(lambda client, at=cursor: client.list_resources(cursor=at))  # type: ignore[misc]
        found += [resource.uri for resource in page.resources]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found[0] == "backscroll://sessions"
    assert found[1:] == [f"backscroll://session/{summary.ref}" for summary in history.all_sessions()]
    (poller,) = [resource for resource in page.resources if "7804cbb7" in resource.uri]
    assert poller.name == poller.title == "Try an asynchronous poller"
    assert poller.description == "Try an asynchronous poller · tideline · 2026-08-04"


def test_the_templates_are_listed(mcp_client: McpClient) -> None:
    templates = mcp_client.run(lambda client: client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == [
        "backscroll://session/{ref}",
        "backscroll://session/{ref}/message/{position}",
    ]


def test_the_list_of_sessions_can_be_read(mcp_client: McpClient) -> None:
    text = read(mcp_client, "backscroll://sessions")
    assert text.startswith(NOTICE)
    assert "- claude-code:ed6cfe7f · A page about the year · website" in text


def test_a_session_can_be_read_as_markdown(mcp_client: McpClient) -> None:
    text = read(mcp_client, "backscroll://session/claude-code:7804cbb7")
    assert text.startswith(NOTICE)
    assert text.split("\n\n")[1] == "# Try an asynchronous poller"
    assert "37.1 against 38.2 ms" in text


def test_a_message_can_be_read_by_its_position(mcp_client: McpClient, history: History) -> None:
    message = history.get_session("7804cbb7").messages[12]
    assert message.content in read(mcp_client, "backscroll://session/7804cbb7/message/12")


@pytest.mark.parametrize(
    ("uri", "error_type"),
    [
        ("backscroll://session/zzz", "session_not_found"),
        ("backscroll://nothing", "session_not_found"),
        ("backscroll://session/7804cbb7/message/99999", "invalid_arguments"),
    ],
)
def test_an_unknown_resource_is_an_error_with_a_next_step(
    mcp_client: McpClient, uri: str, error_type: str
) -> None:
    with pytest.raises(MCPError) as caught:
        read(mcp_client, uri)
    assert caught.value.data["type"] == error_type
    assert caught.value.data["next"] in caught.value.message


def test_every_prompt_is_listed_with_its_arguments(mcp_client: McpClient) -> None:
    prompts = mcp_client.run(lambda client: client.list_prompts()).prompts
    assert [prompt.name for prompt in prompts] == list(PROMPTS)
    assert all(prompt.title and prompt.description for prompt in prompts)
    arguments = {prompt.name: [each.name for each in prompt.arguments or []] for prompt in prompts}
    assert arguments == {
        "recall": [],
        "handoff": ["ref"],
        "year-in-review": ["year"],
        "commit-story": ["commit", "repository"],
    }


def test_the_recall_prompt_refers_to_the_words_after_the_command(mcp_client: McpClient) -> None:
    """Claude Code splits arguments at spaces; the complete words are in ``<command-args>``."""
    (message,) = mcp_client.run(lambda client: client.get_prompt("recall")).messages
    text = getattr(message.content, "text", "")
    assert "<command-args>" in text and "mcp__backscroll__recall" in text


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("handoff", {"ref": "f77d1fed"}, "BRN-4"),
        ("year-in-review", {"year": "2026"}, "2026"),
    ],
)
def test_a_prompt_quotes_history(
    mcp_client: McpClient, name: str, arguments: dict[str, str], expected: str
) -> None:
    (message,) = mcp_client.run(lambda client: client.get_prompt(name, arguments)).messages
    text = getattr(message.content, "text", "")
    assert message.role == "user"
    assert NOTICE in text
    assert expected in text


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("handoff", {}, "requires: ref"),
        ("handoff", {"ref": "zzz"}, "No session matches 'zzz'"),
        ("year-in-review", {"year": "soon"}, "is not a year"),
        ("sing", {}, "Unknown prompt 'sing'"),
    ],
)
def test_a_prompt_with_invalid_arguments_is_an_error(
    mcp_client: McpClient, name: str, arguments: dict[str, str], message: str
) -> None:
    with pytest.raises(MCPError, match=message):
        mcp_client.run(lambda client: client.get_prompt(name, arguments))


@pytest.mark.parametrize(
    ("name", "typed", "first"),
    [
        ("ref", "7804", "claude-code:7804cbb7-00ab-4ff1-a3cc-ecef07c32b7d"),
        ("ref", "claude-code:7804", "claude-code:7804cbb7-00ab-4ff1-a3cc-ecef07c32b7d"),
        ("ref", "cursor-", "cursor-cli:82c523ad-c90e-4d1c-bb97-00c879ea3203"),
        ("year", "20", "2026"),
    ],
)
def test_arguments_are_completed(mcp_client: McpClient, name: str, typed: str, first: str) -> None:
    argument = {"name": name, "value": typed}
    reference = SESSION_TEMPLATE if name == "ref" else PromptReference(name="year-in-review")
    found = mcp_client.run(lambda client: client.complete(reference, argument)).completion.values
    assert found[0] == first


def test_an_unknown_argument_has_no_completions(mcp_client: McpClient) -> None:
    argument = {"name": "position", "value": "1"}
    assert mcp_client.run(lambda client: client.complete(SESSION_TEMPLATE, argument)).completion.values == []
