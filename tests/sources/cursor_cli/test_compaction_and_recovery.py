"""Compactions, recovered roots, turns without messages, and subagents."""

import json
from pathlib import Path

import pytest

from backscroll.testing.protobuf import encode_map_entry
from backscroll.testing.protobuf import encode_message as record

from .store_builder import (
    START,
    Store,
    UnitContent,
    assistant,
    call,
    main_session,
    read_one,
    result,
    roles_and_texts,
    user,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def put_turns(store: Store, turns: int) -> list[bytes]:
    """Add questions and answers. Return the ids of their blobs."""
    return [store.put(message) for n in range(turns) for message in (user(f"q{n}"), assistant(f"a{n}"))]


def texts(content: UnitContent) -> list[str]:
    return [text for role, text in roles_and_texts(content) if role in ("user", "assistant")]


def expected_texts(turns: int) -> list[str]:
    return [f"{letter}{n}" for n in range(turns) for letter in "qa"]


def archive(store: Store, entries: list[bytes], summary: bytes) -> bytes:
    return store.put(record(*((1, id) for id in entries), (2, "In short."), (4, summary)))


def turn(store: Store, text: str, *steps: bytes) -> bytes:
    typed = store.put(record((1, text), (2, "some-bubble")))
    return store.put(record((1, record((1, typed), *((2, step) for step in steps)))))


def test_the_archive_of_an_older_version_comes_before_newer_archives(store: Store) -> None:
    ids = put_turns(store, 6)
    older = archive(store, ids[:4], store.put(user("summary 1")))
    newer = archive(store, ids[4:8], store.put(user("summary 2")))
    store.root(*((1, id) for id in ids[8:]), (11, older), (13, newer))
    assert texts(store.read()) == expected_texts(6)


def test_messages_archived_and_kept_by_a_compaction_appear_once_after_long_context(store: Store) -> None:
    system = store.put({"role": "system", "content": "Be good."})
    context = [store.put({"role": "user", "content": f"<rules>{n}</rules>"}) for n in range(6)]
    summary = store.put({"role": "user", "content": "What happened."})
    ids = put_turns(store, 6)
    archived = archive(store, [system, *context, *ids[:8]], summary)
    store.root(*((1, id) for id in [system, *context, summary, *ids[6:]]), (13, archived))
    content = store.read()
    assert texts(content) == expected_texts(6)
    assert [text for role, text in roles_and_texts(content) if role == "system"] == [
        *(f"<rules>{n}</rules>" for n in range(6)),
        "In short.",
    ]


def test_a_message_marked_as_a_summary_is_not_a_prompt(store: Store) -> None:
    marked = {"role": "user", "content": "So far.", "providerOptions": {"cursor": {"isSummary": True}}}
    messages = main_session(store.with_messages(user("go"), marked, assistant("on")).read()).messages
    assert [(message.role, message.kind) for message in messages][1] == ("system", "compaction")


def test_a_message_of_32_bytes_in_the_root_is_not_a_blob_id(store: Store) -> None:
    message = b'{"role":"user","content":"hell"}'
    assert len(message) == 32
    store.root((1, message))
    assert roles_and_texts(store.read()) == [("user", "hell")]


def test_a_turn_with_a_different_text_than_its_prompt_is_not_repeated(store: Store) -> None:
    answer = "Everything was reviewed, and it looks right."
    step = store.put(record((1, record((1, answer)))))
    store.root(
        *((1, store.put(message)) for message in (user("the command, written out"), assistant(answer))),
        *((1, store.put(message)) for message in (user("thanks"), assistant("Sure."))),
        (8, turn(store, "/review", step)),
    )
    content = store.read()
    assert texts(content) == ["the command, written out", answer, "thanks", "Sure."]
    assert main_session(content).closing.completeness == "complete"


def test_the_remaining_messages_of_a_partly_missing_turn_are_not_repeated(store: Store) -> None:
    early = store.put(record((1, record((1, "Looking around first.")))))
    late = store.put(record((2, record((1, record((1, record((1, "make"))))), (57, "c")))))
    store.root(
        *((1, store.put(message)) for message in (assistant(call("c", command="make")), result("c"))),
        *((1, store.put(message)) for message in (user("next"), assistant("Yes."))),
        (8, turn(store, "build it", early, late)),
        (8, turn(store, "next")),
    )
    assert sorted(roles_and_texts(store.read())) == sorted(
        [
            ("user", "build it"),
            ("assistant", "Looking around first."),
            ("tool", "Shell: ok"),
            ("user", "next"),
            ("assistant", "Yes."),
        ]
    )


def test_a_missing_turn_does_not_shift_the_times_of_the_others(store: Store) -> None:
    ids = put_turns(store, 3)
    turns = [turn(store, f"q{n}") for n in range(3)]
    timings = [record((1, 1000), (2, START + n * 60_000)) for n in range(3)]
    store.root(*((1, id) for id in ids), *((8, id) for id in turns), *((14, timing) for timing in timings))
    del store.blobs[turns[0].hex()]
    at = {message.content: message.timestamp for message in main_session(store.read()).messages}
    last = at["q2"]
    assert last is not None
    assert last.timestamp() * 1000 == START + 120_000


def test_an_empty_root_is_replaced_if_the_store_has_messages(store: Store) -> None:
    ids = put_turns(store, 2)
    store.put(record(*((1, id) for id in ids)))
    store.root()
    content = store.read()
    assert texts(content) == expected_texts(2)
    assert main_session(content).closing.completeness == "partial"


def test_messages_of_nested_links_are_read_in_order(store: Store) -> None:
    ids = put_turns(store, 4)
    inner = store.put(record(*((1, id) for id in ids[2:4])))
    middle = store.put(record((1, ids[1]), (1, inner), (1, ids[4])))
    store.root((1, ids[0]), (1, middle), *((1, id) for id in ids[5:]))
    content = store.read()
    assert texts(content) == expected_texts(4)
    assert (content.problems, main_session(content).closing.completeness) == ((), "complete")
    assert content.counts.kinds["blob (link)"] == 2


def test_links_that_end_nowhere_are_reported(store: Store) -> None:
    ids = put_turns(store, 2)
    gone = store.put({"role": "user", "content": "gone"})
    link = store.put(record((1, ids[0]), (1, gone)))
    del store.blobs[gone.hex()]
    store.root((1, link), *((1, id) for id in ids[1:]))
    content = store.read()
    assert texts(content) == expected_texts(2)
    assert [problem.code for problem in content.problems] == ["missing-record"]


def test_reading_links_that_contain_themselves_ends(store: Store) -> None:
    ids = put_turns(store, 1)
    loop = bytes(32)
    store.blobs[loop.hex()] = record((1, ids[0]), (1, loop))  # its id is not its hash
    store.root((1, loop), (1, ids[1]))
    assert texts(store.read()) == expected_texts(1)


def test_links_deeper_than_the_limit_are_a_problem(store: Store) -> None:
    link = store.put(user("deep"))
    for _ in range(40):
        link = store.put(record((1, link)))
    store.root((1, link), (1, store.put(assistant("kept"))))
    content = store.read()
    assert texts(content) == ["kept"]
    assert [problem.code for problem in content.problems] == ["unknown-type"]


@pytest.mark.parametrize("is_nested", [False, True])
def test_json_after_the_references_is_read(store: Store, is_nested: bool) -> None:
    ids = put_turns(store, 1)
    data = record(*((1, id) for id in ids)) + json.dumps(assistant("and more")).encode()
    if is_nested:
        store.root((1, store.put(data)))
    else:
        store.meta["latestRootBlobId"] = store.put(data).hex()
    content = store.read()
    assert texts(content) == [*expected_texts(1), "and more"]
    assert (content.problems, main_session(content).closing.completeness) == ((), "complete")


def test_a_message_that_is_nested_too_deeply_keeps_the_rest(store: Store) -> None:
    deep = json.dumps(assistant("deep", call("c1", v="@"))).replace('"@"', "[" * 2000 + "]" * 2000)
    store.root((1, store.put(user("q"))), (1, store.put(deep.encode())))
    content = store.read()
    assert texts(content) == ["q", "deep"]
    assert [problem.code for problem in content.problems] == ["nested-too-deeply"]
    assert main_session(content).closing.completeness == "partial"


def test_a_session_without_messages_is_a_draft(store: Store) -> None:
    store.root((9, "file:///home/dev/shop"))
    content = store.read()
    assert (main_session(content).closing.visibility, content.problems) == ("draft", ())


def test_archived_messages_count_when_a_missing_root_is_recovered(store: Store) -> None:
    ids = put_turns(store, 6)
    store.put(record(*((1, id) for id in ids[:10])))
    summary = store.put(user("what happened"))
    archived = archive(store, ids[:10], summary)
    store.put(record((1, summary), *((1, id) for id in ids[10:]), (13, archived)))
    store.meta["latestRootBlobId"] = ""
    assert texts(store.read()) == expected_texts(6)


def test_a_stored_json_file_is_not_a_message(store: Store) -> None:
    store.put({"name": "shop", "dependencies": {}})
    put_turns(store, 1)
    store.meta["latestRootBlobId"] = ""
    content = store.read()
    assert texts(content) == ["q0", "a0"]
    assert (content.counts.problems, content.counts.unknown) == (0, {})


def test_a_subagent_that_is_stored_twice_is_read_once(store: Store) -> None:
    root = record((1, store.put(user("look"))), (1, store.put(assistant("Nothing."))))
    state = record((1, root), (2, START), (3, START + 5000), (4, "explore"))
    key = "5ec0ffee-0000-4000-8000-0000000000cc"
    by_state, by_id = encode_map_entry(key, state), encode_map_entry(key, store.put(state))
    store.root((1, store.put(user("go"))), (16, by_state), (31, by_id))
    content = store.read()
    (child,) = [session for session in content.sessions if session.opening.agent_id is not None]
    assert [message.content for message in child.messages] == ["look", "Nothing."]
    assert child.closing.updated_at is not None
    assert child.closing.updated_at.timestamp() * 1000 == START + 5000


def test_reading_subagents_that_contain_themselves_ends(store: Store) -> None:
    id = bytes(32)
    entries = [encode_map_entry(f"a-subagent-of-itself-{n}", id) for n in range(10)]
    store.blobs[id.hex()] = record((1, store.put(user("deeper"))), *((31, entry) for entry in entries))
    store.root((1, store.put(user("go"))), *((31, entry) for entry in entries))
    assert len(store.read().sessions) == 11


def test_binary_ids_refer_to_the_same_blobs(store: Store) -> None:
    store.with_messages(user("go"), assistant("Gone."))
    store.write()
    store.run("update blobs set id = cast(id as blob)")
    content = read_one(store.folder.parent.parent.parent)
    assert (texts(content), content.problems) == (["go", "Gone."], ())


def test_a_subagent_of_a_subagent_belongs_to_the_root_session(store: Store) -> None:
    store.meta["subagentInfo"] = {
        "parentAgentId": "child",
        "rootParentAgentId": "session",
        "typeName": "explore",
    }
    (session,) = store.with_messages(user("look")).read().sessions
    (agent,) = session.closing.agents
    assert (session.opening.parent_id, agent.parent_session_id, agent.parent_agent_id) == (
        "session",
        "session",
        "child",
    )


def test_a_prompt_with_only_an_image_is_read_from_its_turn(store: Store) -> None:
    typed = store.put(record((2, "some-bubble"), (3, record((1, "a picture")))))
    step = store.put(record((1, record((1, "A chart.")))))
    store.root((8, store.put(record((1, record((1, typed), (2, step)))))))
    content = store.read()
    assert roles_and_texts(content) == [("user", ""), ("assistant", "A chart.")]
    assert len(main_session(content).messages[0].attachments) == 1


def test_a_step_of_an_unknown_type_is_counted(store: Store) -> None:
    step = store.put(record((9, record((1, "later")))))
    store.root((8, turn(store, "go", step)))
    assert store.read().counts.unknown == {"step field 9": 1}


def test_compacted_messages_come_before_those_that_were_kept(store: Store) -> None:
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
    content = store.read()
    assert roles_and_texts(content) == [
        ("user", "one"),
        ("assistant", "1"),
        ("system", "Summary of one."),
        ("user", "two"),
        ("assistant", "2"),
        ("system", "Summary of both."),
        ("user", "three"),
        ("assistant", "3"),
    ]
    kinds = [message.kind for message in main_session(content).messages if message.role == "system"]
    assert kinds == ["compaction", "compaction"]
    assert content.problems == ()


def test_messages_that_a_compaction_archived_and_kept_appear_once(store: Store) -> None:
    one, two, three = (store.put(message) for message in (user("one"), assistant("1"), user("two")))
    archive = store.put(record((1, one), (1, two), (1, three)))
    store.root((1, two), (1, three), (1, store.put(assistant("2"))), (13, archive))
    assert roles_and_texts(store.read()) == [
        ("user", "one"),
        ("assistant", "1"),
        ("user", "two"),
        ("assistant", "2"),
    ]


def test_subagents_in_the_root_are_separate_sessions(store: Store) -> None:
    child = record((1, store.put(user("look around"))), (1, store.put(assistant("Nothing."))))
    state = record((1, child), (2, START), (4, "explore"))
    newer = record((1, store.put(user("count"))), (1, store.put(assistant("Two."))))
    store.root(
        (1, store.put(user("explore"))),
        (16, record((1, "agent-0123456789abcdef-first"), (2, state))),
        (31, record((1, "agent-0123456789abcdef-second"), (2, store.put(newer)))),
    )
    content = store.read()
    parent, *children = content.sessions
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


def test_the_store_of_a_subagent_names_its_parent_and_call(store: Store) -> None:
    store.meta["subagentInfo"] = {"parentAgentId": "parent-id", "toolCallId": "c9", "typeName": "explore"}
    content = store.with_messages(user("count"), assistant("Two.")).read()
    (session,) = content.sessions
    assert (session.opening.agent_id, session.opening.parent_id) == (store.id, "parent-id")
    assert [(link.agent_id, link.tool_call_id) for link in content.links] == [(store.id, "c9")]
    assert session.closing.agents[0].prompt == "count"


LONG_SUMMARY = "The totals of the basket were rounded twice."


@pytest.mark.parametrize("state", ["unnamed", "unlisted", "missing"])
def test_a_summary_without_its_message_follows_the_messages_that_it_replaces(
    store: Store, state: str
) -> None:
    ids = put_turns(store, 3)
    summary = store.put(user("What happened."))
    del store.blobs[summary.hex()]
    named = [(4, summary)] if state != "unnamed" else []
    archived = store.put(record(*((1, id) for id in ids[:4]), (2, "In short."), *named))
    listed = [(1, summary)] if state == "missing" else []
    store.root(*listed, *((1, id) for id in ids[2:]), (13, archived))
    content = store.read()
    assert texts(content) == expected_texts(3)
    assert roles_and_texts(content)[4] == ("system", "In short.")
    assert main_session(content).messages[4].kind == "compaction"
    assert content.counts.kinds["blob (archive)"] == 1


def test_a_summary_in_a_message_that_the_archive_does_not_name_appears_once(store: Store) -> None:
    ids = put_turns(store, 3)
    archived = store.put(record(*((1, id) for id in ids[:4]), (2, LONG_SUMMARY)))
    summary = store.put({"role": "user", "content": f"<summary>{LONG_SUMMARY}</summary>"})
    store.root((1, summary), *((1, id) for id in ids[4:]), (13, archived))
    content = store.read()
    assert texts(content) == expected_texts(3)
    assert [(m.kind, m.content) for m in main_session(content).messages if m.role == "system"] == [
        ("compaction", LONG_SUMMARY)
    ]


def test_a_summary_precedes_turns_without_messages(store: Store) -> None:
    archived = store.put(record((2, "In short.")))
    store.root((8, turn(store, "on")), (13, archived))
    content = store.read()
    assert roles_and_texts(content) == [("system", "In short."), ("user", "on")]
    assert main_session(content).closing.completeness == "complete"


def test_the_summaries_of_several_compactions_are_in_order(store: Store) -> None:
    ids = put_turns(store, 3)
    archives = [
        store.put(record(*((1, id) for id in ids[start : start + 2]), (2, f"Summary {start}.")))
        for start in (0, 2)
    ]
    store.root(*((1, id) for id in ids[4:]), *((13, archive) for archive in archives))
    assert [text for _, text in roles_and_texts(store.read())] == [
        "q0",
        "a0",
        "Summary 0.",
        "q1",
        "a1",
        "Summary 2.",
        "q2",
        "a2",
    ]
