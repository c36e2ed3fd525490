"""Text is shown as Markdown and cannot affect the page around it."""

import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from backscroll.model.message import Edit, Hunk, TimeSource, ToolCall
from backscroll.model.text import sanitize
from backscroll.render.markdown import code_fence, code_span, escape_markdown, markdown, safe_markdown
from backscroll.render.plain_text import plain_text
from tests.render.sessions import AT, SUMMARY, items, message, session, texts

# HTML of the page itself, with any escaped text in it.
PAGE_HTML = re.compile(
    r"(?:<details(?: open)?>\n)?(?:<summary>(?:[^<]|</?b>|</?code>)*</summary>\n?)?|</details>\n?"
    r"|<details>\n<summary>Result</summary>\n?"
)


class PermissiveMarkdownIt(MarkdownIt):
    """Parser that accepts every link."""

    def validateLink(self, url: str) -> bool:  # noqa: N802  overrides a method of the library
        return True


def parse(page: str) -> list[Token]:
    return PermissiveMarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(page)


def flatten(tokens: list[Token]) -> list[Token]:
    return [part for token in tokens for part in (token, *(token.children or ()))]


@given(texts)
def test_no_text_adds_html_images_or_unusual_links(text: str) -> None:
    summary, content = session(text)
    page = "".join(markdown(summary, content))
    for token in flatten(parse(page)):
        assert token.type not in ("html_inline", "image"), page
        assert token.type != "html_block" or PAGE_HTML.fullmatch(token.content), token.content
        href = str(token.attrs.get("href", "")) if token.type == "link_open" else ""
        assert re.match(r"(?:https?://|mailto:|#|[^:]*$)", href, re.IGNORECASE), href


@given(texts)
def test_every_collapsed_block_is_closed(text: str) -> None:
    summary, content = session(text)
    tokens = parse("".join(markdown(summary, content)))
    blocks = "".join(token.content for token in tokens if token.type == "html_block")
    assert blocks.count("<details") == blocks.count("</details>")
    assert tokens[-2].content == "The end of it."
    assert tokens[-2].level == 1


@given(texts)
def test_tool_output_is_shown_unchanged(text: str) -> None:
    summary, content = session(text)
    fences = [token.content for token in parse("".join(markdown(summary, content))) if token.type == "fence"]
    shown = sanitize(text).removesuffix("\n") + "\n"
    if sanitize(text).strip():
        assert fences.count(shown.replace("\x00", "\ufffd")) >= 3  # thinking, results, the command


@pytest.mark.parametrize("write", [markdown, plain_text])
@pytest.mark.parametrize(("source", "mark"), [("stored", ""), ("neighbour", "~")])
def test_an_inferred_time_has_a_mark(
    write: Callable[..., Iterator[str]], source: TimeSource, mark: str
) -> None:
    call = ToolCall(id="c", name="Bash", params={"command": "ls"}, result="a", status="completed")
    messages = [message("user", "go"), message("tool", tool=call)]
    timed = [replace(each, timestamp_source=source) for each in messages]
    page = "".join(write(SUMMARY, items(*timed))).partition("go")
    times = re.findall(rf"(~?){AT:%Y-%m-%d %H:%M}", page[0][-40:] + page[2])
    assert len(times) == 2
    assert set(times) == {mark}


@given(texts)
def test_a_title_is_one_heading(text: str) -> None:
    tokens = parse(f"# x{escape_markdown(text)}x\n")
    assert [token.type for token in tokens] == ["heading_open", "inline", "heading_close"]


@given(texts)
def test_a_code_span_contains_only_code(text: str) -> None:
    span = code_span(text)
    parts = flatten(parse(f"a {span} b"))
    assert {part.type for part in parts} <= {
        "paragraph_open", "inline", "paragraph_close", "text", "code_inline",
    }  # fmt: skip
    assert bool(span) == (sum(part.type == "code_inline" for part in parts) == 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use `Vec<T>` and **bold**.", "Use `Vec<T>` and **bold**."),
        ("a <b>x</b>", r"a \<b>x\</b>"),
        ("```rust\nlet x: Vec<T>;\n```", "```rust\nlet x: Vec<T>;\n```"),
        ("```py\nnever closed", "```py\nnever closed\n```"),
        ("# Big\n\ntext", "#### Big\n\ntext"),
        ("| a |\n|---|\n| <i> |", "| a |\n|---|\n| \\<i> |"),
        ("![p](http://x/p.png)", r"\![p](http://x/p.png)"),
        ("- one\n  - two", "- one\n  - two"),
    ],
)
def test_markdown_stays_markdown(text: str, expected: str) -> None:
    assert safe_markdown(text) == f"{expected}\n"


def test_text_that_cannot_be_escaped_is_fenced() -> None:
    assert safe_markdown("[x](javascript:alert(1))") == code_fence("[x](javascript:alert(1))")


def test_a_fence_is_longer_than_any_fence_inside() -> None:
    assert code_fence("a\n`````\nb", "text").startswith("``````text\n")


def test_an_edit_is_a_diff() -> None:
    edit = Edit("/ferry/board.py", (Hunk(("old",), ("new",), 3, 3),))
    call = ToolCall(id="c", name="Edit", params={}, result="ok", status="completed", edits=(edit,))
    page = "".join(markdown(SUMMARY, items(message("tool", tool=call))))
    assert "```diff\n--- /ferry/board.py\n+++ /ferry/board.py\n@@ -3,1 +3,1 @@\n-old\n+new\n```" in page
