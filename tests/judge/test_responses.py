"""Responses that are empty, cut, refused or without readable thoughts."""

import json
from typing import Any

import pytest

from tests.judge.blocks import text, think, use
from tests.judge.comparison import assert_agrees
from tests.judge.script import Failure, Reply
from tests.judge.stage import Stage


def test_a_response_with_only_empty_text_keeps_its_tokens(stage: Stage) -> None:
    stage.script.on("PROMPT-EMPTY", [text("")])
    stage.ask("PROMPT-EMPTY go")
    assert_agrees(stage)


def test_redacted_and_signed_thoughts_have_no_words(stage: Stage) -> None:
    stage.script.on("PROMPT-REDACTED", [{"type": "redacted_thinking", "data": "b3BhcXVl"}, text("Redacted.")])
    stage.script.on("PROMPT-SIGNED", [think("", "c2lnbmVkLW9ubHk="), text("Signed.")])
    stage.ask("PROMPT-REDACTED go")
    stage.ask("PROMPT-SIGNED go")
    assert_agrees(stage)


def test_a_session_stopped_by_the_turn_limit_can_go_on(stage: Stage) -> None:
    call = use("Bash", command="echo 1", description="x")
    stage.expect(call, status="completed", result="1")  # not sent again by all versions
    stage.script.on(
        "PROMPT-TURNS",
        [call],
        [use("Bash", command="echo 2", description="x")],
        [text("The end of the turns.")],
    )
    stage.ask("PROMPT-TURNS go", "--max-turns", "1")
    stage.ask("And on", "--continue")
    assert_agrees(stage)


@pytest.mark.since("2.1.105")
def test_structured_output_is_a_call(stage: Stage) -> None:
    schema = {"type": "object", "properties": {"tea": {"type": "string"}}, "required": ["tea"]}
    output = use("StructuredOutput", tea="green")
    stage.script.on("PROMPT-SCHEMA", [output], [text("Schema end.")])
    stage.expect(output, status="completed", result="Structured output provided successfully")
    stage.ask("PROMPT-SCHEMA go", "--json-schema", json.dumps(schema))
    assert_agrees(stage)


def test_retries_cost_nothing(stage: Stage) -> None:
    overloaded = Failure(529, "overloaded_error", "Overloaded", times=2)
    limited = Failure(429, "rate_limit_error", "Slow down", times=1, headers=(("retry-after", "1"),))
    stage.script.on("PROMPT-529", overloaded, [text("Recovered from overload.")])
    stage.script.on("PROMPT-429", limited, [text("Recovered from the limit.")])
    stage.ask("PROMPT-529 go")
    stage.ask("PROMPT-429 go")
    assert_agrees(stage)


@pytest.mark.since("2.1.105")  # older versions end without writing a session
def test_a_response_cut_by_the_network_is_counted_once(stage: Stage) -> None:
    words = "A sentence that the network cuts. " * 10
    stage.environment["CLAUDE_CODE_MAX_RETRIES"] = "3"

    def answer(_: dict[str, Any]) -> Reply:
        is_first = not any(each.blocks == [text(words)] for each in stage.script.exchanges)
        return Reply([text(words)], chunk_chars=40, cut_after_chars=80 if is_first else None)

    stage.script.on("PROMPT-CUT", answer)
    stage.ask("PROMPT-CUT go")
    assert_agrees(stage)


def test_searches_of_the_web_are_read(stage: Stage) -> None:
    page = {
        "type": "web_search_result",
        "title": "Tea",
        "url": "https://tea.example",
        "encrypted_content": "x",
    }
    call = {
        "type": "server_tool_use",
        "id": "srvtoolu_judge1",
        "name": "web_search",
        "input": {"query": "tea"},
    }
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": call["id"],
        "content": [page | {"page_age": None}],
    }
    search = use("WebSearch", query="tea leaves")
    stage.expect(call, status="completed", result="Tea\nhttps://tea.example")
    stage.script.on("PROMPT-SERVER", [call, found, text("Searched.")])
    stage.script.on("PROMPT-CLIENT", [search], [text("Searched here.")])
    run = stage.ask("PROMPT-SERVER go")
    stage.ask("PROMPT-CLIENT go")
    if stage.version < "1.0.0":  # 0.2 does not write the query
        run.exchanges[0].blocks[0]["input"] = {}
    assert_agrees(stage)


def test_a_response_that_reaches_a_limit_or_is_refused_is_kept(stage: Stage) -> None:
    stage.script.on("PROMPT-MAX", Reply([text("Cut by the token limit.")], stop_reason="max_tokens"))
    stage.script.on("PROMPT-REFUSE", Reply([text("I will not.")], stop_reason="refusal"))
    stage.ask("PROMPT-MAX go")
    stage.ask("PROMPT-REFUSE go")
    assert_agrees(stage)


@pytest.mark.since("1.0.69")  # older versions retry for minutes
def test_an_invalid_request_leaves_an_error_and_the_prompt(stage: Stage) -> None:
    stage.environment["CLAUDE_CODE_MAX_RETRIES"] = "1"
    stage.script.on("PROMPT-401", Failure(401, "authentication_error", "invalid x-api-key"))
    stage.ask("First prompt avocet")
    stage.ask("PROMPT-401 go", resume=stage.last_session)
    stage.ask("Next prompt heron", resume=stage.last_session)
    assert_agrees(stage)
