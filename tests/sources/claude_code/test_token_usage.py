"""Token counts: the maximum over the lines of a response, and each response once."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.model.message import TokenUsage
from backscroll.sources.claude_code.transcript.line_structs import ApiMessage, as_count, parse_usage
from backscroll.testing.claude_code import Call, Transcript, blocks, tool_calls
from tests.sources.claude_code.read_helpers import calls_of, read_session, texts_of

SMALL = {"input_tokens": 1, "output_tokens": 2}
LARGE = {"input_tokens": 1, "output_tokens": 200}


def output_tokens(session: Transcript, root: Path) -> list[tuple[int | None, bool]]:
    return [(usage.output_tokens, usage.is_at_least) for usage in read_session(session, root).usage.values()]


@pytest.mark.parametrize(("first", "second"), [(SMALL, LARGE), (LARGE, SMALL)])
def test_a_rewritten_line_never_lowers_the_token_counts(
    first: dict[str, int], second: dict[str, int], tmp_path: Path
) -> None:
    session = Transcript().user("go").assistant("Done.", usage=first)
    repeated = dict(session.records[-1])
    session.line({**repeated, "message": {**repeated["message"], "usage": second}})
    assert output_tokens(session, tmp_path) == [(200, False)]


def test_a_repeated_call_with_larger_token_counts_raises_them(tmp_path: Path) -> None:
    call = Call("Bash", {"command": "ls"}, id="toolu_1")
    session = Transcript().user("go").assistant(tools=[call], message_id="msg_1", usage=SMALL)
    session.assistant(tools=[call], message_id="msg_1", usage=LARGE)
    assert output_tokens(session, tmp_path) == [(200, False)]
    assert len(calls_of(read_session(session, tmp_path).messages)) == 1


def test_a_call_rewritten_after_its_result_raises_the_token_counts_and_keeps_the_result(
    tmp_path: Path,
) -> None:
    session = Transcript().user("go").assistant(tools=[tool_calls.bash("ls")], usage=SMALL)
    repeated = dict(session.records[-1])
    session.result(session.tool_ids[-1], "a b")
    block = {**repeated["message"]["content"][0], "input": {"command": "ls -l"}}
    session.line({**repeated, "message": {**repeated["message"], "usage": LARGE, "content": [block]}})
    (tool,) = calls_of(read_session(session, tmp_path).messages)
    assert (tool.result, tool.status, tool.params) == ("a b", "completed", {"command": "ls -l"})
    assert output_tokens(session, tmp_path) == [(200, False)]


def test_a_last_line_with_only_a_stop_reason_makes_the_token_counts_exact(tmp_path: Path) -> None:
    session = Transcript(version="2.1.30").user("go")
    session.assistant("Half", message_id="msg_1", usage=SMALL)
    session.assistant("done", message_id="msg_1", usage=SMALL)
    assert output_tokens(session, tmp_path) == [(2, True)]
    session.records[-1]["message"] |= {"stop_reason": "end_turn", "usage": None}
    assert output_tokens(session, tmp_path) == [(2, False)]


def test_calls_with_the_same_id_in_two_responses_are_two_calls(tmp_path: Path) -> None:
    session = Transcript().user("go")
    session.assistant(tools=[Call("Bash", {"command": "a"}, id="call_0")], message_id="m1", usage=SMALL)
    session.result("call_0", "one")
    session.assistant(tools=[Call("Read", {"file_path": "b"}, id="call_0")], message_id="m2", usage=LARGE)
    session.result("call_0", "two")
    found = calls_of(read_session(session, tmp_path).messages)
    assert [(tool.name, tool.result) for tool in found] == [("Bash", "one"), ("Read", "two")]
    assert output_tokens(session, tmp_path) == [(2, False), (200, False)]


def test_a_repeated_result_does_not_belong_to_the_next_call_with_the_same_id(tmp_path: Path) -> None:
    session = Transcript().user("go")
    session.assistant(tools=[Call("Bash", {"command": "a"}, id="call_0")], message_id="m1")
    session.result("call_0", "one").result("call_0", "one")
    session.assistant(tools=[Call("Bash", {"command": "b"}, id="call_0")], message_id="m2")
    assert [tool.result for tool in calls_of(read_session(session, tmp_path).messages)] == ["one", None]


def test_token_counts_of_a_line_with_only_white_space_count(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("Done.", message_id="msg_1", usage=SMALL)
    session.assistant("\n\n", message_id="msg_1", usage=LARGE)
    assert output_tokens(session, tmp_path) == [(200, False)]
    assert texts_of(read_session(session, tmp_path).messages, "assistant") == ["Done."]


def test_an_empty_response_has_token_counts(tmp_path: Path) -> None:
    parsed = read_session(Transcript().user("go").assistant("\n", message_id="msg_1", usage=LARGE), tmp_path)
    assert parsed.usage == {"msg_1": TokenUsage(1, 200)}
    assert [m.role for m in parsed.messages] == ["user"]


def test_responses_without_an_id_are_counted_separately(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("a", usage=LARGE).assistant("b", usage=LARGE)
    session.change(lambda record: record["message"].pop("id", None) and None)
    assert output_tokens(session, tmp_path) == [(200, False), (200, False)]


@pytest.mark.parametrize("huge", [10**30, -1, 1.5e300, True, "7", [], {}, None])
def test_an_invalid_token_count_is_unknown(huge: object, tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("Done.", usage={"input_tokens": 1, "output_tokens": huge})
    assert output_tokens(session, tmp_path) == [(None, False)]


def test_the_reported_cost_contains_only_known_values(tmp_path: Path) -> None:
    session = Transcript().user("go").state("cost-state", totalCostUSD=0.4, totalLinesAdded=None)
    metadata = read_session(session, tmp_path).closing.metadata
    assert metadata["reported_cost"] == {"totalCostUSD": 0.4}
    assert None not in metadata.values()


def test_a_write_without_changes_counts_no_lines(tmp_path: Path) -> None:
    session = Transcript().user("go").run(tool_calls.write("/a", "1\n2\n", original="1\n2\n"))
    (edit,) = calls_of(read_session(session, tmp_path).messages)[0].edits
    assert (edit.kind, edit.added, edit.removed) == ("update", 0, 0)


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    session = Transcript().user("go").run(tool_calls.write("/a", "a\u2028b\x0cc\x85d\re\n"))
    (edit,) = calls_of(read_session(session, tmp_path).messages)[0].edits
    assert (edit.kind, edit.added) == ("create", 1)


def test_redacted_thinking_does_not_remove_the_token_counts(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("Done.", extra_blocks=[blocks.redacted()], usage=LARGE)
    assert output_tokens(session, tmp_path) == [(200, False)]


_COUNT = st.integers(0, 9) | st.sampled_from([None, -1, 2**53 - 1, 2**53, 1.0, 2.5, True, "7", [1], {"a": 1}])
_NESTED = st.none() | st.dictionaries(
    st.sampled_from(["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens", "ephemeral_1d_input_tokens"]),
    _COUNT,
)


@given(counts=st.lists(_COUNT, min_size=4, max_size=4), nested=_NESTED)
def test_each_token_count_is_validated_independently(
    counts: list[Any], nested: dict[str, Any] | None
) -> None:
    names = (
        "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
    )  # fmt: skip
    encoded = {"usage": dict(zip(names, counts, strict=True)) | {"cache_creation": nested}}
    message = msgspec.json.decode(msgspec.json.encode(encoded), type=ApiMessage)
    input_, output, created, cached = map(as_count, counts)
    if nested is not None:
        created = max(created or 0, sum(as_count(count) or 0 for count in nested.values()))
    hour = as_count((nested or {}).get("ephemeral_1h_input_tokens"))
    assert parse_usage(message.usage, finished=True) == TokenUsage(input_, output, created, cached, hour)
