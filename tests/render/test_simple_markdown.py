"""Simple text is converted without a parser, with the same result."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.model.text import sanitize
from backscroll.render.html.markdown import _parser, markdown_to_html
from backscroll.render.markdown import _is_safe, blockquote, safe_markdown


@pytest.mark.parametrize(
    "text",
    [
        "Plain text, in two\nlines.\n\nAnd one more.",
        "A word in `code`, a_name and **bold text**.",
        "So:\n\n```python\nzone = 1\n```\nDone.",
        '`a<b` and "quoted" & more',
        "**not bold ** and ** not**",
        "`a` `b",
        "```\nnot closed",
        "a | b\n--|--\n`x | y` | z",
        "- a list\n- of two",
        "a  \nb",
    ],
)
def test_simple_text_has_the_html_of_the_parser(text: str) -> None:
    assert markdown_to_html(text) == _parser().render(text)


_PARTS = [
    "a",
    "word ",
    "`",
    "`x<y`",
    "```\n",
    "\n```",
    "\n",
    "\n\n",
    "**",
    "**b**",
    " ",
    "_",
    "<b>",
    "[x](y)",
    "|",
    "\t",
]


@given(st.lists(st.sampled_from(_PARTS), max_size=9).map("".join))
def test_any_text_has_the_html_of_the_parser(text: str) -> None:
    assert markdown_to_html(text) == _parser().render(sanitize(text))


@given(st.lists(st.sampled_from(_PARTS), max_size=9).map("".join))
def test_text_that_is_not_parsed_is_safe(text: str) -> None:
    for markdown in (safe_markdown(text), blockquote(text)):
        assert _is_safe(markdown)


def test_simple_text_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise AssertionError("parsed")

    for name in ("html.markdown._parser", "markdown._parser", "markdown._permissive_parser"):
        monkeypatch.setattr(f"backscroll.render.{name}", fail)
    text = "Use `a<b` in **two** lines.\n\n```python\nzone = [1]\n```\n"
    assert "<strong>two</strong>" in markdown_to_html(text)
    assert safe_markdown(text) == text
    assert blockquote("Look at `a<b`") == "> Look at `a<b`\n"
