"""What a response cost: the largest of what its lines say, each response once, none forgotten."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.model import TokenUsage
from backscroll.sources.claude_code.transcript.line_types import ApiMessage, count_value, usage
from backscroll.testing.claude_code import Call, Transcript, blocks, tool_calls
from tests.sources.claude_code.reading import only, said, tools

SMALL = {"input_tokens": 1, "output_tokens": 2}
LARGE = {"input_tokens": 1, "output_tokens": 200}


def spent(session: Transcript, root: Path) -> list[tuple[int | None, bool]]:
    return [(usage.output_tokens, usage.is_at_least) for usage in only(session, root).usage.values()]


@pytest.mark.parametrize(("first", "second"), [(SMALL, LARGE), (LARGE, SMALL)])
def test_a_line_written_again_never_lowers_the_cost(
    first: dict[str, int], second: dict[str, int], tmp_path: Path
) -> None:
    session = Transcript().user("go").assistant("Done.", usage=first)
    again = dict(session.records[-1])
    session.line({**again, "message": {**again["message"], "usage": second}})
    assert spent(session, tmp_path) == [(200, False)]


def test_a_call_appended_again_with_a_larger_cost_counts_with_it(tmp_path: Path) -> None:
    call = Call("Bash", {"command": "ls"}, id="toolu_1")
    session = Transcript().user("go").assistant(tools=[call], message_id="msg_1", usage=SMALL)
    session.assistant(tools=[call], message_id="msg_1", usage=LARGE)
    assert spent(session, tmp_path) == [(200, False)]
    assert len(tools(only(session, tmp_path).messages)) == 1


def test_a_call_written_again_after_its_answer_raises_the_cost_and_keeps_the_answer(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant(tools=[tool_calls.bash("ls")], usage=SMALL)
    again = dict(session.records[-1])
    session.result(session.tool_ids[-1], "a b")
    block = {**again["message"]["content"][0], "input": {"command": "ls -l"}}
    session.line({**again, "message": {**again["message"], "usage": LARGE, "content": [block]}})
    (tool,) = tools(only(session, tmp_path).messages)
    assert (tool.result, tool.status, tool.params) == ("a b", "completed", {"command": "ls -l"})
    assert spent(session, tmp_path) == [(200, False)]


def test_a_last_fragment_that_only_says_it_is_over_makes_the_cost_exact(tmp_path: Path) -> None:
    session = Transcript(version="2.1.30").user("go")
    session.assistant("Half", message_id="msg_1", usage=SMALL)
    session.assistant("done", message_id="msg_1", usage=SMALL)
    assert spent(session, tmp_path) == [(2, True)]
    session.records[-1]["message"] |= {"stop_reason": "end_turn", "usage": None}
    assert spent(session, tmp_path) == [(2, False)]


def test_calls_that_share_an_id_across_responses_are_two(tmp_path: Path) -> None:
    session = Transcript().user("go")
    session.assistant(tools=[Call("Bash", {"command": "a"}, id="call_0")], message_id="m1", usage=SMALL)
    session.result("call_0", "one")
    session.assistant(tools=[Call("Read", {"file_path": "b"}, id="call_0")], message_id="m2", usage=LARGE)
    session.result("call_0", "two")
    found = tools(only(session, tmp_path).messages)
    assert [(tool.name, tool.result) for tool in found] == [("Bash", "one"), ("Read", "two")]
    assert spent(session, tmp_path) == [(2, False), (200, False)]


def test_an_answer_written_twice_does_not_answer_the_next_call_of_that_id(tmp_path: Path) -> None:
    session = Transcript().user("go")
    session.assistant(tools=[Call("Bash", {"command": "a"}, id="call_0")], message_id="m1")
    session.result("call_0", "one").result("call_0", "one")
    session.assistant(tools=[Call("Bash", {"command": "b"}, id="call_0")], message_id="m2")
    assert [tool.result for tool in tools(only(session, tmp_path).messages)] == ["one", None]


def test_a_fragment_of_white_space_still_counts_for_its_response(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("Done.", message_id="msg_1", usage=SMALL)
    session.assistant("\n\n", message_id="msg_1", usage=LARGE)
    assert spent(session, tmp_path) == [(200, False)]
    assert said(only(session, tmp_path).messages, "assistant") == ["Done."]


def test_a_response_that_said_nothing_has_its_cost_all_the_same(tmp_path: Path) -> None:
    reading = only(Transcript().user("go").assistant("\n", message_id="msg_1", usage=LARGE), tmp_path)
    assert reading.usage == {"msg_1": TokenUsage(1, 200)}
    assert [m.role for m in reading.messages] == ["user"]


def test_responses_without_an_id_are_never_taken_for_one(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("a", usage=LARGE).assistant("b", usage=LARGE)
    session.change(lambda record: record["message"].pop("id", None) and None)
    assert spent(session, tmp_path) == [(200, False), (200, False)]


@pytest.mark.parametrize("huge", [10**30, -1, 1.5e300, True, "7", [], {}, None])
def test_a_count_nobody_can_have_counted_is_unknown(huge: object, tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("Done.", usage={"input_tokens": 1, "output_tokens": huge})
    assert spent(session, tmp_path) == [(None, False)]


def test_the_reported_cost_holds_only_what_was_said(tmp_path: Path) -> None:
    session = Transcript().user("go").state("cost-state", totalCostUSD=0.4, totalLinesAdded=None)
    metadata = only(session, tmp_path).closing.metadata
    assert metadata["reported_cost"] == {"totalCostUSD": 0.4}
    assert None not in metadata.values()


def test_a_file_written_as_it_was_counts_no_lines(tmp_path: Path) -> None:
    session = Transcript().user("go").run(tool_calls.write("/a", "1\n2\n", original="1\n2\n"))
    (edit,) = tools(only(session, tmp_path).messages)[0].edits
    assert (edit.kind, edit.added, edit.removed) == ("update", 0, 0)


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    session = Transcript().user("go").run(tool_calls.write("/a", "a\u2028b\x0cc\x85d\re\n"))
    (edit,) = tools(only(session, tmp_path).messages)[0].edits
    assert (edit.kind, edit.added) == ("create", 1)


def test_a_block_of_redacted_thinking_does_not_take_the_cost_away(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("Done.", extra_blocks=[blocks.redacted()], usage=LARGE)
    assert spent(session, tmp_path) == [(200, False)]


_COUNT = st.integers(0, 9) | st.sampled_from([None, -1, 2**53 - 1, 2**53, 1.0, 2.5, True, "7", [1], {"a": 1}])
_NESTED = st.none() | st.dictionaries(
    st.sampled_from(["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens", "ephemeral_1d_input_tokens"]),
    _COUNT,
)


@given(counts=st.lists(_COUNT, min_size=4, max_size=4), nested=_NESTED)
def test_each_count_of_a_response_is_taken_for_itself_whatever_the_others_are(
    counts: list[Any], nested: dict[str, Any] | None
) -> None:
    names = (
        "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
    )  # fmt: skip
    written = {"usage": dict(zip(names, counts, strict=True)) | {"cache_creation": nested}}
    message = msgspec.json.decode(msgspec.json.encode(written), type=ApiMessage)
    given_, made, created, cached = map(count_value, counts)
    if nested is not None:
        created = max(created or 0, sum(count_value(count) or 0 for count in nested.values()))
    hour = count_value((nested or {}).get("ephemeral_1h_input_tokens"))
    assert usage(message.usage, finished=True) == TokenUsage(given_, made, created, cached, hour)
