"""What a session went through: compactions, rewinds, lost pointers, subagents."""

from pathlib import Path

import pytest

from backscroll.testing.protobuf import encode_map_entry
from backscroll.testing.protobuf import encode_message as record

from .reading import START, Store, UnitContent, assistant, call, only, read_one, result, said, user


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def talk(store: Store, turns: int) -> list[bytes]:
    """So many questions and answers, kept as blobs."""
    return [store.put(one) for n in range(turns) for one in (user(f"q{n}"), assistant(f"a{n}"))]


def spoken(told: UnitContent) -> list[str]:
    return [text for role, text in said(told) if role in ("user", "assistant")]


def in_order(turns: int) -> list[str]:
    return [f"{letter}{n}" for n in range(turns) for letter in "qa"]


def archive(store: Store, entries: list[bytes], summary: bytes) -> bytes:
    return store.put(record(*((1, id) for id in entries), (2, "In short."), (4, summary)))


def turn(store: Store, text: str, *steps: bytes) -> bytes:
    typed = store.put(record((1, text), (2, "some-bubble")))
    return store.put(record((1, record((1, typed), *((2, step) for step in steps)))))


def test_the_archive_of_an_older_version_comes_before_those_of_newer_ones(store: Store) -> None:
    ids = talk(store, 6)
    older = archive(store, ids[:4], store.put(user("summary 1")))
    newer = archive(store, ids[4:8], store.put(user("summary 2")))
    store.root(*((1, id) for id in ids[8:]), (11, older), (13, newer))
    assert spoken(store.read()) == in_order(6)


def test_what_a_compaction_archived_and_left_is_told_once_however_much_stands_before_it(store: Store) -> None:
    system = store.put({"role": "system", "content": "Be good."})
    context = [store.put({"role": "user", "content": f"<rules>{n}</rules>"}) for n in range(6)]
    summary = store.put({"role": "user", "content": "What happened."})
    ids = talk(store, 6)
    taken = archive(store, [system, *context, *ids[:8]], summary)
    store.root(*((1, id) for id in [system, *context, summary, *ids[6:]]), (13, taken))
    told = store.read()
    assert spoken(told) == in_order(6)
    assert [text for role, text in said(told) if role == "system"] == [
        *(f"<rules>{n}</rules>" for n in range(6)),
        "In short.",
    ]


def test_a_summary_that_only_its_own_message_marks_is_not_what_somebody_said(store: Store) -> None:
    marked = {"role": "user", "content": "So far.", "providerOptions": {"cursor": {"isSummary": True}}}
    messages = only(store.say(user("go"), marked, assistant("on")).read()).messages
    assert [(message.role, message.kind) for message in messages][1] == ("system", "compaction")


def test_a_message_of_32_bytes_inside_the_root_is_no_blobs_id(store: Store) -> None:
    message = b'{"role":"user","content":"hell"}'
    assert len(message) == 32
    store.root((1, message))
    assert said(store.read()) == [("user", "hell")]


def test_a_turn_in_other_words_than_its_prompt_is_not_told_twice(store: Store) -> None:
    answer = "Everything was reviewed, and it looks right."
    step = store.put(record((1, record((1, answer)))))
    store.root(
        *((1, store.put(one)) for one in (user("the command, written out"), assistant(answer))),
        *((1, store.put(one)) for one in (user("thanks"), assistant("Sure."))),
        (8, turn(store, "/review", step)),
    )
    told = store.read()
    assert spoken(told) == ["the command, written out", answer, "thanks", "Sure."]
    assert only(told).closing.completeness == "complete"


def test_of_a_turn_that_is_half_gone_the_rest_is_not_told_twice(store: Store) -> None:
    early = store.put(record((1, record((1, "Looking around first.")))))
    late = store.put(record((2, record((1, record((1, record((1, "make"))))), (57, "c")))))
    store.root(
        *((1, store.put(one)) for one in (assistant(call("c", command="make")), result("c"))),
        *((1, store.put(one)) for one in (user("next"), assistant("Yes."))),
        (8, turn(store, "build it", early, late)),
        (8, turn(store, "next")),
    )
    assert sorted(said(store.read())) == sorted(
        [
            ("user", "build it"),
            ("assistant", "Looking around first."),
            ("tool", "Shell: ok"),
            ("user", "next"),
            ("assistant", "Yes."),
        ]
    )


def test_a_lost_turn_does_not_shift_the_times_of_the_others(store: Store) -> None:
    ids = talk(store, 3)
    turns = [turn(store, f"q{n}") for n in range(3)]
    timings = [record((1, 1000), (2, START + n * 60_000)) for n in range(3)]
    store.root(*((1, id) for id in ids), *((8, id) for id in turns), *((14, timing) for timing in timings))
    del store.blobs[turns[0].hex()]
    at = {message.content: message.timestamp for message in only(store.read()).messages}
    last = at["q2"]
    assert last is not None
    assert last.timestamp() * 1000 == START + 120_000


def test_an_empty_root_beside_messages_is_not_believed(store: Store) -> None:
    ids = talk(store, 2)
    store.put(record(*((1, id) for id in ids)))
    store.root()
    told = store.read()
    assert spoken(told) == in_order(2)
    assert only(told).closing.completeness == "partial"


def test_a_session_in_which_nothing_was_said_yet_is_a_draft(store: Store) -> None:
    store.root((9, "file:///home/dev/shop"))
    told = store.read()
    assert (only(told).closing.visibility, told.problems) == ("draft", ())


def test_a_lost_root_is_found_by_all_it_leads_to_and_not_by_what_a_compaction_left(store: Store) -> None:
    ids = talk(store, 6)
    store.put(record(*((1, id) for id in ids[:10])))
    summary = store.put(user("what happened"))
    taken = archive(store, ids[:10], summary)
    store.put(record((1, summary), *((1, id) for id in ids[10:]), (13, taken)))
    store.meta["latestRootBlobId"] = ""
    assert spoken(store.read()) == in_order(6)


def test_a_file_kept_beside_the_messages_is_none_of_them_though_it_is_json(store: Store) -> None:
    store.put({"name": "shop", "dependencies": {}})
    talk(store, 1)
    store.meta["latestRootBlobId"] = ""
    told = store.read()
    assert spoken(told) == ["q0", "a0"]
    assert (told.counts.problems, told.counts.unknown) == (0, {})


def test_a_subagent_kept_in_two_ways_is_told_once(store: Store) -> None:
    root = record((1, store.put(user("look"))), (1, store.put(assistant("Nothing."))))
    state = record((1, root), (2, START), (3, START + 5000), (4, "explore"))
    key = "5ec0ffee-0000-4000-8000-0000000000cc"
    by_state, by_id = encode_map_entry(key, state), encode_map_entry(key, store.put(state))
    store.root((1, store.put(user("go"))), (16, by_state), (31, by_id))
    told = store.read()
    (child,) = [reading for reading in told.sessions if reading.opening.agent_id is not None]
    assert [message.content for message in child.messages] == ["look", "Nothing."]
    assert child.closing.updated_at is not None
    assert child.closing.updated_at.timestamp() * 1000 == START + 5000


def test_subagents_within_themselves_end(store: Store) -> None:
    id = bytes(32)
    many = [encode_map_entry(f"a-subagent-of-its-own-{n}", id) for n in range(10)]
    store.blobs[id.hex()] = record((1, store.put(user("deeper"))), *((31, one) for one in many))
    store.root((1, store.put(user("go"))), *((31, one) for one in many))
    assert len(store.read().sessions) == 11


def test_ids_kept_as_bytes_name_the_same_blobs(store: Store) -> None:
    store.say(user("go"), assistant("Gone."))
    store.write()
    store.run("update blobs set id = cast(id as blob)")
    told = read_one(store.folder.parent.parent.parent)
    assert (spoken(told), told.problems) == (["go", "Gone."], ())


def test_a_subagents_subagent_belongs_to_the_session_that_it_all_began_with(store: Store) -> None:
    store.meta["subagentInfo"] = {
        "parentAgentId": "child",
        "rootParentAgentId": "session",
        "typeName": "explore",
    }
    (reading,) = store.say(user("look")).read().sessions
    (agent,) = reading.closing.agents
    assert (reading.opening.parent_id, agent.parent_session_id, agent.parent_agent_id) == (
        "session",
        "session",
        "child",
    )


def test_a_prompt_of_a_picture_alone_is_told_from_its_turn(store: Store) -> None:
    typed = store.put(record((2, "some-bubble"), (3, record((1, "a picture")))))
    step = store.put(record((1, record((1, "A chart.")))))
    store.root((8, store.put(record((1, record((1, typed), (2, step)))))))
    told = store.read()
    assert said(told) == [("user", ""), ("assistant", "A chart.")]
    assert len(only(told).messages[0].attachments) == 1


def test_a_step_of_a_kind_nobody_knows_is_named(store: Store) -> None:
    step = store.put(record((9, record((1, "later")))))
    store.root((8, turn(store, "go", step)))
    assert store.read().counts.unknown == {"step field 9": 1}
