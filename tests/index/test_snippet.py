"""Snippets and highlights."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.index.analysis import fold_in_place
from backscroll.index.highlights import Span, find_spans, make_snippet
from backscroll.index.pattern import Pattern, exact, regex
from backscroll.index.query import parse


def highlighted(text: str, words: str) -> str:
    """Return the snippet line with highlights in brackets."""
    shown = make_snippet(text, find_spans(text, parse(words)))
    line = shown.match
    for start, end in reversed(shown.highlights):
        line = f"{line[:start]}[{line[start:end]}]{line[end:]}"
    return line


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("the Cache is stale", "cache", "the [Cache] is stale"),
        ("cached caches cache", "cache", "cached caches [cache]"),
        ("parseHTTPRequest of E1234", "http 1234", "parse[HTTP]Request of E[1234]"),
        ("a snake_case_name b", "snake_case_name", "a [snake_case_name] b"),
        ("a snake_case_name b", "case", "a snake_[case]_name b"),
        ("see path/to/file.py", "file.py", "see path/to/[file.py]"),
        ("a redis, cache", '"redis cache"', "a [redis, cache]"),
        ("Café, ŁÓDŹ", "cafe lodz", "[Café], [ŁÓDŹ]"),
        ("le cafe\u0301 est la\u0300", "CAFÉ la", "le [cafe\u0301] est [la\u0300]"),
        ("使用redis缓存", "redis", "使用[redis]缓存"),
        ("使用redis缓存", "缓存", "使用redis[缓存]"),
        ("Straße, STRASSE", "strasse", "[Straße], [STRASSE]"),
        ("Straße, STRASSE", "straße", "[Straße], [STRASSE]"),
        ("große Masse", "gross*", "[große] Masse"),
        ("Ο Οδυσσεύς, ΟΔΥΣΣΕΥΣ", "οδυσσευς", "Ο [Οδυσσεύς], [ΟΔΥΣΣΕΥΣ]"),
        ("İstanbul, ещё", "istanbul еще", "[İstanbul], [ещё]"),
        ("ภาษาไทยไม่มีช่องว่าง", "ไม่มี", "ภาษาไทย[ไม่มี]ช่องว่าง"),
        ("検索エンジンが速い", "エンジン", "検索[エンジン]が速い"),
        ("か、が", "が", "か、[が]"),
        ("半角のｶﾀｶﾅと", "カタカナ", "半角の[ｶﾀｶﾅ]と"),
        ("全角のカタカナと", "ｶﾀｶﾅ", "全角の[カタカナ]と"),
        ("한국어 텍스트", "국어", "한[국어] 텍스트"),
        ("the importers of it", "impo*", "the [importers] of it"),
        ("  indented cache  ", "cache", "  indented [cache]"),
        ("nothing here", "cache", "nothing here"),
        ("not the cache", "cache -not", "not the [cache]"),
    ],
)
def test_matches_are_highlighted(text: str, words: str, line: str) -> None:
    assert highlighted(text, words) == line


def test_the_snippet_is_the_line_with_the_most_words() -> None:
    assert highlighted("redis\n\nredis cache\ncache redis", "redis cache") == "[redis] [cache]"


def test_the_snippet_has_context_lines() -> None:
    text = "\n".join(f"line {number}" for number in range(1, 10))
    shown = make_snippet(text, exact("line 5").spans(text))
    assert shown.context == ["line 3", "line 4", "line 5", "line 6", "line 7"]
    assert shown.line_number == 5
    assert make_snippet(text, exact("line 1").spans(text), context=1).context == ["line 1", "line 2"]
    assert make_snippet(text, exact("line 9").spans(text), context=0).context == ["line 9"]


def test_regex_matches_are_highlighted() -> None:
    text = "one E1234 and E99"
    shown = make_snippet(text, regex(r"E\d+").spans(text))
    assert [shown.match[start:end] for start, end in shown.highlights] == ["E1234", "E99"]


def test_a_match_over_several_lines_is_highlighted_in_the_visible_line() -> None:
    text = "first\nsecond\nthird"
    shown = make_snippet(text, regex(r"(?s)econd.*hir").spans(text))
    assert (shown.match, shown.highlights, shown.line_number) == ("second", [(1, 6)], 2)


@pytest.mark.parametrize("pattern", [exact("\n\n  se"), regex(r"\s+se"), regex("\nx|\n\n  se")])
def test_a_match_that_starts_with_a_line_end_shows_the_next_line(pattern: Pattern) -> None:
    text = "first\n\n  second"
    shown = make_snippet(text, pattern.spans(text))
    assert (shown.match, shown.highlights, shown.line_number) == ("  second", [(0, 4)], 3)


def test_the_snippet_keeps_the_indentation() -> None:
    text = "def f():\n    if x:\n        return cache"
    shown = make_snippet(text, find_spans(text, parse("cache")))
    assert shown.context == text.split("\n")


def test_overlapping_spans_are_merged() -> None:
    assert make_snippet("abcdef", [(0, 3), (2, 5), (5, 6)]).highlights == [(0, 6)]


def test_a_line_of_two_megabytes_is_truncated_quickly() -> None:
    text = "x" * 1_000_000 + " needle " + "y" * 1_000_000
    before = time.perf_counter()
    shown = make_snippet(text, find_spans(text, parse("needle")))
    assert time.perf_counter() - before < 0.5
    assert len(shown.match) <= 300
    assert [shown.match[start:end] for start, end in shown.highlights] == ["needle"]
    assert all(len(line) <= 300 for line in shown.context)


def test_a_word_with_20000_occurrences_is_fast() -> None:
    text = "é needle and thread " * 20_000
    before = time.perf_counter()
    assert "[needle] and [thread]" in highlighted(text, "needle thread")
    assert time.perf_counter() - before < 1


def test_truncation_does_not_separate_a_letter_from_its_accent() -> None:
    text = "e\u0301" * 400 + " needle " + "a\u0300" * 400
    shown = make_snippet(text, find_spans(text, parse("needle")))
    assert shown.match[0] == "e"
    assert shown.match[-1] == "\u0300"


def test_an_empty_text_has_an_empty_snippet() -> None:
    shown = make_snippet("", [])
    assert (shown.match, shown.highlights, shown.context, shown.line_number) == ("", [], [""], 1)


@given(st.text())
def test_folding_in_place_keeps_the_length(text: str) -> None:
    assert len(fold_in_place(text)) == len(text)


@given(st.text() | st.text("aA ÄäßΣσİ—→Øé日", max_size=40))
def test_each_character_folds_independently(text: str) -> None:
    assert fold_in_place(text) == "".join(map(fold_in_place, text))


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(0, 3)))


@given(st.text(alphabet="ab \n\u0301é中\u200d", max_size=60), SPANS, st.integers(0, 3))
def test_a_snippet_is_always_part_of_the_text(
    text: str, places: list[tuple[int, int, int]], context: int
) -> None:
    spans = [
        Span(start, start + length, term) for start, length, term in places if start + length <= len(text)
    ]
    shown = make_snippet(text, spans, context=context)
    assert shown.match in text
    assert shown.match in shown.context
    assert len(shown.context) <= 2 * context + 1
    assert shown.match.strip() in text.split("\n")[shown.line_number - 1]
    ends = [0, *(place for pair in shown.highlights for place in pair)]
    assert ends == sorted(ends)
    assert ends[-1] <= len(shown.match)


@given(st.text(alphabet="abAB é中_1-\u0301"), st.text(alphabet='abé中_1 "*-'))
def test_spans_are_inside_the_text(text: str, words: str) -> None:
    for span in find_spans(text, parse(words)):
        assert 0 <= span.start < span.end <= len(text)


def test_a_file_filter_is_highlighted() -> None:
    text = "Read\nfile_path: /home/zoe/src/app.py\nimport app"
    found = make_snippet(text, find_spans(text, parse("file:src/app.py")))
    assert [found.match[slice(*place)] for place in found.highlights] == ["src/app.py"]
    assert list(find_spans(text, parse("-file:app.py import"))) == list(find_spans(text, parse("import")))


@given(st.lists(st.lists(st.sampled_from(["red", "green", "blue", "grey"]), max_size=5), max_size=12))
def test_no_line_has_more_of_the_words_than_the_snippet(lines: list[list[str]]) -> None:
    text = "\n".join(" ".join(line) for line in lines)
    found = [len({"red", "green", "blue"}.intersection(line)) for line in lines]
    shown = make_snippet(text, find_spans(text, parse("red green blue")))
    if max(found, default=0):
        assert shown.line_number == found.index(max(found)) + 1
        assert len(shown.highlights) == sum(word != "grey" for word in lines[shown.line_number - 1])


def test_the_snippet_of_a_long_line_is_where_the_words_are_close() -> None:
    text = f"red{' self' * 500} green {'x ' * 400} red{' self' * 20} and green{' blue' * 9}"
    assert highlighted(text, "red green self").endswith(f"[red]{' [self]' * 20} and [green]{' blue' * 9}")
