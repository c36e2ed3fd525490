"""Resources, prompts and completions, asked by a real client."""

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from backscroll.history import History
from backscroll.mcp.prompts import PROMPTS
from backscroll.mcp.quoting import NOTICE
from tests.mcp_server.serving import Asking

SESSION = ResourceTemplateReference(uri="backscroll://session/{ref}")


def read(asking: Asking, uri: str) -> str:
    (content,) = asking.run(lambda client: client.read_resource(uri)).contents
    assert (content.uri, content.mime_type) == (uri, "text/markdown")
    return getattr(content, "text", "")


def test_every_session_is_listed_as_a_resource(asking: Asking, history: History) -> None:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = asking.run(lambda client, at=cursor: client.list_resources(cursor=at))  # type: ignore[misc]
        found += [one.uri for one in page.resources]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found[0] == "backscroll://sessions"
    assert found[1:] == [f"backscroll://session/{one.ref}" for one in history.all_sessions()]
    assert {"Sessions", "Try an asynchronous poller"} <= {one.title for one in page.resources}


def test_the_templates_are_told(asking: Asking) -> None:
    told = asking.run(lambda client: client.list_resource_templates()).resource_templates
    assert [one.uri_template for one in told] == [
        "backscroll://session/{ref}",
        "backscroll://session/{ref}/message/{n}",
    ]


def test_the_list_is_read(asking: Asking) -> None:
    text = read(asking, "backscroll://sessions")
    assert text.startswith(NOTICE)
    assert "- claude-code:ed6cfe7f · A page about the year · website" in text


def test_a_session_is_read_as_markdown(asking: Asking) -> None:
    text = read(asking, "backscroll://session/claude-code:7804cbb7")
    assert text.startswith(NOTICE)
    assert text.split("\n\n")[1] == "# Try an asynchronous poller"
    assert "37.1 against 38.2 ms" in text


def test_a_message_is_read_by_its_position(asking: Asking, history: History) -> None:
    message = history.get_session("7804cbb7").messages[12]
    assert message.content in read(asking, "backscroll://session/7804cbb7/message/12")


@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        ("backscroll://session/zzz", "session_not_found"),
        ("backscroll://nothing", "session_not_found"),
        ("backscroll://session/7804cbb7/message/99999", "invalid_arguments"),
    ],
)
def test_what_is_not_there_is_said(asking: Asking, uri: str, kind: str) -> None:
    with pytest.raises(MCPError) as caught:
        read(asking, uri)
    assert caught.value.data["type"] == kind
    assert caught.value.data["next"] in caught.value.message


def test_every_prompt_is_told_with_its_arguments(asking: Asking) -> None:
    told = asking.run(lambda client: client.list_prompts()).prompts
    assert [one.name for one in told] == list(PROMPTS)
    assert all(one.title and one.description and one.arguments for one in told)


@pytest.mark.parametrize(
    ("name", "arguments", "holds"),
    [
        ("recall", {"task": "is asyncio worth it for the poller"}, "37.1 against 38.2 ms"),
        ("handoff", {"ref": "f77d1fed"}, "BRN-4"),
        ("year-in-review", {"year": "2026"}, "2026"),
    ],
)
def test_a_prompt_is_written(asking: Asking, name: str, arguments: dict[str, str], holds: str) -> None:
    (message,) = asking.run(lambda client: client.get_prompt(name, arguments)).messages
    text = getattr(message.content, "text", "")
    assert message.role == "user"
    assert NOTICE in text
    assert holds in text


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("recall", {}, "requires: task"),
        ("recall", {"task": "redis", "workspace": "nowhere"}, "the workspace 'nowhere'"),
        ("handoff", {"ref": "zzz"}, "No session matches 'zzz'"),
        ("year-in-review", {"year": "soon"}, "is not a year"),
        ("sing", {}, "Unknown prompt 'sing'"),
    ],
)
def test_a_prompt_that_cannot_be_written_says_why(
    asking: Asking, name: str, arguments: dict[str, str], said: str
) -> None:
    with pytest.raises(MCPError, match=said):
        asking.run(lambda client: client.get_prompt(name, arguments))


def test_a_prompt_without_anything_to_quote_quotes_nothing(asking: Asking) -> None:
    told = asking.run(lambda client: client.get_prompt("recall", {"task": "xylophone zeppelin"}))
    text = getattr(told.messages[0].content, "text", "")
    assert text.endswith("\n\nNo relevant session found.")
    assert NOTICE not in text


@pytest.mark.parametrize(
    ("argument", "typed", "first"),
    [
        ("ref", "7804", "claude-code:7804cbb7-00ab-4ff1-a3cc-ecef07c32b7d"),
        ("ref", "claude-code:7804", "claude-code:7804cbb7-00ab-4ff1-a3cc-ecef07c32b7d"),
        ("ref", "cursor-", "cursor-cli:82c523ad-c90e-4d1c-bb97-00c879ea3203"),
        ("workspace", "TIDE", "tideline"),
        ("year", "20", "2026"),
    ],
)
def test_arguments_are_completed(asking: Asking, argument: str, typed: str, first: str) -> None:
    asked = {"name": argument, "value": typed}
    reference = SESSION if argument == "ref" else PromptReference(name="recall")
    found = asking.run(lambda client: client.complete(reference, asked)).completion.values
    assert found[0] == first


def test_what_nobody_knows_is_not_completed(asking: Asking) -> None:
    asked = {"name": "n", "value": "1"}
    assert asking.run(lambda client: client.complete(SESSION, asked)).completion.values == []
