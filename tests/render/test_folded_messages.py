"""Folded messages have a summary of one line, and files that were read are shown as code."""

import re
from html import unescape

import pytest
from msgspec.structs import replace

from backscroll.model.message import Message, Origin, ToolCall
from backscroll.render.html.highlighting import CodeHighlighter
from backscroll.render.html.session import TranscriptHtml, result_html
from backscroll.render.turns import MessageItem
from tests.render.sessions import AT, message


def html_of(one: Message) -> str:
    return TranscriptHtml().render(MessageItem(0, 1, one))


def summary_of(one: Message) -> str:
    """Return the text of the first line of a folded message."""
    found = re.search(r"<summary>(.*?)</summary>", html_of(one), re.DOTALL)
    assert found is not None
    return " ".join(unescape(re.sub(r"<[^>]*>", "", found[1])).split())


def call(result: str | None, name: str = "Read", **params: object) -> ToolCall:
    return ToolCall(id="1", name=name, params=params, result=result, status="completed")


def tool_message(tool: ToolCall) -> Message:
    return Message(id="1", role="tool", content="", origin=Origin("a", "line 1"), tool=tool)


def test_the_summary_of_a_thought_is_its_first_words() -> None:
    assert summary_of(message("thinking", "The zone\nis <assumed>.")) == (
        "Thinking The zone is <assumed>. 2026-10-03 07:00"
    )


def test_a_compaction_is_called_by_its_name() -> None:
    one = Message(id="1", role="system", content="So far.", origin=Origin("a", "line 1"), kind="compaction")
    assert summary_of(one) == "Compaction So far."


@pytest.mark.parametrize(
    ("result", "summary"),
    [
        ("11 passed\n", "Bash pytest → 11 passed"),
        ("11 passed\n2 failed\n", "Bash pytest 2 lines"),
        ("<tool_use_error>No such file</tool_use_error>", "Bash pytest → No such file"),
        ("x" * 200, "Bash pytest 1 line"),
        ("", "Bash pytest"),
        (None, "Bash pytest"),
    ],
)
def test_a_short_result_is_in_the_summary_of_its_call(result: str | None, summary: str) -> None:
    assert summary_of(tool_message(call(result, "Bash", command="pytest"))) == summary


def test_a_path_alone_is_only_in_the_summary() -> None:
    assert "arguments" not in html_of(tool_message(call("x", file_path="/home/zoe/zones.py")))
    assert "offset: 3" in html_of(tool_message(call("x", file_path="/home/zoe/zones.py", offset=3)))
    assert "arguments" in html_of(tool_message(call("x", file_path="/home/zoe/" + "x" * 100)))


def test_an_inferred_time_of_a_call_is_marked() -> None:
    one = replace(tool_message(call("ok", "Bash", command="pytest")), timestamp=AT)
    assert summary_of(replace(one, timestamp_source="turn")).endswith("~2026-10-03 07:00")
    assert summary_of(replace(one, timestamp_source="stored")).endswith(" 2026-10-03 07:00")


def listing(tool: ToolCall, max_chars: int = 10_000) -> str:
    return result_html(tool, CodeHighlighter(max_chars))


def test_a_file_that_was_read_is_highlighted_with_its_line_numbers() -> None:
    html = listing(call("    41→def f():\n    42→    return '<b>'", file_path="/home/zoe/zones.py"))
    assert re.findall(r'data-line="(\d+)"', html) == ["41", "42"]
    assert '<span class="k-k">def</span>' in html
    assert "<b>" not in html
    assert "41→" not in html


def test_text_after_the_lines_of_a_file_is_kept() -> None:
    html = listing(call("     1→a = 1\n\n<note>short</note>", file_path="a.py"))
    assert html.endswith("</span>\n&lt;note&gt;short&lt;/note&gt;</pre>\n")


def test_a_file_without_line_numbers_is_highlighted_if_the_tool_reads() -> None:
    assert 'class="k-k"' in listing(call("def f(): pass", target_file="a.py"))
    assert 'class="k-k"' not in listing(call("def f(): pass", "Delete", target_file="a.py"))


@pytest.mark.parametrize(
    "tool",
    [
        call("     1→def f(): pass", "Bash", command="cat -n a.py", path="a.py"),
        call("     1→def f(): pass", pattern="def"),
        call("     1→def f(): pass", file_path="a.unknown"),
        ToolCall(id="1", name="Read", params={"file_path": "a.py"}, result="def", status="failed"),
    ],
)
def test_other_results_are_plain_text(tool: ToolCall) -> None:
    assert listing(tool).startswith('<pre class="result">')
    assert "k-k" not in listing(tool)


def test_a_long_file_is_plain_text() -> None:
    assert listing(call("     1→def f(): pass", file_path="a.py"), max_chars=5).startswith(
        '<pre class="result">'
    )
