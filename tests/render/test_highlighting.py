"""Code is highlighted the same whether it comes from a lexer or from the cache."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.render.html import highlighting
from backscroll.render.html.highlighting import code_spans


@given(st.text(max_size=60), st.sampled_from(["python", "js", "no such language"]))
def test_cached_spans_are_those_of_the_lexer(code: str, language: str) -> None:
    lines = code.split("\n")
    first = code_spans(lines, language)
    assert code_spans(lines, language) == first
    if first is not None:
        assert ["".join(text for _, text in spans) for spans in first] == lines


def test_known_code_is_not_lexed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["def ferry() -> None:", "    return  # at once"]
    expected = code_spans(lines, "python")
    assert expected is not None
    monkeypatch.setattr(highlighting, "_lex", None)
    assert code_spans(lines, "Python") == expected
