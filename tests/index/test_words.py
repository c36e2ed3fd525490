"""What a text is found by."""

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.index.text.tokenize import (
    _stands_alone,
    analyze,
    bigrams,
    extract_cjk,
    split_cjk,
    split_identifier,
    to_nfc,
)


@pytest.mark.parametrize(
    ("identifier", "parts"),
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
        ("snake_case_name", ""),  # falls apart where the index cuts words
        ("3f2a9b4c8d1e", ""),
        ("aGVsbG8gd29ybGQhIHRoaXMgaXMgYmFzZTY0", ""),
    ],
)
def test_compound_identifiers_are_found_by_their_parts(identifier: str, parts: str) -> None:
    assert analyze(f"({identifier}, x)").parts == parts


def test_a_part_is_told_once() -> None:
    assert analyze("getName setName getName").parts == "Name get set"


@given(st.text(alphabet="ab 中文字/._é") | st.text())
def test_a_text_cut_apart_is_all_there(text: str) -> None:
    pieces = split_cjk(text)
    assert "".join(pieces) == text
    assert pieces[1::2] == extract_cjk(text)[1]


def test_chinese_japanese_and_korean_are_cut_out_and_paired() -> None:
    found = analyze("使用redis缓存。テスト")
    assert (found.words.decode(), found.pairs) == (" redis 。 ", "使用 用 缓存 存 テス スト ト")


def test_a_text_of_plain_words_is_left_alone() -> None:
    text = "nothing — to «see» here".encode()
    assert analyze(text).words is text


def test_accents_are_joined_to_their_letters() -> None:
    found = analyze("re\u0301sume\u0301")
    assert found.words.decode() == "résumé"
    assert found.is_odd


def test_half_characters_do_no_harm() -> None:
    found = analyze("left \ud800 right")
    assert found.words == b"left ? right"
    assert found.is_odd


@pytest.mark.parametrize(("length", "is_odd"), [(150, False), (256, True), (5000, True)])
def test_a_text_with_a_word_too_long_for_the_dictionary_is_marked(length: int, is_odd: bool) -> None:
    assert analyze(f"short {'x' * length} short").is_odd is is_odd


def test_a_long_text_of_short_words_is_not_odd() -> None:
    assert not analyze("word " * 10_000).is_odd


@given(st.text("abXY019é_ ", max_size=200))
def test_every_identifier_that_has_words_inside_is_found(text: str) -> None:
    seam = re.compile(r"[a-zé][A-Z]|[A-Z]{2}[a-zé]|[A-Za-zé][0-9]{3}")
    found = {word.encode() for word in re.findall(r"[^\W_]+", text) if seam.search(word)}
    parts = {part for word in found if len(word) <= 64 for part in split_identifier(word)}
    assert analyze(text).parts == " ".join(sorted(parts))


@given(st.lists(st.integers(0, 300), max_size=20))
def test_a_text_is_odd_when_a_word_is_longer_than_letters_may_grow(lengths: list[int]) -> None:
    assert analyze(" ".join("x" * length for length in lengths)).is_odd is any(size > 200 for size in lengths)


@given(st.text(min_size=1))
def test_every_character_of_a_run_begins_a_pair(run: str) -> None:
    assert [pair[0] for pair in bigrams(run)] == list(run)


@given(st.text())
def test_any_text_can_be_analysed(text: str) -> None:
    found = analyze(text)
    "".join((found.words.decode(), found.parts, found.pairs)).encode()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_and_its_bytes_are_analysed_alike(text: str) -> None:
    assert analyze(text.encode()) == analyze(text)


@given(st.from_regex(r"[A-Za-z0-9é]{1,64}", fullmatch=True))
def test_parts_are_parts(compound: str) -> None:
    assert all(part in compound for part in split_identifier(compound.encode()))


def test_signs_are_left_where_they_are_and_join_nothing() -> None:
    """What is passed over because it is a sign would come out of joining and cutting as it went in."""
    for code in range(0x80, sys.maxunicode + 1):
        char = chr(code)
        if _stands_alone(char):
            text = f"e{char}e {char}{char}"
            assert extract_cjk(to_nfc(text)) == (text, [])


def test_emoji_are_no_words() -> None:
    assert analyze("done 🎉✅ ⚠️ 👩‍💻 parseIt") == analyze("done 🎉✅ ⚠️ 👩‍💻 parseIt".encode())
    assert analyze("🎉 e\u0301 ⚠️").is_odd  # beside a sign, an accent is joined to its letter all the same
    assert analyze("🎉 漢字 ⚠️").pairs == "漢字 字"
