"""Query syntax: what is syntax, and what are words."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from backscroll.index.query import FILTER_NAMES, Clause, MessageFilter, Not, Phrase, Query, Word, parse

NOW = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)


def clauses(text: str) -> tuple[Clause, ...]:
    return parse(text, now=NOW).clauses


def one(*terms: Word | Phrase | MessageFilter | Not) -> Clause:
    return Clause(terms)


def none(*terms: Word | Phrase | MessageFilter) -> Clause:
    return Clause(terms, is_negated=True)


def day(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_all_words_are_required() -> None:
    assert clauses("redis  cache") == (one(Word("redis")), one(Word("cache")))


def test_quotes_make_a_phrase() -> None:
    assert clauses('"redis cache" now') == (one(Phrase("redis cache")), one(Word("now")))


def test_a_minus_excludes_a_term() -> None:
    assert clauses('a -b -"c d" -role:tool') == (
        one(Word("a")),
        none(Word("b")),
        none(Phrase("c d")),
        none(MessageFilter("role", "tool")),
    )


def test_two_minuses_are_a_command_line_flag() -> None:
    assert clauses("git --no-verify") == (one(Word("git")), one(Word("--no-verify")))


def test_a_query_may_consist_of_excluded_words() -> None:
    assert clauses("-rf") == (none(Word("rf")),)
    assert clauses("since:2026-10 -flaky") == (none(Word("flaky")),)


def test_a_query_may_consist_of_an_excluded_filter() -> None:
    assert clauses("-role:tool") == (none(MessageFilter("role", "tool")),)


def test_or_makes_alternatives() -> None:
    assert clauses("a OR b c") == (one(Word("a"), Word("b")), one(Word("c")))
    assert clauses("a AND b OR c") == (one(Word("a")), one(Word("b"), Word("c")))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a AND b", "a b"),
        ("a NOT b", "a -b"),
        ("a AND NOT b", "a -b"),
        ('NOT "a b"', '-"a b"'),
        ("NOT a NOT b", "-a -b"),
        ("NOT role:tool", "-role:tool"),
        ("NOT -a", "a"),
        ("NOT NOT a", "a"),
        ("a OR -b", "a OR NOT b"),
        ("NOT - a", "-a"),
        ("NOT since:2026-10", "-since:2026-10"),
    ],
)
def test_and_and_not_are_operators(text: str, same: str) -> None:
    assert parse(text, now=NOW) == replace(parse(same, now=NOW), requires_all="AND" in text)


def test_an_alternative_can_be_excluded() -> None:
    assert clauses("a OR NOT b OR c") == (one(Word("a"), Not((Word("b"),)), Word("c")),)
    assert clauses("-a OR -role:tool") == (one(Not((Word("a"),)), Not((MessageFilter("role", "tool"),))),)


@pytest.mark.parametrize(
    "text",
    ["a OR", "OR a", "a OR OR", "AND a", "a AND", "a NOT", "NOT AND a", "NOT OR a", "a AND OR NOT"],
)
def test_an_operator_without_operands_is_ignored(text: str) -> None:
    assert clauses(text) == (one(Word("a")),)


@pytest.mark.parametrize("operator", ["and", "or", "not", "Not"])
def test_an_operator_needs_capitals(operator: str) -> None:
    assert clauses(f"a {operator} b") == (one(Word("a")), one(Word(operator)), one(Word("b")))


@pytest.mark.parametrize("operator", ["AND", "OR", "NOT"])
def test_an_operator_alone_or_in_quotes_is_text(operator: str) -> None:
    assert clauses(operator) == (one(Word(operator)),)
    assert clauses(f'a "{operator}"') == (one(Word("a")), one(Phrase(operator)))
    assert clauses(f"a -{operator}") == (one(Word("a")), none(Word(operator)))


def test_a_star_makes_a_prefix() -> None:
    assert clauses('impo* "the imp"*') == (
        one(Word("impo", is_prefix=True)),
        one(Phrase("the imp", is_prefix=True)),
    )


def test_names_with_a_colon_are_filters() -> None:
    assert clauses('source:cursor workspace:"my project" tool:Bash model:opus file:a/b.py branch:main') == (
        one(MessageFilter("file", "a/b.py")),
        one(MessageFilter("source", "cursor")),
        one(MessageFilter("workspace", "my project")),
        one(MessageFilter("tool", "Bash")),
        one(MessageFilter("model", "opus")),
        one(MessageFilter("branch", "main")),
    )


def test_values_that_exclude_each_other_are_alternatives() -> None:
    assert clauses("role:user role:Assistant") == (
        one(MessageFilter("role", "user"), MessageFilter("role", "assistant")),
    )


def test_states_are_filters() -> None:
    assert clauses("is:error is:edit has:thinking") == (
        one(MessageFilter("is", "error")),
        one(MessageFilter("is", "edit")),
        one(MessageFilter("has", "thinking")),
    )


@pytest.mark.parametrize("text", ["role:robot", "is:nice", "has:wings", "since:tomorrowish"])
def test_a_filter_with_an_invalid_value_is_searched_for_as_words(text: str) -> None:
    assert clauses(text) == (one(Phrase(text.replace(":", " "))),)


@pytest.mark.parametrize("text", ["std::vector", "http://example.org/x", "12:30", "note:this", "role:"])
def test_an_unknown_filter_name_is_part_of_a_word(text: str) -> None:
    assert clauses(text) == (one(Word(text)),)


@pytest.mark.parametrize("text", ['5" disk', '"unclosed phrase', 'a" b"'])
def test_an_unmatched_quote_hides_no_word(text: str) -> None:
    terms = [term for clause in clauses(text) for term in clause.any_of]
    assert [getattr(term, "text", "").strip('"') for term in terms] == text.replace('"', "").split()


@pytest.mark.parametrize("text", ["", "   ", "!!! ???", "*", '""', "- --", "{}[]()", '"', "->", "::"])
def test_punctuation_alone_is_an_empty_query(text: str) -> None:
    assert parse(text).is_empty


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("since:2026-10-03", day("2026-10-03"), None),
        ("until:2026-10-03", None, day("2026-10-04")),
        ("since:2026-10 until:2026-10", day("2026-10-01"), day("2026-11-01")),
        ("until:2026-12", None, day("2027-01-01")),
        ("since:2025 until:2025", day("2025-01-01"), day("2026-01-01")),
        ("since:today", day("2026-11-16"), None),
        ("since:yesterday until:yesterday", day("2026-11-15"), day("2026-11-16")),
        ("since:7d", day("2026-11-09T12:30"), None),
        ("since:3w", day("2026-10-26T12:30"), None),
        ("since:12h", day("2026-11-16T00:30"), None),
        ("since:2026-10-03T10:00", day("2026-10-03T10:00"), None),
        ("since:2026-W40 until:2026-W40", day("2026-09-28"), day("2026-10-05")),
        ("since:20261003 until:20261003", day("2026-10-03"), day("2026-10-04")),
        ("since:2026-W40-2 until:2026-W40-2", day("2026-09-29"), day("2026-09-30")),
        ("-since:2026-10-03", None, day("2026-10-03")),
        ("-until:2026-10-03", day("2026-10-04"), None),
        ("since:2026-10-03 since:2026-10-05", day("2026-10-05"), None),
    ],
)
def test_dates_set_time_limits(text: str, since: int | None, until: int | None) -> None:
    query = parse(text, now=NOW)
    assert (query.since, query.until, query.clauses) == (since, until, ())


def test_days_start_at_local_midnight() -> None:
    local = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert parse("since:today", now=local).since == day("2026-11-15T18:30")


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("2026-07-01", day("2026-06-30T22:00"), day("2026-07-01T22:00")),
        ("2026-10-25", day("2026-10-24T22:00"), day("2026-10-25T23:00")),  # end of daylight saving time
        ("2026-10", day("2026-09-30T22:00"), day("2026-10-31T23:00")),
        ("2026-07-01T14:30", day("2026-07-01T12:30"), day("2026-07-01T12:30")),
    ],
)
def test_a_date_has_the_utc_offset_of_that_date(text: str, since: int, until: int) -> None:
    query = parse(f"since:{text} until:{text}", now=NOW.astimezone(ZoneInfo("Europe/Oslo")))
    assert (query.since, query.until) == (since, until)


def test_filters_can_be_added() -> None:
    query = parse("redis since:2026-10", now=NOW).with_filters(
        MessageFilter("source", "cursor"), since=NOW - timedelta(days=400), until=NOW
    )
    assert query == Query(
        (one(Word("redis")), one(MessageFilter("source", "cursor"))),
        since=day("2026-10-01"),
        until=int(NOW.timestamp() * 1000),
    )


def test_stop_words_are_recognized() -> None:
    query = parse("why did we drop the redis cache in the importer?")
    kept = [clause.any_of[0] for clause in query.content_words]
    assert kept == [Word("drop"), Word("redis"), Word("cache"), Word("importer?")]


SYNTAX = st.sampled_from(
    [
        '"',
        "-",
        "OR",
        " AND ",
        " NOT ",
        "*",
        ":",
        " ",
        "\n",
        "\ud800",
        "é",
        "中",
        "a",
        "7d",
        *(f"{name}:" for name in FILTER_NAMES),
    ]
)


@given(st.text() | st.lists(SYNTAX).map("".join))
def test_any_text_is_a_query(text: str) -> None:
    assert parse(text, now=NOW).is_empty is not any(map(str.isalnum, text))


@given(st.lists(st.sampled_from(["a", "-b", '"c d"', "role:tool", "AND", "OR", "NOT", "!", "since:7d"])))
def test_every_word_is_searched_for_or_excluded(items: list[str]) -> None:
    terms = [
        inner
        for clause in clauses(" ".join(items))
        for term in clause.any_of
        for inner in (term.any_of if isinstance(term, Not) else (term,))
    ]
    assert terms.count(Word("a")) == items.count("a")
    assert terms.count(Word("b")) == items.count("-b")
    assert terms.count(Phrase("c d")) == items.count('"c d"')


@given(st.text(alphabet="abcé中 ", min_size=1))
def test_no_plain_word_is_lost(text: str) -> None:
    assert [clause.any_of[0] for clause in clauses(text)] == [Word(word) for word in text.split()]
