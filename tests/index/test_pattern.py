"""Substring and regex search: every match is among the candidates."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backscroll.errors import UsageError
from backscroll.index.pattern import Pattern, exact, regex, required_literals
from backscroll.index.query import MessageFilter, Query
from backscroll.index.store import Index
from tests.index.documents import DAY, NOON, message, write

TEXTS = [
    "const foo_bar = (baz) => baz?.qux ?? 1;",
    "In path/to/file.py parseHTTPRequest raises E1234: --no-verify",
    "使用redis缓存 with Café and nai\u0308ve Straße",
    f"a key: {'QUJD' * 100}== and more",
    "Ünïcödé ﬁne 日本語テキスト end",
    "tabs\tand\nnew lines, \ud800 and NULs \0 too",
]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Index:
    index = Index(tmp_path_factory.mktemp("texts"))
    index.rebuild()
    write(index, (message(text, n, at=NOON + n) for n, text in enumerate(TEXTS)))
    return index


def candidates(index: Index, pattern: Pattern, query: Query | None = None) -> list[int]:
    return [hit.session for hit in index.candidates(pattern, query)]


@given(st.data())
def test_every_substring_of_a_text_has_it_as_candidate(texts: Index, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(TEXTS) - 1))
    text = TEXTS[number]
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start + 1, len(text)))
    found = candidates(texts, exact(text[start:stop]))
    assert number in found
    assert len(found) == len(set(found))


@given(st.sampled_from(TEXTS), st.data())
def test_every_substring_has_its_text_as_candidate_in_any_case(
    texts: Index, text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    piece = text[start : start + 8]
    pattern = exact(piece.swapcase(), ignores_case=True)
    assume(pattern.is_in(text))
    assert TEXTS.index(text) in candidates(texts, pattern)


EXPRESSIONS = [
    r"foo_\w+", r"ba[rz]", r"(?i)PARSEhttp", r"(foo|path)[_/]", r"E\d{4}", r"(?:qux)?\?\?", r"no-?verify",
    r"caf.", r"缓.? with", r"(QUJD){20}", r"\btabs\b", r"new\slines", r"e{1}nd$", r"\Qbaz?.\Equx", r"日本語",
    r"x*y*z*end", r"(a|b|)fine", r"[^a]file\.py", r"\x66oo_bar", r"\p{Lu}nïc", r"(?P<name>redis)缓",
    r"a{0}foo", r"foo|bar|E1234", r"(foo_(bar|nothing)|E12) ?", r"(?s)tabs.*too", r"ki?e?y?: Q",
    r"n{1,2}ot|naïve|na.+ve",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_match_of_a_regex_is_among_the_candidates(texts: Index, expression: str) -> None:
    pattern = regex(expression)
    holding = {n for n, text in enumerate(TEXTS) if pattern.is_in(text)}
    assert holding <= set(candidates(texts, pattern))


@pytest.mark.parametrize("expression", [r"foo_\w+", r"E12\d+", r"(?i)parsehttp\w+", r"redis|foo_bar"])
def test_the_dictionary_narrows_the_candidates(texts: Index, expression: str) -> None:
    assert regex(expression).is_narrow
    assert len(candidates(texts, regex(expression))) < len(TEXTS)


@pytest.mark.parametrize(
    ("expression", "required"),
    [
        ("abc", [("abc",)]),
        ("abc.*def", [("abc",), ("def",)]),
        ("abc|def", [("abc", "def")]),
        ("x(abc|def)y", [("abc", "def"), ("x",), ("y",)]),
        ("(abc)+", [("abc",)]),
        ("(abc)?x", [("x",)]),
        ("(abc)*", []),
        ("abc{0,2}", [("ab",)]),
        ("ab{2}c", [("b",), ("a",), ("c",)]),
        ("a{b", [("a{b",)]),
        (r"a\.b\\c", [(r"a.b\c",)]),
        (r"\d+abc\w", [("abc",)]),
        (r"[abc]def[^]x]", [("def",)]),
        (r"[[:alpha:]]def", [("def",)]),
        ("(?i)abc(?-i:d)", [("abcd",)]),
        ("^abc$", [("abc",)]),
        ("abc|", []),
        (r"\Qa.b\Ec", [("a.bc",)]),
        (r"abc\s+def +x", [("abc def x",)]),
        (r"abc\s*def", [("abc",), ("def",)]),
        (r"abc(\s|-)def", [(" ", "-"), ("abc",), ("def",)]),
    ],
)
def test_required_literals_of_a_regex(expression: str, required: list[tuple[str, ...]]) -> None:
    assert required_literals(expression) == required


@given(
    st.from_regex(r"([ab()|?*+.\\\[\]{}1,^$ -]|\\w|\\s|\\Q|abc){1,12}", fullmatch=True),
    st.text(alphabet="abc1{, \n"),
)
def test_a_match_contains_the_required_literals(expression: str, text: str) -> None:
    try:
        pattern = regex(expression)
    except UsageError:
        return
    required = required_literals(expression)
    for start, stop in pattern.spans(text):
        for group in required:
            spelled = [r"\s+".join(map(re.escape, re.split(r"\s+", one))) for one in group]
            assert any(re.search(one, text[start:stop]) for one in spelled), (expression, text, required)


@pytest.mark.parametrize("pattern", [exact("ab"), exact("=> ("), regex(r"\d+"), regex("a.b.c"), regex("x*")])
def test_a_pattern_without_a_selective_literal_is_not_narrow_and_has_all_candidates(
    texts: Index, pattern: Pattern
) -> None:
    assert not pattern.is_narrow
    assert candidates(texts, pattern) == list(range(len(TEXTS)))[::-1]


@pytest.mark.parametrize("expression", ["(", "a**", "[z-a]", "(?=x)", r"\1"])
def test_an_invalid_regex_is_a_usage_error(expression: str) -> None:
    with pytest.raises(UsageError, match=re.escape(repr(expression))):
        regex(expression)


@pytest.mark.parametrize(
    ("expression", "spans"),
    [("^b.", [(3, 5)]), ("c$", [(1, 2), (4, 5)]), (r"\Ab", []), (r"c\z", []), ("(?-m)c$", []), ("^$", [])],
)
def test_anchors_match_at_line_ends(expression: str, spans: list[tuple[int, int]]) -> None:
    text = "ac\nbc\nd"
    pattern = regex(expression)
    assert pattern.spans(text) == spans
    assert pattern.may_be_in_any(["x", text, "y"]) or not spans


def test_an_empty_pattern_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        exact("")
    with pytest.raises(UsageError):
        regex("")


def test_candidates_are_newest_first_and_can_be_filtered(index: Index) -> None:
    write(
        index,
        (message("some words", n, at=NOON - n * DAY, role="tool" if n % 2 else "user") for n in range(6)),
    )
    filtered = Query().with_filters(MessageFilter("role", "tool"))
    assert candidates(index, exact("me wor")) == [0, 1, 2, 3, 4, 5]
    assert candidates(index, exact("me wor"), filtered) == [1, 3, 5]
    assert candidates(index, exact("e"), filtered) == [1, 3, 5]


def test_a_literal_inside_a_word_is_found_in_order(index: Index) -> None:
    write(
        index,
        [message(f"{word}", n, at=NOON - n) for n, word in enumerate(["redis", "preredis", "rediscover"])],
    )
    assert candidates(index, exact("redis")) == [0, 1, 2]


def test_the_precise_query_excludes_words_that_are_not_adjacent(index: Index) -> None:
    write(index, (message("the cache and a redis", n, at=NOON - n) for n in range(1000)))
    write(
        index,
        [message("a redis.cache(", 5000, at=NOON - 5000), message("redis cached", 5001, at=NOON - 5001)],
    )
    found = candidates(index, exact("dis.cache("))
    assert len(found) < 500
    assert found[-1] == 5000
    assert found == sorted(found)
    assert candidates(index, exact("dis.cach"))[-2:] == [5000, 5001]


def test_a_literal_that_matches_very_many_terms_has_candidates(index: Index) -> None:
    write(index, (message(f"w{n}end cache", n, at=NOON - n) for n in range(40_000)))
    assert 39_000 in candidates(index, exact("end cache"))


def test_spans_are_character_positions() -> None:
    text = "é redis 中 Redis \ud800 redis"
    assert [text[slice(*span)] for span in exact("redis").spans(text)] == ["redis", "redis"]
    assert [text[slice(*span)] for span in regex("(?i)redis").spans(text)] == ["redis", "Redis", "redis"]
    assert [text[slice(*span)] for span in exact("REDIS 中", ignores_case=True).spans(text)] == ["redis 中"]
    assert regex("x*").spans("aaa") == []


@given(
    st.sampled_from([r"a+b", r"\bab", r"b\B", r"^a", r"b$", r"\Aa", r"b\z", r"(?m)^b$", r"a\sb", r"x?"]),
    st.lists(st.text("ab \n", max_size=6), max_size=5),
)
def test_the_joined_test_never_skips_a_matching_text(expression: str, texts: list[str]) -> None:
    pattern = regex(expression)
    assert pattern.may_be_in_any(texts) or not any(map(pattern.is_in, texts))


@given(st.text("aAbé \n", min_size=1, max_size=3), st.lists(st.text("aAbBéÉ \n", max_size=6), max_size=5))
def test_the_joined_test_never_skips_a_text_with_a_substring_in_another_case(
    substring: str, texts: list[str]
) -> None:
    pattern = exact(substring, ignores_case=True)
    assert pattern.may_be_in_any(texts) or not any(map(pattern.is_in, texts))


@pytest.mark.parametrize(
    ("text", "substring"),
    [("κόσμος", "ΚΌΣΜΟΣ"), ("STRASSE 5", "strasse"), ("Ёлка", "ёЛКА"), ("Ångström", "ÅNG")],
)
def test_case_is_ignored_beyond_ascii(index: Index, text: str, substring: str) -> None:
    write(index, [message(text, 1)])
    pattern = exact(substring, ignores_case=True)
    assert pattern.is_in(text)
    assert candidates(index, pattern) == [1]
