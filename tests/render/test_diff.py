"""A diff shows every line once, in order, and marks what changed within a line."""

import re
from html import unescape
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.model.message import Edit, Hunk
from backscroll.render.html import diff, highlighting
from backscroll.render.html.diff import DiffHtml, align_lines, changed_ranges
from backscroll.render.html.highlighting import CodeHighlighter, code_spans, language_of_path

lines = st.lists(st.text(alphabet="ab (){}=,\t<&é", max_size=12), max_size=9)


def html_of(*hunks: Hunk, path: str = "board.py", max_highlighted_chars: int = 10_000) -> str:
    return DiffHtml(CodeHighlighter(max_highlighted_chars)).render([Edit(path, hunks)])


def text_of(html: str) -> str:
    """Return the text that a browser shows inline."""
    html = re.sub(r'<span class="again".*?\n</span>', "", html, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]*>", "", html))


def changed(html: str) -> list[str]:
    return [text_of(found) for found in re.findall(r'<b class="changed">(.*?)</b>', html)]


@given(lines, lines)
def test_rows_contain_every_line_once_and_in_order(removed: list[str], added: list[str]) -> None:
    rows = align_lines(removed, added)
    assert [row.old for row in rows if row.old is not None] == list(range(len(removed)))
    assert [row.new for row in rows if row.new is not None] == list(range(len(added)))
    for row in rows:
        if row.is_same or row.is_pair:
            assert row.old is not None and row.new is not None
            assert row.is_same == (removed[row.old] == added[row.new])


def test_a_new_version_of_a_line_is_beside_the_old_one() -> None:
    removed = ["import zones", "utc = True", "print(utc)"]
    added = ["import datetime", "import zones", "zone = zones.local()", "utc = False", "print(utc)"]
    pairs = [(row.old, row.new) for row in align_lines(removed, added) if row.is_pair or row.is_same]
    assert pairs == [(0, 1), (1, 3), (2, 4)]


def test_reindented_lines_are_beside_each_other() -> None:
    removed = ["a = read()", "write(a)", "close()"]
    added = ["with lock:", "    a = read()", "    write(a)", "    close()"]
    rows = align_lines(removed, added)
    assert [(row.old, row.new) for row in rows] == [(None, 0), (0, 1), (1, 2), (2, 3)]


def test_a_long_hunk_is_aligned_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "_MAX_MATCHED_PAIRS", 5)
    rows = align_lines(["a", "b", "c"], ["b", "c"])
    assert [(row.old, row.new, row.is_same) for row in rows] == [
        (0, 0, False),
        (1, 1, False),
        (2, None, False),
    ]


@given(st.text(alphabet="ab ()=,\t", max_size=20), st.text(alphabet="ab ()=,\t", max_size=20))
def test_the_unmarked_words_of_two_lines_are_the_same(old: str, new: str) -> None:
    def unmarked(line: str, ranges: list[tuple[int, int]]) -> str:
        for start, end in reversed(ranges):
            line = line[:start] + line[end:]
        return "".join(line.split())

    old_ranges, new_ranges = changed_ranges(old, new)
    if old_ranges or new_ranges:
        assert unmarked(old, old_ranges) == unmarked(new, new_ranges)


def test_only_the_words_that_differ_are_marked() -> None:
    html = html_of(Hunk(("zone = local(9, 40)",), ("zone = local(10, 40)",)))
    assert changed(html) == ["9", "10"]
    assert changed(html_of(Hunk(("zone = local(9)",), ("zone = local(9, utc)",)))) == [", utc"]


def test_nothing_is_marked_in_lines_that_have_little_in_common() -> None:
    assert changed(html_of(Hunk(("zone = local(9)",), ("def board(quay):",)))) == []


@given(lines, lines, st.sampled_from([0, 10, 10_000]), st.sampled_from(["x.py", "x.ts", "x", "x.nothing"]))
def test_any_lines_are_shown_unchanged(removed: list[str], added: list[str], limit: int, path: str) -> None:
    shown = text_of(html_of(Hunk(tuple(removed), tuple(added)), path=path, max_highlighted_chars=limit))
    assert [line[1:] for line in shown.split("\n") if line[:1] in ("-", " ")] == removed
    assert [line[1:] for line in shown.split("\n") if line[:1] in ("+", " ")] == added


def test_lines_are_numbered_where_the_numbers_are_known() -> None:
    html = html_of(Hunk(("a = 1", "b = 2"), ("c = 3",), 41, 43))
    assert re.findall(r'<(del|ins) data-line="(\d+)"', html) == [("del", "41"), ("del", "42"), ("ins", "43")]
    assert "data-line" not in html_of(Hunk(("a = 1",), ("c = 3",)))
    assert "line 7" in text_of(html_of(Hunk((), ("c = 3",), 7, None)))  # only the old number is known


def test_code_is_highlighted_by_the_name_of_the_file() -> None:
    assert '<span class="k-k">def</span>' in html_of(Hunk((), ("def f():",)))
    assert '<span class="k-k">def</span>' not in html_of(Hunk((), ("def f():",)), path="f.unknown")
    assert '<span class="k-k">def</span>' not in html_of(Hunk((), ("def f():",)), max_highlighted_chars=3)


def test_a_string_of_several_lines_is_highlighted_to_its_end() -> None:
    spans = code_spans(['text = """one', "def two", '"""'], "python")
    assert spans is not None
    assert spans[1] == [("k-s2", "def two")]


def test_each_file_of_a_call_is_named() -> None:
    edits = [
        Edit("/home/zoe/ferry/a.py", (Hunk(("a",), ("b",)),)),
        Edit("/home/zoe/ferry/b.py", (Hunk((), ("c",)),), "create"),
    ]
    text = text_of(DiffHtml(CodeHighlighter(0), "/home/zoe/ferry/").render(edits))
    assert text.split("\n") == ["a.py", "-a", "+b", "b.py new file", "+c", "", ""]
    assert "a.py" not in text_of(
        DiffHtml(CodeHighlighter(0)).render(edits[:1])
    )  # the summary of the call names it


def test_missing_lines_are_gaps_unless_a_side_is_empty() -> None:
    assert html_of(Hunk(("a = 1",), ("a = 2", "b"))).count('<span class="gap"></span>') == 1
    assert html_of(Hunk(("a = 1", "b"), ("a = 2",))).count('<span class="gap new"></span>') == 1
    assert "gap" not in html_of(Hunk((), ("a", "b")))
    assert "gap" not in html_of(Hunk(("a", "b"), ()))


def test_a_call_without_changed_lines_has_no_diff() -> None:
    assert DiffHtml(CodeHighlighter(0)).render([Edit("a.py", (), "update", 3, 4)]) == ""


@pytest.mark.parametrize(
    ("path", "language"),
    [("a/b.py", "py"), ("a.test.yml", "yaml"), (r"C:\a\Makefile", "make"), ("README", ""), ("x.", "")],
)
def test_the_language_follows_from_the_path(path: str, language: str) -> None:
    assert language_of_path(path) == language


@pytest.mark.parametrize(
    ("package", "path"),
    [("backscroll.web", "static/app.css"), ("backscroll.render", "assets/page.css")],
)
def test_every_color_of_code_is_in_the_style_sheets(package: str, path: str) -> None:
    style = files(package).joinpath(path).read_text("utf-8")
    assert set(re.findall(r"\.k-(\w+)", style)) == highlighting._STYLED_CLASSES
