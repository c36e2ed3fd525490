"""Ranking of sessions: words in one message, words spread over a session, and documents of whole sessions."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.index.documents import (
    WINDOW_MESSAGES,
    IndexMessage,
    IndexSession,
    encode_message,
    encode_session,
    prose_in,
    window_start,
)
from backscroll.index.query import parse
from backscroll.index.ranking import Hit, combine_rankings, subagents_last
from backscroll.index.searcher import Counts
from backscroll.index.store import Index
from backscroll.model.search import SearchRanks
from tests.index.documents import found, message, write

NOISE = " ".join(f"word{number}" for number in range(5000))


def session_documents(texts: list[str], *, role: str = "user") -> list[dict[str, object]]:
    session = IndexSession(session=7, source="claude-code", title="A title", workspace_hash="0" * 32)
    messages = [
        encode_message(IndexMessage(position=position, role=role, text=text))
        for position, text in enumerate(texts)
    ]
    documents = [msgspec.json.decode(one) for one in encode_session(session, messages)]
    return [one for one in documents if "session_text" in one]


def test_words_spread_over_a_session_find_it(index: Index) -> None:
    write(
        index,
        [
            message("the ferry left", 1, 0),
            message("an hour late", 1, 1),
            message("because of fog", 1, 2),
            message("the ferry was painted", 2, 0),
        ],
    )
    assert found(index, "ferry late fog")[0] == 1


def test_a_huge_message_with_all_words_does_not_hide_what_was_said(index: Index) -> None:
    write(
        index,
        [
            message(f"{NOISE} ferry late fog harbor", 1, role="system"),
            message(f"{NOISE} ferry late fog harbor", 2, role="tool"),
            message("why was the ferry late", 3, 0),
            message("fog in the harbor", 3, 1, role="assistant"),
        ],
    )
    assert found(index, "ferry late fog harbor")[0] == 3
    assert set(found(index, "ferry late fog harbor")) == {1, 2, 3}


def test_the_only_session_with_all_words_in_a_message_comes_first(index: Index) -> None:
    about = [message("ferry ferry", number, 0) for number in range(2, 9)]
    more = [message("tram tram", number, 1) for number in range(2, 9)]
    write(index, [message("ferry and tram and much more about other things", 1, 0), *about, *more])
    assert found(index, "ferry tram")[0] == 1


def test_a_title_ranks_before_a_file_name(index: Index) -> None:
    write(
        index,
        [
            message("ok", 1, 0, title="Tide gauge import"),
            message("done", 2, 0, role="tool", paths=("src/tide_gauge_import.py",)),
            *(message("nothing", number) for number in range(3, 9)),
        ],
    )
    assert found(index, "tide gauge import")[0] == 1


def test_and_excludes_sessions_with_only_some_of_the_words(index: Index) -> None:
    write(index, [message("ferry tram", 1), message("ferry", 2, 0), message("tram", 2, 1)])
    assert found(index, "ferry tram") == [1, 2]
    assert found(index, "ferry AND tram") == [1]


def test_a_filter_applies_to_sessions_found_as_a_whole(index: Index) -> None:
    write(
        index,
        [
            message("ferry late", 1, 0, source="claude-code"),
            message("fog", 1, 1, source="claude-code"),
            message("ferry late", 2, 0, source="cursor"),
            message("fog", 2, 1, source="cursor"),
        ],
    )
    assert found(index, "ferry late fog source:cursor") == [2]


def test_pages_continue_without_gaps_or_repetitions(index: Index) -> None:
    write(index, [message(f"ferry {'late ' * (number % 7 + 1)}", number) for number in range(130)])
    pages = [
        [hit.session for hit in index.search(parse("ferry late"), limit=20, offset=offset).hits]
        for offset in range(0, 140, 20)
    ]
    together = [session for page in pages for session in page]
    assert sorted(together) == list(range(130))
    assert index.search(parse("ferry late"), limit=20).total == 130


def test_the_total_includes_sessions_with_spread_words(index: Index) -> None:
    write(
        index,
        [
            *(message("ferry late", number) for number in range(1, 4)),
            message("ferry", 9),
            message("late", 9, 1),
        ],
    )
    page = index.search(parse("ferry late"), limit=20)
    assert page.total == len(page.hits) == 4


def test_sessions_with_some_of_the_words_are_not_in_the_total(index: Index) -> None:
    write(
        index,
        [
            *(message("ferry late fog", number) for number in range(1, 4)),
            message("ferry fog", 8),
            message("late", 8, 1),
            message("ferry fog and other things", 9),
        ],
    )
    page = index.search(parse("ferry late fog"), limit=20)
    assert {hit.session: hit.matches_all for hit in page.hits} == {
        1: True,
        2: True,
        3: True,
        8: True,
        9: False,
    }
    assert (page.total, page.row_count) == (4, 5)
    relaxed = index.search(parse("ferry late harbor"), limit=20)
    assert relaxed.is_relaxed
    assert relaxed.total is None
    assert not any(hit.matches_all for hit in relaxed.hits)


def test_a_session_document_has_prompts_answers_and_title(index: Index) -> None:
    (document,) = session_documents(["First words", "Second words"])
    assert document["session_text"] == "first words second words"
    assert "title" in str(document["session_title"])
    assert session_documents(["output"], role="tool")[0]["session_text"] == ""


def test_a_long_session_has_a_document_per_window() -> None:
    documents = session_documents([f"w{number}" for number in range(WINDOW_MESSAGES + 1)])
    assert [document["position"] for document in documents] == [0, WINDOW_MESSAGES]
    assert documents[1]["session_text"] == f"w{WINDOW_MESSAGES}"
    assert window_start(WINDOW_MESSAGES + 5) == WINDOW_MESSAGES


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_any_text_makes_a_valid_session_document(texts: list[str]) -> None:
    (document,) = session_documents(texts)
    words = str(document["session_text"]).split()
    messages = [encode_message(IndexMessage(position=0, role="user", text=text)) for text in texts]
    assert words == [
        word for one in messages for word in msgspec.json.decode(b'"%b"' % prose_in(one.fields)).split()
    ]


@pytest.mark.parametrize(("strict", "first"), [([5], 5), ([5, 6], 1), ([5, 6, 7], 5)])
def test_strict_matches_precede_relaxed_ones_if_they_are_no_accident(strict: list[int], first: int) -> None:
    def hits(sessions: list[int]) -> list[Hit]:
        return [Hit(session, 0, 10.0 - rank) for rank, session in enumerate(sessions)]

    relaxed = [1, 2, 3]
    positions = dict.fromkeys([*strict, *relaxed], 0)
    ranked = combine_rankings(hits(strict), hits(relaxed), [], positions)
    assert ranked[0].session == first
    assert ranked[0].ranks is not None


def test_two_sessions_with_all_words_are_ordered_by_their_messages_if_all_are_required() -> None:
    strict = [Hit(1, 0, 9.0), Hit(2, 0, 3.0)]
    ranked = combine_rankings(strict, [], [], {1: 0, 2: 0})
    assert [hit.session for hit in ranked] == [1, 2]


def test_a_session_without_a_count_has_one_match() -> None:
    counts = Counts(None, [{"key": 5, "doc_count": 7}])
    assert [counts.of(session) for session in (3, 5, 9)] == [1, 7, 1]


def test_a_session_that_is_much_better_in_one_ranking_comes_first() -> None:
    relaxed = [Hit(1, 0, 10.0), Hit(2, 0, 4.0)]
    by_session = [Hit(2, 0, 10.0), Hit(1, 0, 9.5)]
    first, second = combine_rankings([], relaxed, by_session, {1: 0, 2: 0})
    assert (first.session, second.session) == (1, 2)
    assert first.score == pytest.approx(1 + 0.95)
    assert second.ranks == SearchRanks(None, 2, 1, message_score=0.4, session_score=1.0)


def test_a_filter_ranks_sessions_that_are_far_down_without_it(index: Index) -> None:
    others = [message("ferry fog ferry fog", number, source="cursor") for number in range(10, 140)]
    write(
        index, [*others, message("ferry and more", 1, 0), message("fog and more words than elsewhere", 1, 1)]
    )
    (hit,) = index.search(parse("ferry fog source:claude-code"), limit=5).hits
    assert hit.session == 1
    assert hit.ranks is not None
    assert (hit.ranks.some_words, hit.ranks.session) == (1, 1)


def test_synonyms_of_one_search_do_not_affect_another(index: Index) -> None:
    write(index, [message("the picture is slow", 1), message("nothing at all", 2)])
    query = parse("photo gallery")
    with_synonyms = index.search(query, limit=5, synonyms=lambda word: ("picture",))
    assert [hit.session for hit in with_synonyms.hits] == [1]
    assert found(index, "photo gallery") == []


def _hit(session: int, score: float, *, is_strict: bool = False) -> Hit:
    return Hit(session, 0, score, ranks=SearchRanks(1 if is_strict else None, 1, None))


def test_a_session_has_the_place_of_its_best_subagent() -> None:
    hits = [_hit(101, 0.9), _hit(102, 0.8), _hit(2, 0.7), _hit(1, 0.6), _hit(103, 0.5)]
    ordered = subagents_last(hits, {101: 1, 102: 1, 103: 3})
    assert [hit.session for hit in ordered] == [1, 2, 103, 101, 102]
    scores = [hit.score for hit in ordered]
    assert scores == sorted(scores, reverse=True)


def test_a_subagent_with_every_word_keeps_its_place_if_its_session_has_less() -> None:
    hits = [_hit(101, 0.9, is_strict=True), _hit(2, 0.7), _hit(1, 0.6)]
    assert [hit.session for hit in subagents_last(hits, {101: 1})] == [101, 2, 1]


@given(st.permutations(range(8)), st.dictionaries(st.integers(4, 7), st.integers(0, 3)))
def test_the_order_with_subagents_has_the_same_hits(order: list[int], parents: dict[int, int]) -> None:
    hits = [_hit(session, 1 / (place + 1)) for place, session in enumerate(order)]
    ordered = subagents_last(hits, parents)
    assert sorted(hit.session for hit in ordered) == sorted(order)
    assert all(hit.session not in parents for hit in ordered[: 8 - len(parents)])
