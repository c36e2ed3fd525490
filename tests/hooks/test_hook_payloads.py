"""Of a payload, small fields and counts of lines are stored; file contents, outputs and addresses are not."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.ingest.hook_payloads import MAX_BODY_BYTES, parse_payload

BODY = "def secret():\n    return 1\n" * 2000


def body_of(payload: object) -> dict[str, Any]:
    body = parse_payload(json.dumps(payload).encode())
    assert body is not None
    return body


def test_bodies_of_files_outputs_environment_and_addresses_are_not_kept() -> None:
    body = body_of(
        {
            "hook_event_name": "PostToolUse",
            "user_email": "zoe@example.org",
            "account": "zoe@example.org",
            "env": {"API_KEY": "sk-123"},
            "tool_input": {"file_path": "/a.py", "content": BODY, "old_string": "x", "edits": [{"a": "b"}]},
            "tool_response": {
                "filePath": "/a.py",
                "originalFile": BODY,
                "stdout": "hello",
                "structuredPatch": [{"lines": [" one", "-two", "+three", "+four"]}],
                "userModified": True,
            },
            "output": "hello",
            "unknown": BODY,
            "lost": None,
        }
    )
    assert body == {
        "payload": {
            "hook_event_name": "PostToolUse",
            "tool_input": {"file_path": "/a.py"},
            "tool_response": {"filePath": "/a.py", "userModified": True},
        },
        "edits": [{"path": "/a.py", "kind": "update", "added": 2, "removed": 1}],
        "omitted": {
            "env": 1,
            "tool_input.content": len(BODY),
            "tool_input.old_string": 1,
            "tool_input.edits": 1,
            "tool_response.originalFile": len(BODY),
            "tool_response.stdout": 5,
            "tool_response.structuredPatch": 1,
            "output": 5,
            "unknown": len(BODY),
        },
    }


@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_large_event_is_kept_without_its_bodies(is_ascii: bool) -> None:
    content = "value = 1  # é\n" * 30_000 + '"\\n'
    response = {"type": "create", "filePath": "/a", "content": content}
    event = {"session_id": "s", "tool_input": {"content": content}, "tool_response": response}
    assert parse_payload(json.dumps(event, ensure_ascii=is_ascii).encode()) == {
        "payload": {
            "session_id": "s",
            "tool_input": {},
            "tool_response": {"type": "create", "filePath": "/a"},
        },
        "edits": [{"path": "/a", "kind": "create", "added": 30_001, "removed": 0}],
        "omitted": {"tool_input.content": len(content), "tool_response.content": len(content)},
    }


def test_long_and_deep_values_are_omitted() -> None:
    deep: list[Any] = ["deep"]
    for _ in range(6):
        deep = [deep]
    body = body_of({"long": "x" * 1001, "short": "x" * 1000, "many": {"of": [0] * 61}, "deep": deep})
    assert body["payload"] == {"short": "x" * 1000, "many": {}, "deep": [[[[[[]]]]]]}
    assert body["omitted"] == {"long": 1001, "many.of": 61, "deep[][][][][][]": 1}


def test_the_lines_of_a_cursor_edit_are_counted() -> None:
    edits = [{"old_string": "a\nb\nc", "new_string": "a\nB\nB2\nc"}, {"old_string": "", "new_string": "x\ny"}]
    body = body_of({"file_path": "/a.py", "edits": edits, "hook_event_name": "afterFileEdit"})
    assert body["edits"] == [{"path": "/a.py", "added": 4, "removed": 1}]
    assert body["payload"] == {"file_path": "/a.py", "hook_event_name": "afterFileEdit"}


def test_the_lines_of_a_created_file_are_counted() -> None:
    response = {"type": "create", "filePath": "/a", "content": "1\n2\n3", "structuredPatch": []}
    body = body_of({"tool_response": response})
    assert body["edits"] == [{"path": "/a", "kind": "create", "added": 3, "removed": 0}]


def test_an_answer_is_kept_only_if_there_is_no_transcript(tmp_path: Path) -> None:
    transcript = tmp_path / "transcript.jsonl"
    event = {"transcript_path": str(transcript), "last_assistant_message": "Done."}
    assert body_of(event)["payload"]["last_assistant_message"] == "Done."
    transcript.write_text("{}")
    body = body_of(event)
    assert "last_assistant_message" not in body["payload"]
    assert body["omitted"] == {"last_assistant_message": 5}


def test_a_long_prompt_is_cut_off() -> None:
    body = body_of({"prompt": "x" * 20_000})
    assert (len(body["payload"]["prompt"]), body["omitted"]) == (16_000, {"prompt": 4000})


def test_a_payload_with_many_small_fields_is_reduced_to_the_essential_ones() -> None:
    body = body_of({"session_id": "s", **{f"field{number}": "x" * 900 for number in range(200)}})
    assert body["payload"] == {"session_id": "s"}
    assert body["omitted"][""] > MAX_BODY_BYTES


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"null", b"{} x", b"[" * 100_000, b'{"a": nope}'])
def test_data_that_is_no_object_has_no_body(data: bytes) -> None:
    assert parse_payload(data) is None


def test_invalid_text_and_numbers_are_replaced() -> None:
    body = parse_payload(b' {"a": "x\xff", "b": "\\ud800", "c": NaN, "d": 1} ')
    assert body is not None
    assert body["payload"] == {"a": "x\ufffd", "b": "\ufffd", "d": 1}


def test_a_payload_that_an_earlier_version_reduced_is_the_same() -> None:
    payload = {"session_id": "s", "prompt": "Fix it", "tool_response": {"filePath": "/a", "type": "create"}}
    edits = [{"path": "/a", "kind": "create", "added": 3, "removed": 0}]
    parts = {"edits": edits, "omitted": {"tool_response.content": 30}}
    data = json.dumps(payload).encode()
    assert parse_payload(data) == {"payload": payload, "edits": [], "omitted": {}}
    both = data + b"," + json.dumps(parts).encode()[1:-1]
    assert parse_payload(both) == {"payload": payload, **parts}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
NAMES = st.sampled_from(["prompt", "text", "edits", "tool_response", "filePath", "content", "file_path"])


@given(payload=st.dictionaries(NAMES | st.text(max_size=3), VALUES, max_size=5))
def test_every_object_has_a_body_that_is_the_same_when_it_is_reduced_again(payload: dict[str, Any]) -> None:
    body = body_of(payload)
    assert set(body["payload"]) <= set(payload)
    assert body_of(body["payload"]) == {"payload": body["payload"], "edits": [], "omitted": {}}
