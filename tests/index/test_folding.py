"""Texts without accents, as the engine would make them."""

import sys
import unicodedata

import pytest
import tantivy
from hypothesis import given
from hypothesis import strategies as st

from backscroll.index.engine.schema import tokens_of
from backscroll.index.text.normalize import fold_accents, normalize_words
from backscroll.index.text.tokenize import non_ascii_bytes

# Where there are letters with accents, and much else; the rest is Asian scripts, symbols and nothing.
LETTERS = (*range(0x80, 0x3000), *range(0xA640, 0xAB70), *range(0xFB00, 0x10000))
WRITTEN = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()  # as the index cuts it
LOWER = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase()).build()
ENGINE = (
    tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    .filter(tantivy.Filter.lowercase())
    .filter(tantivy.Filter.ascii_fold())
    .build()
)


def test_accents_and_ligatures_are_taken_off() -> None:
    assert tokens_of("Größe ŁÓDŹ ﬁle Ǧ café") == ["grosse", "lodz", "file", "g", "cafe"]


def test_every_character_folds_as_the_engine_folds_it() -> None:
    for code in LETTERS:
        char = chr(code)
        engine = [word.lower() for word in ENGINE.analyze(char)]
        if all(word.isascii() and word.isalnum() for word in engine):
            assert LOWER.analyze(fold_accents(char)) == engine, hex(code)


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
def test_letters_that_are_typed_otherwise_are_the_same(typed: str, written: list[str]) -> None:
    for word in written:
        assert tokens_of(word) == tokens_of(typed) == _bare(word), word
    assert tokens_of("йод") != tokens_of("иод")


def test_what_the_engine_would_make_several_words_of_is_left_alone() -> None:
    assert fold_accents("⑴") == "⑴"


def test_every_character_is_bare_as_the_engine_folds_it() -> None:
    for code in range(0x80, sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.category(char) != "Cs":
            assert _bare(char) == LOWER.analyze(fold_accents(char)), hex(code)


@pytest.mark.parametrize(
    "text", ["ΌΣΟΣ Σ", "İstanbul \u0307x", "ПриветМир — «да»", "Straẞe → ПУТЬ", "a\u0130\u0307b Ж"]
)
def test_words_that_are_not_ascii_are_small_and_between_spaces(text: str) -> None:
    assert _bare(text) == LOWER.analyze(fold_accents(text))


@given(st.text())
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold_accents(fold_accents(text)) == fold_accents(text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_and_its_bare_bytes_have_the_same_words(text: str) -> None:
    assert _bare(text) == LOWER.analyze(fold_accents(text))


def _bare(text: str) -> list[str]:
    raw = text.encode()
    return WRITTEN.analyze(normalize_words(raw, non_ascii_bytes(raw)).decode())
