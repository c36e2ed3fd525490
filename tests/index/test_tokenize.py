"""Tokenization of identifiers and CJK text."""

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.index.analysis import (
    _CJK,
    _treatment,
    analyze,
    bigrams,
    extract_cjk,
    split_cjk,
    split_identifier,
)
from tests.index.characters import ASSIGNED


@pytest.mark.parametrize(
    ("identifier", "subwords"),
    [
        ("parseHTTPRequest", "HTTP Request parse"),
        ("useEffect", "Effect use"),
        ("HTTPServer", "HTTP Server"),
        ("getURLs", "URLs get"),
        ("E1234", "1234"),
        ("test123", "123 test"),
        ("iPhone12Pro", "12 Phone Pro"),
        ("caféLatte", "Latte café"),
        ("plain", ""),
        ("IDs", ""),
        ("CONSTANT", ""),
        ("snake_case_name", ""),  # the index splits it anyway
        ("3f2a9b4c8d1e", ""),
        ("aGVsbG8gd29ybGQhIHRoaXMgaXMgYmFzZTY0", ""),
    ],
)
def test_compound_identifiers_have_subwords(identifier: str, subwords: str) -> None:
    assert analyze(f"({identifier}, x)").subwords == subwords


def test_a_subword_occurs_once() -> None:
    assert analyze("getName setName getName").subwords == "Name get set"


@given(st.text(alphabet="ab 中文字/._é") | st.text())
def test_split_text_is_complete(text: str) -> None:
    pieces = split_cjk(text)
    assert "".join(pieces) == text
    assert pieces[1::2] == extract_cjk(text)[1]


def test_cjk_runs_are_extracted_as_bigrams() -> None:
    found = analyze("使用redis缓存。テスト")
    assert (found.words.decode(), found.cjk_bigrams) == (" redis 。 ", "使用 用 缓存 存 テス スト ト")


def test_a_text_of_plain_words_is_unchanged() -> None:
    text = "nothing — to «see» here".encode()
    assert analyze(text).words is text


def test_combining_accents_are_composed() -> None:
    found = analyze("re\u0301sume\u0301")
    assert found.words.decode() == "résumé"
    assert found.is_irregular


def test_lone_surrogates_are_replaced() -> None:
    found = analyze("left \ud800 right")
    assert found.words == b"left ? right"
    assert found.is_irregular


@pytest.mark.parametrize(("length", "is_irregular"), [(150, False), (256, True), (5000, True)])
def test_a_text_with_an_overlong_word_is_irregular(length: int, is_irregular: bool) -> None:
    assert analyze(f"short {'x' * length} short").is_irregular is is_irregular


def test_a_long_text_of_short_words_is_not_irregular() -> None:
    assert not analyze("word " * 10_000).is_irregular


@given(st.text("abXY019é_ ", max_size=200))
def test_every_compound_identifier_is_split(text: str) -> None:
    boundary = re.compile(r"[a-zé][A-Z]|[A-Z]{2}[a-zé]|[A-Za-zé][0-9]{3}")
    found = {word.encode() for word in re.findall(r"[^\W_]+", text) if boundary.search(word)}
    subwords = {subword for word in found if len(word) <= 64 for subword in split_identifier(word)}
    assert analyze(text).subwords == " ".join(sorted(subwords))


@given(st.lists(st.integers(0, 300), max_size=20))
def test_a_text_with_a_word_over_200_letters_is_irregular(lengths: list[int]) -> None:
    assert analyze(" ".join("x" * length for length in lengths)).is_irregular is any(
        size > 200 for size in lengths
    )


@given(st.text(min_size=1))
def test_every_character_of_a_run_begins_a_pair(run: str) -> None:
    assert [pair[0] for pair in bigrams(run)] == list(run)


@given(st.text())
def test_any_text_can_be_analyzed(text: str) -> None:
    found = analyze(text)
    "".join((found.words.decode(), found.subwords, found.cjk_bigrams)).encode()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_and_its_bytes_have_the_same_analysis(text: str) -> None:
    assert analyze(text.encode()) == analyze(text)


@given(st.from_regex(r"[A-Za-z0-9é]{1,64}", fullmatch=True))
def test_subwords_are_substrings(identifier: str) -> None:
    assert all(subword in identifier for subword in split_identifier(identifier.encode()))


def test_only_characters_that_need_it_are_normalized() -> None:
    """Every character that NFC can combine, reorder or replace is marked for it."""
    for code in ASSIGNED:
        char = chr(code)
        parts = unicodedata.decomposition(char).split()
        if parts and not parts[0].startswith("<"):
            assert all(_treatment(chr(int(part, 16))) == "compose" for part in parts[1:])
        treatment = _treatment(char)
        if unicodedata.combining(char):
            assert treatment == "compose"
        if treatment != "compose":
            text = f"e{char}e {char}{char}"
            assert unicodedata.is_normalized("NFC", text)
        if treatment == "keep":
            assert not extract_cjk(char)[1]


MULTILINGUAL = st.text(
    st.sampled_from(
        "ab XY_/.→│─—«éçãüñßİё你好世界的，。検索するハﾊﾟがカ゛ばкодЙй한국어"
        "ᄒ\u1161\u11abกำไท\u0301\u0308\u3099🎉\ufe0f\u200d"
    )
)


@given(MULTILINGUAL | st.text(st.characters(exclude_categories=["Cs"])))
def test_shortcuts_do_not_change_the_analysis(text: str) -> None:
    composed = unicodedata.normalize("NFC", text)
    runs = [unicodedata.normalize("NFKC", run) for run in re.findall(_CJK, composed)]
    found = analyze(text)
    assert found.words.decode() == re.sub(_CJK, " ", composed)
    assert found.cjk_bigrams == " ".join(
        pair for run in runs for pair in [*map("".join, pairwise(run)), run[-1]]
    )
    assert found.is_irregular is (composed != text or runs != re.findall(_CJK, composed))


def test_emoji_are_not_words() -> None:
    assert analyze("done 🎉✅ ⚠️ 👩‍💻 parseIt") == analyze("done 🎉✅ ⚠️ 👩‍💻 parseIt".encode())
    assert analyze("🎉 e\u0301 ⚠️").is_irregular  # the emoji shortcut does not skip composition
    assert analyze("🎉 漢字 ⚠️").cjk_bigrams == "漢字 字"
