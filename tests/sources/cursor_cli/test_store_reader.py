"""Sessions in ``store.db``: everything the root refers to, in order, once."""

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from backscroll.model.message import Attachment
from backscroll.testing.protobuf import encode_map_entry
from backscroll.testing.protobuf import encode_message as record

from .store_builder import (
    CWD,
    START,
    Store,
    assistant,
    call,
    main_session,
    read_one,
    result,
    roles_and_texts,
    user,
)

AT = datetime.fromtimestamp(START / 1000, UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_texts_thinking_and_tool_calls_are_read_in_order(store: Store) -> None:
    store.with_messages(
        {"role": "system", "content": "You are an assistant."},
        {"role": "user", "content": "<user_info>\nOS: linux\n</user_info>"},
        user("rename foo"),
        assistant({"type": "reasoning", "text": "Where is it?"}, "Looking.", call("c1", "Read", path="a.py")),
        result("c1", "def foo(): ...", "Read"),
        assistant("Done."),
    )
    content = store.read()
    assert roles_and_texts(content) == [
        ("system", "<user_info>\nOS: linux\n</user_info>"),
        ("user", "rename foo"),
        ("thinking", "Where is it?"),
        ("assistant", "Looking."),
        ("tool", "Read: def foo(): ..."),
        ("assistant", "Done."),
    ]
    assert content.counts.kinds == {
        "meta": 1,
        "blob (system prompt)": 1,
        "blob (message)": 5,
        "blob (root)": 1,
    }
    assert (content.counts.parsed, content.counts.ignored, content.counts.problems) == (5, 3, 0)


def test_message_ids_are_blob_ids_because_stored_ids_are_not_unique(store: Store) -> None:
    store.with_messages(
        user("go on"),
        assistant("Done."),
        user("go on"),
        assistant({"type": "reasoning", "text": "?"}, "Done."),
    )
    ids = [message.id for message in main_session(store.read()).messages]
    prompt = sha256(json.dumps(user("go on")).encode()).hexdigest()
    assert ids[0] == prompt
    assert ids[2] == f"{prompt}#2"
    assert ids[4] == f"{ids[3]}.1"
    assert len(set(ids)) == 5


def test_only_the_latest_root_is_used(store: Store) -> None:
    first, kept = store.put(user("first try")), store.put(user("second try"))
    store.root((1, first), (1, store.put(assistant("abandoned"))))
    store.root((1, kept), (1, store.put(assistant("kept"))))
    content = store.read()
    assert roles_and_texts(content) == [("user", "second try"), ("assistant", "kept")]
    assert content.counts.kinds["blob (older state)"] == 3


def test_a_message_in_the_root_is_read_like_one_in_a_blob(store: Store) -> None:
    store.root((1, json.dumps(user("inline"))), (1, store.put(assistant("Yes."))))
    assert roles_and_texts(store.read()) == [("user", "inline"), ("assistant", "Yes.")]


def test_an_unfinished_step_is_read_once(store: Store) -> None:
    prompt, step = store.put(user("run it")), assistant("Running.", call("c1", command="make"))
    store.root((1, prompt), (4, json.dumps(step)))
    assert roles_and_texts(store.read()) == [
        ("user", "run it"),
        ("assistant", "Running."),
        ("tool", "Shell: None"),
    ]
    store.root((1, prompt), (1, store.put(step)), (4, json.dumps(step)))
    assert roles_and_texts(store.read()) == [
        ("user", "run it"),
        ("assistant", "Running."),
        ("tool", "Shell: None"),
    ]


def test_redacted_thinking_is_an_empty_message(store: Store) -> None:
    store.with_messages(
        user("go"),
        assistant(
            {"type": "redacted-reasoning", "data": "x"},
            {"type": "reasoning", "text": "", "signature": "y"},
            "Done.",
        ),
    )
    thoughts = [(m.content, m.kind) for m in main_session(store.read()).messages if m.role == "thinking"]
    assert thoughts == [("", "redacted"), ("", "redacted")]


def test_an_image_is_an_attachment_with_its_size(store: Store) -> None:
    picture = {"type": "image", "image": "iVBORw0KGgo=", "mimeType": "image/png"}
    store.with_messages(
        {"role": "user", "content": [{"type": "text", "text": "[Image]"}, picture]}, assistant("A chart.")
    )
    (prompt, _) = main_session(store.read()).messages
    assert (prompt.role, prompt.content) == ("user", "")
    assert prompt.attachments == (Attachment("image", media_type="image/png", size=8),)


def test_the_model_is_the_one_named_in_the_answer_else_the_last_used(store: Store) -> None:
    named = {
        "type": "reasoning",
        "text": "?",
        "providerOptions": {"cursor": {"modelName": "claude-4-sonnet"}},
    }
    store.meta["lastUsedModel"] = "gpt-4.1"
    store.with_messages(user("go"), assistant(named, "One."), assistant("Two."))
    session = main_session(store.read())
    assert [message.model for message in session.messages] == [
        None,
        "claude-4-sonnet",
        "claude-4-sonnet",
        "gpt-4.1",
    ]
    assert session.closing.metadata["model_names"] == {
        "claude-4-sonnet": "Claude Sonnet 4",
        "gpt-4.1": "GPT-4.1",
    }


def test_an_automatically_chosen_model_is_unknown(store: Store) -> None:
    store.meta["lastUsedModel"] = "default"
    store.with_messages(user("go"), assistant("Done."))
    assert [message.model for message in main_session(store.read()).messages] == [None, None]


def turn(store: Store, text: str, *steps: bytes, at: int | None = None, simulated: bool = False) -> bytes:
    stamp = [(25, at)] if at else []
    prompt = store.put(record((1, text), *([(5, 1)] if simulated else []), *stamp))
    return store.put(record((1, record((1, prompt), *((2, store.put(step)) for step in steps)))))


def test_times_come_from_turns_and_calls_and_others_are_interpolated(store: Store) -> None:
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
        for m in main_session(store.read()).messages
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


def test_without_turns_times_are_interpolated_over_the_session(store: Store) -> None:
    store.with_messages(user("one"), assistant("1"), assistant("2"))
    content = store.read(sidecar={"schemaVersion": 1, "updatedAtMs": START + 40_000, "cwd": CWD})
    found = [(m.timestamp, m.timestamp_source) for m in main_session(content).messages]
    assert found == [(AT + timedelta(seconds=10 * n), "interpolated") for n in (1, 2, 3)]


def test_a_session_without_times_starts_at_the_time_of_its_file(store: Store) -> None:
    del store.meta["createdAt"]
    store.with_messages(user("one"))
    session = main_session(store.read())
    assert [message.timestamp for message in session.messages] == [None]
    assert session.closing.created_at_source == "file"


def test_the_typed_text_of_a_turn_replaces_an_untagged_prompt(store: Store) -> None:
    wrapped = {"role": "user", "content": "Notes for the model.\n\nfix it"}
    store.root((1, store.put(wrapped)), (1, store.put(assistant("Done."))), (8, turn(store, "fix it")))
    assert roles_and_texts(store.read()) == [("user", "fix it"), ("assistant", "Done.")]


def test_a_prompt_written_by_the_tool_is_synthetic(store: Store) -> None:
    reminder = {"role": "user", "content": "<system_reminder>A task has finished.</system_reminder>"}
    turns = (turn(store, "go"), turn(store, "A task has finished.", simulated=True))
    store.root(
        *((1, store.put(message)) for message in (user("go"), assistant("1"), reminder)),
        *((8, id) for id in turns),
    )
    last = main_session(store.read()).messages[-1]
    assert (last.role, last.kind, last.content) == ("user", "synthetic", "A task has finished.")


def test_turns_without_messages_are_read_from_their_steps(store: Store) -> None:
    thought, answer = record((3, record((1, "hm"), (2, 900)))), record((1, record((1, "First answer."))))
    turns = (turn(store, "lost prompt", thought, answer), turn(store, "kept prompt"))
    store.root(
        (1, store.put(user("kept prompt"))), (1, store.put(assistant("Second."))), *((8, id) for id in turns)
    )
    content = store.read()
    assert roles_and_texts(content) == [
        ("user", "lost prompt"),
        ("thinking", "hm"),
        ("assistant", "First answer."),
        ("user", "kept prompt"),
        ("assistant", "Second."),
    ]
    assert main_session(content).closing.completeness == "partial"


@pytest.mark.parametrize("field", [8, 2])
def test_a_session_with_only_turns_is_read_from_its_steps(store: Store, field: int) -> None:
    grep = record((2, record((5, record((1, record((1, "foo"))), (2, record((1, "a.py:1"))))), (57, "c1"))))
    answer = record((1, record((1, "Done."))))
    prompt = store.put(record((1, "rename"), (2, "bubble-1")))
    bare = record((1, prompt), (2, store.put(grep)), (2, store.put(answer)))
    store.root((field, store.put(bare if field == 2 else record((1, bare)))))
    store.meta["lastUsedModel"] = "gpt-4.1"
    content = store.read()
    assert roles_and_texts(content) == [("user", "rename"), ("tool", "Grep: a.py:1"), ("assistant", "Done.")]
    assert content.counts.parsed == 3
    session = main_session(content)
    assert [message.model for message in session.messages] == [None, "gpt-4.1", "gpt-4.1"]
    assert session.closing.metadata["model_names"] == {"gpt-4.1": "GPT-4.1"}


def test_a_command_that_the_user_ran_is_kept_with_its_output(store: Store) -> None:
    shell = store.put(record((2, record((1, "git status"), (2, "clean")))))
    store.root((8, shell))
    (message,) = main_session(store.read()).messages
    assert message.tool is not None
    assert (message.tool.params, message.tool.result) == ({"command": "git status"}, "clean")


def test_other_root_fields_are_kept_without_the_content_of_files(store: Store) -> None:
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
    closing = main_session(store.read()).closing
    assert closing.metadata["todos"] == [{"content": "write tests", "status": "in_progress"}]
    assert (closing.metadata["plan"], closing.metadata["mode"], closing.git_branch) == (
        "The plan.",
        "plan",
        "main",
    )
    assert closing.metadata["tracked_repos"] == [{"path": CWD, "branch": "main"}]
    assert [file.path for file in closing.tracked_files] == ["/home/dev/shop/a.py"]
    assert "the content" not in repr(closing)


def test_the_workspace_is_the_folder_that_matches_the_hash(store: Store) -> None:
    store.root((1, store.put(user("go"))), (9, "file:///somewhere/else"), (9, f"file://{CWD}"))
    workspace = main_session(store.read()).closing.workspace
    assert workspace is not None
    assert (workspace.path, "verified" in workspace.evidence) == (CWD, True)


def test_the_workspace_can_come_from_the_context(store: Store) -> None:
    info = {"role": "user", "content": f"<user_info>\nOS: linux\nWorkspace Path: {CWD}\n</user_info>"}
    workspace = main_session(store.with_messages(info, user("go")).read()).closing.workspace
    assert workspace is not None
    assert workspace.path == CWD


def test_a_session_without_a_folder_has_no_workspace(store: Store) -> None:
    assert main_session(store.with_messages(user("go")).read()).closing.workspace is None


@pytest.mark.parametrize(
    ("name", "sidecar", "title"),
    [("Rename foo", "Other", "Rename foo"), ("New Agent", "Other", "Other"), ("New Agent", None, None)],
)
def test_the_title_is_the_name_unless_it_is_the_default(
    store: Store, name: str, sidecar: str | None, title: str | None
) -> None:
    store.meta["name"] = name
    content = store.with_messages(user("go")).read(sidecar={"schemaVersion": 1, "title": sidecar})
    assert main_session(content).closing.title == title


def test_secrets_in_the_metadata_are_never_read(store: Store) -> None:
    store.meta["blobEncryptionKey"] = "c2VjcmV0LWtleQ=="
    content = store.with_messages(user("go")).read(
        sidecar={"schemaVersion": 1, "authToken": "c2VjcmV0LWtleQ=="}
    )
    assert "c2VjcmV0" not in repr(content)
    assert content.counts.unknown == {}


def test_unknown_fields_and_types_are_counted_by_name(store: Store) -> None:
    store.meta["flavour"] = "x"
    message = assistant("Hello.", {"type": "hologram", "data": "?"})
    store.root(
        (1, store.put(user("go"))),
        (1, store.put(message)),
        (1, store.put({"role": "oracle", "content": "Yes."})),
        (77, "?"),
    )
    content = store.read(sidecar={"schemaVersion": 2})
    assert content.counts.unknown == {
        "meta key flavour": 1,
        "meta.json schemaVersion 2": 1,
        "part type hologram": 1,
        "role oracle": 1,
        "root field 77": 1,
    }
    assert roles_and_texts(content) == [("user", "go"), ("assistant", "Hello."), ("system", "Yes.")]
    assert content.problems == ()


def test_a_record_without_recognized_content_is_a_problem(store: Store) -> None:
    content = store.with_messages(user("go"), assistant({"type": "hologram", "data": "?"})).read()
    assert (len(content.problems), content.counts.problems) == (1, 1)


@pytest.mark.parametrize("encoding", ["hex", "upper", "plain", "rows", "odd"])
def test_metadata_is_read_in_every_encoding(store: Store, encoding: str) -> None:
    store.with_messages(user("go"))
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
    content = store.read(meta=rows[encoding])
    session = main_session(content)
    assert (session.closing.title, session.closing.created_at) == ("Rename foo", AT)
    assert roles_and_texts(content) == [("user", "go")]
    assert len(content.problems) == (encoding == "odd")
    assert "c2VjcmV0" not in repr(content)


def test_an_empty_store_is_a_draft(store: Store) -> None:
    session = main_session(store.read())
    assert (session.messages, session.closing.visibility) == ((), "draft")


def test_reading_twice_gives_the_same_content(store: Store) -> None:
    store.with_messages(user("go"), assistant("Done.")).write()
    root = store.folder.parent.parent.parent
    assert read_one(root) == read_one(root)
