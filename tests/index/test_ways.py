"""Words asked for in the fields that have them: the same messages, sooner."""

import random

import pytest

from backscroll.index import Document, Index, parse
from backscroll.index.query import field_plan
from backscroll.index.query import searcher as search
from backscroll.index.query.compile import CompiledQuery
from backscroll.index.query.counts import reckoned_with
from tests.index.making import DAY, NOON, message

WORDS = ["ferry", "gate", "lamp", "wood"]
PARTS = ["FerryGate", "lampWood", "ferryTimeLamp", "gate_wood", "woodWood"]


def _messages(*, compounds: float) -> list[Document]:
    """A fifth of them said, with words often repeated, some of them as parts of compounds."""
    rng = random.Random(5)
    made = []
    for place in range(1200):
        is_said = rng.random() < 0.2
        text = rng.choices(WORDS, k=rng.randrange(1, 6)) + ["oar"] * rng.randrange(0, 30)
        text += [rng.choice(PARTS)] * (rng.random() < compounds)
        text += ["the"] * (rng.random() < 0.5) + ["stern"] * (not is_said and rng.random() < 0.3)
        if rng.random() < 0.3:
            text = ["oar", *text[1:]]
        made.append(
            message(
                " ".join(text),
                place // 7,
                place % 7,
                role="user" if is_said else "tool",
                at=NOON - place * DAY,
            )
        )
    return made


QUERIES = [
    "ferry", "ferry gate", "gate gate", "ferry gate lamp", "gate lamp wood ferry", "oar ferry", "-lamp wood",
    "ferry role:user", "ferry gate role:tool", "gate since:2026-01", "ferry gate until:2026-01", "the ferry",
    "gate ferry source:claude-code", "the time of ferry", "the stern and the gate", "nowhere ferry",
    "lamp OR gate", '"ferry gate"', "fer*",
]  # fmt: skip


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """What pays off among a million messages is done among few."""
    monkeypatch.setattr(search, "_BEST_BLOCK", 20)
    for name, value in {"_MANY": 0, "_ENOUGH": 0, "_PROMISING": 10.0}.items():
        monkeypatch.setattr(field_plan, name, value)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("by", ["session", "message"])
@pytest.mark.parametrize(("compounds", "rare"), [(0.05, 1), (0.05, 32), (0.7, 1 << 30)])
def test_the_same_is_found_in_the_same_order_and_counted_alike(
    index: Index, monkeypatch: pytest.MonkeyPatch, by: search.By, compounds: float, rare: int
) -> None:
    index.write(_messages(compounds=compounds))
    monkeypatch.setattr(field_plan, "_RARE", rare)
    pages = [(query, offset) for query in QUERIES for offset in (0, 15, 40, 100)]
    found = [index.search(parse(query), limit=20, offset=offset, by=by) for query, offset in pages]
    index.close()
    monkeypatch.setattr(search, "ways_of", lambda *_: None)
    for page, (query, offset) in zip(found, pages, strict=True):
        plain = index.search(parse(query), limit=20, offset=offset, by=by)
        assert page.total == plain.total, query
        assert [hit.score for hit in page.hits] == pytest.approx([hit.score for hit in plain.hits]), query
        places = [(hit.session, hit.position, hit.match_count) for hit in page.hits]
        assert places == [(hit.session, hit.position, hit.match_count) for hit in plain.hits], query


@pytest.mark.usefixtures("eager")
def test_what_was_done_is_not_weighed_when_enough_was_said(index: Index) -> None:
    said = [message("ferry", number) for number in range(30)]
    index.write(said + [message("the ferry " * number, number, 1, role="tool") for number in range(1, 200)])
    snapshot, matching = index._current(), CompiledQuery(parse("ferry"))
    asked = matching.plain()
    assert asked is not None
    found = field_plan.ways_of(snapshot.searcher, asked)
    assert found is not None
    best = found.best([], number=20, documents=reckoned_with(snapshot.searcher) or 0)
    assert best is not None
    assert snapshot.count_messages(best.queries[0]) == 30
    assert {row[2] for row in snapshot._best(matching, found)} == {0}


@pytest.mark.usefixtures("eager")
def test_what_was_done_is_weighed_when_it_may_be_better(index: Index) -> None:
    said = [message("ferry " + "oar " * 300, number) for number in range(400)]
    index.write([*said, message("ferry", 1000, role="tool")])
    assert index.search(parse("ferry"), limit=1).hits[0].session == 1000


@pytest.mark.usefixtures("eager")
def test_a_rare_part_adds_to_what_was_said(index: Index) -> None:
    said = [message("ferry", number) for number in range(30)]
    done = [message("the ferry anOar aLamp theWood", number, 1, role="tool") for number in range(200)]
    index.write([*said, *done, message("ferry FerryGate", 500)])
    assert index.search(parse("ferry"), limit=1).hits[0].session == 500


@pytest.mark.usefixtures("eager")
def test_what_was_done_is_weighed_when_it_may_be_better_by_a_common_part(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(field_plan, "_RARE", 1 << 30)
    said = [message("ferry " + "oar " * 1000, number) for number in range(25)]
    others = [message("anOar aLamp theWood", number) for number in range(200)]
    done = [message("the ferry anOar aLamp theWood", number, 1, role="tool") for number in range(360)]
    parts = [message("ferry FerryGate", 500 + number, role="tool") for number in range(40)]
    index.write([*said, *others, *done, *parts])
    best = index.search(parse("ferry"), limit=20).hits
    assert {hit.session // 500 for hit in best} == {1}
    one_by_one = index.search(parse("ferry"), limit=20, by="message").hits  # which weighs everything
    assert [hit.score for hit in best] == [hit.score for hit in one_by_one]


def test_no_score_is_above_the_highest_that_there_can_be(index: Index) -> None:
    index.write([message("ferry " * number, number, role="tool") for number in (1, 10, 100, 1000)])
    index.write([message("oar", number, 1) for number in range(50)])
    index.write([], delete=[10])
    searcher = index._current().searcher
    documents = reckoned_with(searcher)
    assert documents is not None
    assert documents > searcher.num_docs
    (best, _), *_ = searcher.search(CompiledQuery(parse("ferry")).strict(), 1).hits
    highest = field_plan.highest(searcher.doc_freq("done", "ferry"), documents=documents, weight=1.0)
    assert 0.9 * highest < best < highest


@pytest.mark.parametrize(
    "query", ["role:user", "model:opus ferry", "file:a.py ferry", "ferry*", '"a ferry"', "ferry OR gate"]
)
def test_what_is_no_single_word_is_asked_for_in_one_piece(query: str) -> None:
    assert CompiledQuery(parse(query)).plain() is None


def test_many_words_that_are_parts_too_are_asked_for_in_one_piece(index: Index) -> None:
    index.write([message("one two three four five oneTwo threeFour fiveOne")])
    asked = CompiledQuery(parse("one two three four five")).plain()
    assert asked is not None
    assert field_plan.ways_of(index._current().searcher, asked) is None


def test_words_without_other_forms_are_not_asked_for_twice(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.write([message("ferry", 1), message("gate", 2)])
    monkeypatch.delattr(CompiledQuery, "varied")
    assert sorted(hit.session for hit in index.search(parse("ferry gate"), limit=20).hits) == [1, 2]
