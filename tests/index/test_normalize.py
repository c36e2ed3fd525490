"""Normalization produces the same terms as Tantivy."""

import unicodedata

import pytest
import tantivy
from hypothesis import given
from hypothesis import strategies as st

from backscroll.index.analysis import fold_accents, non_ascii_bytes, normalize_words
from backscroll.index.schema import tokens_of
from tests.index.characters import ASSIGNED

# Ranges with accented letters; the rest is Asian scripts, symbols and unassigned code points.
CODE_POINTS = (*range(0x80, 0x3000), *range(0xA640, 0xAB70), *range(0xFB00, 0x10000))
WHITESPACE_TOKENIZER = tantivy.TextAnalyzerBuilder(
    tantivy.Tokenizer.whitespace()
).build()  # the tokenizer of the index
LOWERCASE_TOKENIZER = (
    tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase()).build()
)
FOLDING_TOKENIZER = (
    tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    .filter(tantivy.Filter.lowercase())
    .filter(tantivy.Filter.ascii_fold())
    .build()
)


def test_accents_and_ligatures_are_folded() -> None:
    assert tokens_of("Größe ŁÓDŹ ﬁle Ǧ café") == ["grosse", "lodz", "file", "g", "cafe"]


def test_every_character_folds_as_in_tantivy() -> None:
    for code in CODE_POINTS:
        char = chr(code)
        expected = [word.lower() for word in FOLDING_TOKENIZER.analyze(char)]
        if all(word.isascii() and word.isalnum() for word in expected):
            assert LOWERCASE_TOKENIZER.analyze(fold_accents(char)) == expected, hex(code)


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("οδυσσευς", ["Οδυσσεύς", "ΟΔΥΣΣΕΥΣ", "ΟΔΥΣΣΕΎΣ", "οδυσσεύσ", "Ὀδυσσεύς"]),
        ("μαιος", ["Μάιος", "ΜΆΙΟΣ", "μαΐος"]),
        ("istanbul", ["İstanbul", "ISTANBUL"]),
        ("еще", ["ещё", "ЕЩЁ", "Еще"]),
        ("йод", ["Йод", "ЙОД"]),
    ],
)
def test_spelling_variants_have_the_same_tokens(typed: str, written: list[str]) -> None:
    for word in written:
        assert tokens_of(word) == tokens_of(typed) == _normalized_words(word), word
    assert tokens_of("йод") != tokens_of("иод")


def test_characters_that_fold_to_several_words_stay() -> None:
    assert fold_accents("⑴") == "⑴"


def test_every_character_is_normalized_as_in_tantivy() -> None:
    for first in range(0, len(ASSIGNED), 256):
        codes = ASSIGNED[first : first + 256]
        chars = [char for char in map(chr, codes) if unicodedata.category(char) != "Cs"]
        # The number keeps each character apart from the others, and names the one that differs.
        text = "".join(f" {ord(char)} {char}" for char in chars)
        assert _normalized_words(text) == LOWERCASE_TOKENIZER.analyze(fold_accents(text)), hex(codes[0])


@pytest.mark.parametrize(
    "text", ["ΌΣΟΣ Σ", "İstanbul \u0307x", "ПриветМир — «да»", "Straẞe → ПУТЬ", "a\u0130\u0307b Ж"]
)
def test_words_outside_ascii_are_lowercased_and_separated(text: str) -> None:
    assert _normalized_words(text) == LOWERCASE_TOKENIZER.analyze(fold_accents(text))


@given(st.text())
def test_folding_is_idempotent(text: str) -> None:
    assert fold_accents(fold_accents(text)) == fold_accents(text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_and_its_normalized_bytes_have_the_same_words(text: str) -> None:
    assert _normalized_words(text) == LOWERCASE_TOKENIZER.analyze(fold_accents(text))


def _normalized_words(text: str) -> list[str]:
    raw = text.encode()
    return WHITESPACE_TOKENIZER.analyze(normalize_words(raw, non_ascii_bytes(raw)).decode())
