"""A page shows any text and never executes it."""

import re
from html.parser import HTMLParser

from hypothesis import given

from backscroll.model.text import sanitize
from backscroll.render.html.highlighting import highlight_code
from backscroll.render.html.pages import index_page, page_end, page_start
from backscroll.render.html.session import html
from tests.render.sessions import SUMMARY, items, message, session, texts

VOID = {"meta", "link", "input", "br", "hr"}
ALLOWED_TAGS = {
    "html", "head", "meta", "link", "title", "style", "body", "div", "input", "output", "button", "main",
    "header", "h1", "h2", "h3", "h4", "h5", "h6", "dl", "dt", "dd", "section", "article", "p", "a", "time",
    "pre", "code", "span", "details", "summary", "b", "small", "ins", "del", "ul", "ol", "li", "nav",
    "footer", "kbd", "script", "em", "strong", "s", "blockquote", "hr", "br", "table", "thead", "tbody",
    "tr", "th", "td",
}  # fmt: skip
ALLOWED_ATTRIBUTES = {
    "class", "id", "href", "rel", "open", "type", "placeholder", "aria-label", "role", "title", "lang",
    "charset", "http-equiv", "content", "name", "start", "data-value", "data-line",
}  # fmt: skip


class StrictParser(HTMLParser):
    """Parser that fails on unclosed elements, unknown elements and unknown attributes."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str]] = []
        self.texts: dict[str, list[str]] = {}
        self.scripts: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED_TAGS, tag
        given = dict(attrs)
        assert given.keys() <= ALLOWED_ATTRIBUTES, given
        if tag == "a":
            self.links.append(given.get("href") or "")
        if tag not in VOID:
            self.open.append((tag, given.get("class") or ""))
            if tag in ("pre", "h1", "dd"):
                self.texts.setdefault(f"{tag}.{given.get('class') or ''}", []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][0] == "script":
            self.scripts.append(data)
        for tag, name in self.open:
            if tag in ("pre", "h1", "dd"):
                self.texts[f"{tag}.{name}"][-1] += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")


def read(page: str) -> StrictParser:
    parser = StrictParser()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def without_first_break(text: str) -> str:
    """Drop one newline after <pre>, as browsers do and this parser does not."""
    return text[1:] if text.startswith("\n\n") else text


@given(texts)
def test_any_text_is_shown_unchanged_and_adds_no_element(text: str) -> None:
    summary, content = session(text)
    page = read("".join(html(summary, content)))
    shown = sanitize(text)
    texts = [without_first_break(block) for block in page.texts["pre.text"]]
    # prompt, thinking, text of a tool call (unless blank), error, system, task and thinking of the subagent
    assert texts.count(shown) >= 6 - (not shown.strip())
    results = [without_first_break(block) for block in page.texts.get("pre.result", [])]
    assert results == ([shown, shown] if shown.strip() and text.strip() else results)
    assert all(re.match(r"#|https?://|mailto:", link, re.IGNORECASE) for link in page.links)
    assert len(page.scripts) == 1
    assert "alert(1)" not in page.scripts[0]


@given(texts)
def test_an_index_page_shows_any_title_as_text(text: str) -> None:
    summary, _ = session(text)
    page = read("".join(index_page([(summary, "a b.html")])))
    assert page.links == ["a%20b.html"]


def test_a_page_loads_nothing() -> None:
    page = "".join(html(SUMMARY, items(message("assistant", "![p](https://x.example/p.png) <img src=y>"))))
    assert "src=" not in page.replace("&lt;img src=y&gt;", "").replace("-src ", "")
    assert not re.search(r"(?:src|href)=\"(?!#|data:image/svg)", page)
    assert "url(" not in page
    assert "@import" not in page
    policy = re.search(r'Policy" content="([^"]+)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'")


def test_the_policy_allows_only_the_script_and_style_of_the_page() -> None:
    from base64 import b64encode
    from hashlib import sha256

    for name in ("session", "index"):
        page = page_start("x", name) + page_end(name)
        for tag in ("script", "style"):
            (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
            digest = b64encode(sha256(body.encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in page


def test_only_web_links_are_links() -> None:
    text = "[a](https://x.example) [b](javascript:alert(1)) [c](file:///etc/passwd) [d](data:text/html,x)"
    page = read("".join(html(SUMMARY, items(message("assistant", text + " <JaVaScRiPt:x>")))))
    assert [link for link in page.links if not link.startswith("#")] == ["https://x.example"]


def test_code_is_highlighted_without_changing_it() -> None:
    code = "\n\ndef f(x):\n    return '<b>'  # ok\n\n"
    colored = highlight_code(code, "python")
    assert '<span class="k-k">def</span>' in colored
    plain = StrictParser()
    plain.feed(f'<pre class="x">{colored}</pre>')
    assert plain.texts["pre.x"] == [code]
    assert highlight_code(code, "no such language") == ""
    assert highlight_code("x" * 1_000_000, "python") == ""


def test_a_line_of_a_megabyte_is_shown_completely() -> None:
    line = "a<b" * 350_000
    page = read("".join(html(SUMMARY, items(message("user", line), message("assistant", line)))))
    assert page.texts["pre.text"] == [line, line]
