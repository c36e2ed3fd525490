"""Text measured in terminal cells."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich import cells as rich_cells

from backscroll.render.terminal_text import (
    cell_width,
    pad,
    prefix_length,
    split_graphemes,
    suffix_length,
    truncate,
    wrap,
    wrap_spans,
)

TEXTS = st.text(st.sampled_from("ab é日本語。e\u0301🚢  \u200d\ufe0f❤👩💻"), max_size=80)
SAMPLES = {
    "ascii": "the ferry leaves at noon",
    "latin": "café, naïve, Škoda",
    "box drawing": "── 1 · You │ ▸ …",
    "cyrillic": "паром отходит в полдень",
    "chinese": "渡轮中午出发。",
    "japanese": "字形になることがある。「はい」",
    "half width": "ﾊﾝｶｸ と ＡＢＣ",
    "korean": "배는 정오에 떠난다",
    "korean in parts": "\u1112\u1161\u11ab",
    "combining": "e\u0301 a\u0308 o\u0302\u0323",
    "devanagari": "नमस्ते दुनिया",
    "thai": "สวัสดีครับ",
    "arabic": "مرحبا بالعالم",
    "emoji": "🚢 🎉 🫠",
    "skin tone": "👍🏽 👋🏿",
    "joined emoji": "👩‍💻 👨‍👩‍👧‍👦 🏳️‍🌈 ❤️‍🔥",
    "flags": "🇯🇵🇩🇪🇧🇷",
    "variation selectors": "❤️ ❤ ☀️ ✔️ ⚠️ ☺︎",
    "keycaps": "1️⃣ #️⃣",
    "zero width": "a\u200cb\u2060c\ufeffd\u00ade",
    "joiner at the end": "👩\u200d",
    "selector after a wide character": "🚢\ufe0f日\ufe0f",
    "mathematical": "∑ ≤ √ ≈ ∞",
}


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_width_agrees_with_rich(text: str) -> None:
    spans, width = rich_cells.split_graphemes(text)
    assert list(split_graphemes(text)) == spans
    assert cell_width(text) == width == rich_cells.cell_len(text)


def test_every_assigned_character_has_the_width_that_rich_reports() -> None:
    for character in map(chr, [*range(0xA0, 0xD800), *range(0xE000, 0x20000)]):
        if unicodedata.category(character) not in ("Cn", "Cc"):
            assert cell_width(character) == rich_cells.cell_len(character), hex(ord(character))


def test_a_wide_character_takes_two_cells_and_a_combining_one_none() -> None:
    assert [cell_width(text) for text in ("abc", "日本", "e\u0301", "🚢", "")] == [3, 4, 1, 2, 0]


@given(TEXTS, st.integers(1, 40))
def test_truncated_text_fits_and_padded_text_fills_the_width(text: str, width: int) -> None:
    assert cell_width(truncate(text, width)) <= width
    assert cell_width(pad(text, width)) == width
    assert cell_width(pad(text, width, is_right=True)) == width


@given(TEXTS, st.integers(0, 40))
def test_the_longest_prefix_and_suffix_that_fit_are_found(text: str, width: int) -> None:
    spans = list(split_graphemes(text))
    starts = [0, *(end for _, end, _ in spans)]
    fits = [end for end in starts if sum(cells for _, stop, cells in spans if stop <= end) <= width]
    assert prefix_length(text, width) in fits
    assert text[len(text) - suffix_length(text, width) :] in {text[start:] for start in starts}


@given(TEXTS, st.integers(2, 40))
@example(" 。", 2)
def test_wrapping_removes_only_spaces_and_every_line_fits(text: str, width: int) -> None:
    lines = list(wrap(text, width))
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(cell_width(line) <= width for line in lines)


@given(TEXTS, st.integers(2, 40))
def test_spans_of_a_wrapped_line_skip_only_spaces_and_fit(text: str, width: int) -> None:
    spans = wrap_spans(text, width)
    assert "".join(text[start:end] for start, end in spans).replace(" ", "") == text.replace(" ", "")
    assert all(cell_width(text[start:end]) <= width for start, end in spans)


def test_a_line_is_broken_between_words() -> None:
    assert list(wrap("the ferry leaves at noon", 10)) == ["the ferry", "leaves at", "noon"]


def test_continuation_lines_keep_the_indentation() -> None:
    assert list(wrap("  - one two three", 10)) == ["  - one", "  two", "  three"]


def test_a_word_longer_than_the_line_is_broken_at_the_width() -> None:
    assert list(wrap("abcdefghij", 4)) == ["abcd", "efgh", "ij"]


def test_a_joined_emoji_is_not_broken() -> None:
    assert list(wrap("👩‍💻👩‍💻👩‍💻", 4)) == ["👩‍💻👩‍💻", "👩‍💻"]
    assert truncate("ab👩‍💻cd", 4) == "ab…"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("字形になることがある。", ["字形になる", "ことがあ", "る。"]),
        ("Georgia だと日本語", ["Georgia だ", "と日本語"]),
    ],
)
def test_japanese_is_broken_anywhere_except_before_closing_punctuation(text: str, lines: list[str]) -> None:
    assert list(wrap(text, 10)) == lines
