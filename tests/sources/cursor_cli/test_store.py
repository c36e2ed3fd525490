"""Sessions out of ``store.db``: everything the root leads to, in order, once."""

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from backscroll.model import Attachment
from backscroll.testing.protobuf import encode_map_entry
from backscroll.testing.protobuf import encode_message as record

from .reading import CWD, START, Store, assistant, call, only, read_one, result, said, user

AT = datetime.fromtimestamp(START / 1000, UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_what_was_said_thought_and_done_comes_back_in_order(store: Store) -> None:
    store.say(
        {"role": "system", "content": "You are an assistant."},
        {"role": "user", "content": "<user_info>\nOS: linux\n</user_info>"},
        user("rename foo"),
        assistant({"type": "reasoning", "text": "Where is it?"}, "Looking.", call("c1", "Read", path="a.py")),
        result("c1", "def foo(): ...", "Read"),
        assistant("Done."),
    )
    told = store.read()
    assert said(told) == [
        ("system", "<user_info>\nOS: linux\n</user_info>"),
        ("user", "rename foo"),
        ("thinking", "Where is it?"),
        ("assistant", "Looking."),
        ("tool", "Read: def foo(): ..."),
        ("assistant", "Done."),
    ]
    assert told.counts.kinds == {"meta": 1, "blob (system prompt)": 1, "blob (message)": 5, "blob (root)": 1}
    assert (told.counts.parsed, told.counts.ignored, told.counts.problems) == (5, 3, 0)


def test_messages_are_named_by_their_blobs_since_all_answers_say_id_1(store: Store) -> None:
    store.say(
        user("go on"),
        assistant("Done."),
        user("go on"),
        assistant({"type": "reasoning", "text": "?"}, "Done."),
    )
    ids = [message.id for message in only(store.read()).messages]
    prompt = sha256(json.dumps(user("go on")).encode()).hexdigest()
    assert ids[0] == prompt
    assert ids[2] == f"{prompt}#2"
    assert ids[4] == f"{ids[3]}.1"
    assert len(set(ids)) == 5


def test_only_the_latest_root_is_followed(store: Store) -> None:
    first, kept = store.put(user("first try")), store.put(user("second try"))
    store.root((1, first), (1, store.put(assistant("abandoned"))))
    store.root((1, kept), (1, store.put(assistant("kept"))))
    told = store.read()
    assert said(told) == [("user", "second try"), ("assistant", "kept")]
    assert told.counts.kinds["blob (older state)"] == 3


def test_compacted_messages_come_back_before_those_that_were_kept(store: Store) -> None:
    system = store.put({"role": "system", "content": "Be brief."})
    one, two, three, four = (
        store.put(message) for message in (user("one"), assistant("1"), user("two"), assistant("2"))
    )
    first_summary = store.put({"role": "user", "content": "Summary of one."})
    second_summary = store.put({"role": "user", "content": "Summary of both."})
    archives = (
        record((1, system), (1, one), (1, two), (2, "Summary of one."), (4, first_summary)),
        record(
            (1, system),
            (1, first_summary),
            (1, three),
            (1, four),
            (2, "Summary of both."),
            (4, second_summary),
        ),
    )
    store.root(
        *(
            (1, id)
            for id in (system, second_summary, four, store.put(user("three")), store.put(assistant("3")))
        ),
        *((13, store.put(archive)) for archive in archives),
        (17, 2),
    )
    told = store.read()
    assert said(told) == [
        ("user", "one"),
        ("assistant", "1"),
        ("system", "Summary of one."),
        ("user", "two"),
        ("assistant", "2"),
        ("system", "Summary of both."),
        ("user", "three"),
        ("assistant", "3"),
    ]
    kinds = [message.kind for message in only(told).messages if message.role == "system"]
    assert kinds == ["compaction", "compaction"]
    assert told.problems == ()


def test_messages_that_a_compaction_archived_and_also_left_are_told_once(store: Store) -> None:
    one, two, three = (store.put(message) for message in (user("one"), assistant("1"), user("two")))
    archive = store.put(record((1, one), (1, two), (1, three)))
    store.root((1, two), (1, three), (1, store.put(assistant("2"))), (13, archive))
    assert said(store.read()) == [("user", "one"), ("assistant", "1"), ("user", "two"), ("assistant", "2")]


def test_a_message_inside_the_root_is_read_like_one_in_a_blob(store: Store) -> None:
    store.root((1, json.dumps(user("inline"))), (1, store.put(assistant("Yes."))))
    assert said(store.read()) == [("user", "inline"), ("assistant", "Yes.")]


def test_a_step_under_way_is_told_and_not_repeated(store: Store) -> None:
    prompt, step = store.put(user("run it")), assistant("Running.", call("c1", command="make"))
    store.root((1, prompt), (4, json.dumps(step)))
    assert said(store.read()) == [("user", "run it"), ("assistant", "Running."), ("tool", "Shell: None")]
    store.root((1, prompt), (1, store.put(step)), (4, json.dumps(step)))
    assert said(store.read()) == [("user", "run it"), ("assistant", "Running."), ("tool", "Shell: None")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ([{"type": "text", "text": "line 1"}, {"type": "text", "text": "line 2"}], "line 1\nline 2"),
        ({"type": "text", "value": "enveloped"}, "enveloped"),
        ({"type": "content", "value": [{"type": "text", "text": "deep"}]}, "deep"),
        ({"exitCode": 0}, '{\n  "exitCode": 0\n}'),
        (["a", "b"], '[\n  "a",\n  "b"\n]'),
        (7, "7"),
    ],
)
def test_results_of_every_shape_become_text(store: Store, value: object, text: str) -> None:
    store.say(user("go"), assistant(call("c1")), result("c1", value))
    assert said(store.read())[-1] == ("tool", f"Shell: {text}")


def test_a_result_without_its_text_is_taken_from_its_other_field(store: Store) -> None:
    other = {"experimental_content": [{"type": "text", "text": "from there"}]}
    store.say(user("go"), assistant(call("c1")), result("c1", None, **other))
    assert said(store.read())[-1] == ("tool", "Shell: from there")


def test_a_failed_call_is_failed_and_an_unanswered_one_pending(store: Store) -> None:
    store.say(
        user("go"),
        assistant(call("c1"), call("c2"), call("c3")),
        result("c1", "no such command", isError=True),
        result("c2"),
    )
    statuses = [message.tool.status for message in only(store.read()).messages if message.tool]
    assert statuses == ["failed", "completed", "pending"]


def test_a_result_whose_call_is_gone_is_kept(store: Store) -> None:
    store.say(user("go"), result("lost", "still here", "Grep"))
    assert said(store.read())[-1] == ("tool", "Grep: still here")


def test_calls_numbered_anew_in_every_turn_keep_their_own_results(store: Store) -> None:
    store.say(
        user("one"),
        assistant(call("0")),
        result("0", "first"),
        user("two"),
        assistant("-", call("0")),
        result("0", "second"),
    )
    results = [message.tool.result for message in only(store.read()).messages if message.tool]
    assert results == ["first", "second"]


def test_arguments_are_found_wherever_a_version_keeps_them(store: Store) -> None:
    raw = {"cursor": {"rawToolCallArgs": json.dumps({"command": "raw"})}}
    parts = [
        {"type": "tool-call", "toolCallId": "1", "toolName": "Shell", "args": {"command": "args"}},
        {"type": "tool-call", "toolCallId": "2", "toolName": "Shell", "input": {"command": "input"}},
        {
            "type": "tool-call",
            "toolCallId": "3",
            "toolName": "Shell",
            "args": json.dumps(json.dumps({"command": "twice"})),
        },
        {"type": "tool-call", "toolCallId": "4", "toolName": "Shell", "args": {}, "providerOptions": raw},
        {"type": "tool-call", "toolCallId": "5", "toolName": "Shell", "args": "not JSON"},
    ]
    store.say(user("go"), assistant(*parts))
    params = [message.tool.params for message in only(store.read()).messages if message.tool]
    assert params == [
        {"command": "args"},
        {"command": "input"},
        {"command": "twice"},
        {"command": "raw"},
        {"raw": "not JSON"},
    ]


def test_calls_beside_the_text_are_read_too(store: Store) -> None:
    function = {"name": "Read", "arguments": '{"path": "a.py"}'}
    store.say(
        user("go"),
        {"role": "assistant", "content": "Looking.", "tool_calls": [{"id": "c1", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "text of a.py"},
    )
    told = store.read()
    assert said(told)[1:] == [("assistant", "Looking."), ("tool", "Read: text of a.py")]


def test_thinking_that_was_hidden_leaves_its_place(store: Store) -> None:
    store.say(
        user("go"),
        assistant(
            {"type": "redacted-reasoning", "data": "x"},
            {"type": "reasoning", "text": "", "signature": "y"},
            "Done.",
        ),
    )
    thoughts = [(m.content, m.kind) for m in only(store.read()).messages if m.role == "thinking"]
    assert thoughts == [("", "redacted"), ("", "redacted")]


def test_a_picture_is_an_attachment_with_its_size(store: Store) -> None:
    picture = {"type": "image", "image": "iVBORw0KGgo=", "mimeType": "image/png"}
    store.say(
        {"role": "user", "content": [{"type": "text", "text": "[Image]"}, picture]}, assistant("A chart.")
    )
    (prompt, _) = only(store.read()).messages
    assert (prompt.role, prompt.content) == ("user", "")
    assert prompt.attachments == (Attachment("image", media_type="image/png", size=8),)


def test_the_model_is_the_one_the_answer_names_then_the_last_used(store: Store) -> None:
    named = {
        "type": "reasoning",
        "text": "?",
        "providerOptions": {"cursor": {"modelName": "claude-4-sonnet"}},
    }
    store.meta["lastUsedModel"] = "gpt-4.1"
    store.say(user("go"), assistant(named, "One."), assistant("Two."))
    reading = only(store.read())
    assert [message.model for message in reading.messages] == [
        None,
        "claude-4-sonnet",
        "claude-4-sonnet",
        "gpt-4.1",
    ]
    assert reading.closing.metadata["model_names"] == {
        "claude-4-sonnet": "Claude Sonnet 4",
        "gpt-4.1": "GPT-4.1",
    }


def test_a_model_chosen_by_the_tool_is_unknown(store: Store) -> None:
    store.meta["lastUsedModel"] = "default"
    store.say(user("go"), assistant("Done."))
    assert [message.model for message in only(store.read()).messages] == [None, None]


def turn(store: Store, text: str, *steps: bytes, at: int | None = None, simulated: bool = False) -> bytes:
    stamp = [(25, at)] if at else []
    prompt = store.put(record((1, text), *([(5, 1)] if simulated else []), *stamp))
    return store.put(record((1, record((1, prompt), *((2, store.put(step)) for step in steps)))))


def test_times_come_from_turns_and_what_lies_between_is_marked(store: Store) -> None:
    messages = [
        user("one"),
        assistant("a"),
        assistant(call("c1")),
        result("c1"),
        assistant("b"),
        user("two"),
        assistant("c"),
    ]
    shell = record((2, record((1, record((1, record((1, "ls"))))), (57, "c1"), (59, START + 8000))))
    turns = (turn(store, "one", shell, at=START + 2000), turn(store, "two"))
    timings = (record((1, 30_000), (2, START + 2000)), record((1, 10_000), (2, START + 60_000)))
    store.root(
        *((1, store.put(message)) for message in messages),
        *((8, id) for id in turns),
        *((14, each) for each in timings),
    )
    found = [
        ((m.timestamp - AT).total_seconds(), m.timestamp_source)
        for m in only(store.read()).messages
        if m.timestamp
    ]
    assert found == [
        (2, "stored"),
        (5, "interpolated"),
        (8, "stored"),
        (32, "turn"),
        (60, "turn"),
        (70, "turn"),
    ]


def test_without_turns_times_are_spread_over_the_session(store: Store) -> None:
    store.say(user("one"), assistant("1"), assistant("2"))
    told = store.read(sidecar={"schemaVersion": 1, "updatedAtMs": START + 40_000, "cwd": CWD})
    found = [(m.timestamp, m.timestamp_source) for m in only(told).messages]
    assert found == [(AT + timedelta(seconds=10 * n), "interpolated") for n in (1, 2, 3)]


def test_a_session_without_any_time_says_that_its_start_is_the_files(store: Store) -> None:
    del store.meta["createdAt"]
    store.say(user("one"))
    reading = only(store.read())
    assert [message.timestamp for message in reading.messages] == [None]
    assert reading.closing.created_at_source == "file"


def test_the_typed_text_of_a_turn_replaces_what_could_only_be_guessed(store: Store) -> None:
    wrapped = {"role": "user", "content": "Notes for the model.\n\nfix it"}
    store.root((1, store.put(wrapped)), (1, store.put(assistant("Done."))), (8, turn(store, "fix it")))
    assert said(store.read()) == [("user", "fix it"), ("assistant", "Done.")]


def test_what_the_tool_says_in_the_persons_place_is_marked(store: Store) -> None:
    reminder = {"role": "user", "content": "<system_reminder>A task has finished.</system_reminder>"}
    turns = (turn(store, "go"), turn(store, "A task has finished.", simulated=True))
    store.root(
        *((1, store.put(message)) for message in (user("go"), assistant("1"), reminder)),
        *((8, id) for id in turns),
    )
    last = only(store.read()).messages[-1]
    assert (last.role, last.kind, last.content) == ("user", "synthetic", "A task has finished.")


def test_turns_that_the_messages_no_longer_hold_are_told_from_their_steps(store: Store) -> None:
    thought, answer = record((3, record((1, "hm"), (2, 900)))), record((1, record((1, "First answer."))))
    turns = (turn(store, "lost prompt", thought, answer), turn(store, "kept prompt"))
    store.root(
        (1, store.put(user("kept prompt"))), (1, store.put(assistant("Second."))), *((8, id) for id in turns)
    )
    told = store.read()
    assert said(told) == [
        ("user", "lost prompt"),
        ("thinking", "hm"),
        ("assistant", "First answer."),
        ("user", "kept prompt"),
        ("assistant", "Second."),
    ]
    assert only(told).closing.completeness == "partial"


@pytest.mark.parametrize("field", [8, 2])
def test_a_session_of_turns_only_is_told_from_its_steps(store: Store, field: int) -> None:
    grep = record((2, record((5, record((1, record((1, "foo"))), (2, record((1, "a.py:1"))))), (57, "c1"))))
    answer = record((1, record((1, "Done."))))
    prompt = store.put(record((1, "rename"), (2, "bubble-1")))
    bare = record((1, prompt), (2, store.put(grep)), (2, store.put(answer)))
    store.root((field, store.put(bare if field == 2 else record((1, bare)))))
    told = store.read()
    assert said(told) == [("user", "rename"), ("tool", "Grep: a.py:1"), ("assistant", "Done.")]
    assert told.counts.parsed == 3


def test_a_command_that_the_person_ran_is_kept_with_its_output(store: Store) -> None:
    shell = store.put(record((2, record((1, "git status"), (2, "clean")))))
    store.root((8, shell))
    (message,) = only(store.read()).messages
    assert message.tool is not None
    assert (message.tool.params, message.tool.result) == ({"command": "git status"}, "clean")


def test_subagents_kept_in_the_root_are_sessions_of_their_own(store: Store) -> None:
    child = record((1, store.put(user("look around"))), (1, store.put(assistant("Nothing."))))
    state = record((1, child), (2, START), (4, "explore"))
    newer = record((1, store.put(user("count"))), (1, store.put(assistant("Two."))))
    store.root(
        (1, store.put(user("explore"))),
        (16, record((1, "agent-0123456789abcdef-first"), (2, state))),
        (31, record((1, "agent-0123456789abcdef-second"), (2, store.put(newer)))),
    )
    told = store.read()
    parent, *children = told.sessions
    assert [(child.opening.id, child.opening.parent_id) for child in children] == [
        ("agent-0123456789abcdef-first", store.id),
        ("agent-0123456789abcdef-second", store.id),
    ]
    assert [[m.content for m in child.messages] for child in children] == [
        ["look around", "Nothing."],
        ["count", "Two."],
    ]
    assert {m.agent_id for m in children[0].messages} == {children[0].opening.id}
    assert [agent.agent_id for agent in parent.closing.agents] == [child.opening.id for child in children]
    assert children[0].closing.agents[0].kind == "explore"


def test_a_subagents_own_store_names_its_parent_and_call(store: Store) -> None:
    store.meta["subagentInfo"] = {"parentAgentId": "parent-id", "toolCallId": "c9", "typeName": "explore"}
    told = store.say(user("count"), assistant("Two.")).read()
    (reading,) = told.sessions
    assert (reading.opening.agent_id, reading.opening.parent_id) == (store.id, "parent-id")
    assert [(link.agent_id, link.tool_call_id) for link in told.links] == [(store.id, "c9")]
    assert reading.closing.agents[0].prompt == "count"


def test_what_the_root_says_besides_is_kept_without_the_content_of_files(store: Store) -> None:
    secret = store.put(b"the content of a file")
    todo = store.put(record((1, "t1"), (2, "write tests"), (3, 2)))
    store.root(
        (1, store.put(user("go"))),
        (3, todo),
        (7, store.put(record((1, "The plan.")))),
        (10, 3),
        (12, encode_map_entry("/home/dev/shop/a.py", secret)),
        (18, "/home/dev/shop/a.py"),
        (19, "main"),
        (21, record((1, CWD), (2, "main"))),
        (27, "Europe/Paris"),
    )
    closing = only(store.read()).closing
    assert closing.metadata["todos"] == [{"content": "write tests", "status": "in_progress"}]
    assert (closing.metadata["plan"], closing.metadata["mode"], closing.git_branch) == (
        "The plan.",
        "plan",
        "main",
    )
    assert closing.metadata["tracked_repos"] == [{"path": CWD, "branch": "main"}]
    assert [file.path for file in closing.tracked_files] == ["/home/dev/shop/a.py"]
    assert "the content" not in repr(closing)


def test_the_folder_is_the_one_whose_hash_names_the_store(store: Store) -> None:
    store.root((1, store.put(user("go"))), (9, "file:///somewhere/else"), (9, f"file://{CWD}"))
    workspace = only(store.read()).closing.workspace
    assert workspace is not None
    assert (workspace.path, "verified" in workspace.evidence) == (CWD, True)


def test_the_folder_may_be_known_from_the_context_alone(store: Store) -> None:
    info = {"role": "user", "content": f"<user_info>\nOS: linux\nWorkspace Path: {CWD}\n</user_info>"}
    workspace = only(store.say(info, user("go")).read()).closing.workspace
    assert workspace is not None
    assert workspace.path == CWD


def test_a_session_that_names_no_folder_has_none(store: Store) -> None:
    assert only(store.say(user("go")).read()).closing.workspace is None


@pytest.mark.parametrize(
    ("name", "sidecar", "title"),
    [("Rename foo", "Other", "Rename foo"), ("New Agent", "Other", "Other"), ("New Agent", None, None)],
)
def test_the_title_is_the_name_unless_it_is_the_default(
    store: Store, name: str, sidecar: str | None, title: str | None
) -> None:
    store.meta["name"] = name
    told = store.say(user("go")).read(sidecar={"schemaVersion": 1, "title": sidecar})
    assert only(told).closing.title == title


def test_a_key_in_the_metadata_is_never_read(store: Store) -> None:
    store.meta["blobEncryptionKey"] = "c2VjcmV0LWtleQ=="
    told = store.say(user("go")).read(sidecar={"schemaVersion": 1, "authToken": "c2VjcmV0LWtleQ=="})
    assert "c2VjcmV0" not in repr(told)
    assert told.counts.unknown == {}


def test_what_nobody_knows_is_said_by_name(store: Store) -> None:
    store.meta["flavour"] = "x"
    message = assistant("Hello.", {"type": "hologram", "data": "?"})
    store.root(
        (1, store.put(user("go"))),
        (1, store.put(message)),
        (1, store.put({"role": "oracle", "content": "Yes."})),
        (77, "?"),
    )
    told = store.read(sidecar={"schemaVersion": 2})
    assert told.counts.unknown == {
        "meta key flavour": 1,
        "meta.json schemaVersion 2": 1,
        "part type hologram": 1,
        "role oracle": 1,
        "root field 77": 1,
    }
    assert said(told) == [("user", "go"), ("assistant", "Hello."), ("system", "Yes.")]
    assert told.problems == ()


def test_a_record_of_which_nothing_is_understood_is_a_problem(store: Store) -> None:
    told = store.say(user("go"), assistant({"type": "hologram", "data": "?"})).read()
    assert (len(told.problems), told.counts.problems) == (1, 1)


@pytest.mark.parametrize("how", ["hex", "upper", "plain", "rows", "odd"])
def test_metadata_is_read_however_it_is_spelled(store: Store, how: str) -> None:
    store.say(user("go"))
    text = json.dumps(store.meta | {"blobEncryptionKey": "c2VjcmV0LWtleQ=="})
    rows = {
        "hex": [("0", text.encode().hex())],
        "upper": [("0", text.encode().hex().upper())],
        "plain": [("0", text)],
        "rows": [
            (key, value if isinstance(value, str) else json.dumps(value)) for key, value in store.meta.items()
        ],
        "odd": [("0", text.encode().hex()[:-1])],
    }
    told = store.read(meta=rows[how])
    reading = only(told)
    assert (reading.closing.title, reading.closing.created_at) == ("Rename foo", AT)
    assert said(told) == [("user", "go")]
    assert len(told.problems) == (how == "odd")
    assert "c2VjcmV0" not in repr(told)


def test_a_store_with_nothing_in_it_is_a_draft(store: Store) -> None:
    reading = only(store.read())
    assert (reading.messages, reading.closing.visibility) == ((), "draft")


def test_reading_twice_gives_the_same(store: Store) -> None:
    store.say(user("go"), assistant("Done.")).write()
    root = store.folder.parent.parent.parent
    assert read_one(root) == read_one(root)
