"""Results of tools that read a file, as highlighted code with line numbers."""

import re
from html import escape

from backscroll.model import ToolCall
from backscroll.model.text import sanitize
from backscroll.render.html.highlighting import CodeHighlighter, language_of_path, spans_to_html
from backscroll.render.html.markdown import preformatted_html
from backscroll.render.tool_calls import command_param, path_param

__all__ = ["result_html"]

# "     7→code" and "     7\tcode", as Claude Code writes them.
_NUMBERED_LINE = re.compile(r" *(\d{1,7})(?:→|\t)(.*)")
_READING_TOOL = re.compile(r"read|view", re.IGNORECASE)


def result_html(tool: ToolCall, highlighter: CodeHighlighter) -> str:
    """Return the result of a call: code if it is the content of a file, else plain text."""
    result = tool.result or ""
    path = path_param(tool)
    if path is None or command_param(tool) is not None or tool.status != "completed" or tool.edits:
        return preformatted_html(result, "result")
    lines = sanitize(result).split("\n")
    numbers, code = _numbered_lines(lines)
    if not code and _READING_TOOL.search(tool.name):
        code = lines
    spans = highlighter.spans(code, language_of_path(path)) if code else None
    if spans is None:
        return preformatted_html(result, "result")
    numbered = " numbered" if numbers else ""
    html = "".join(
        f'<span class="line"{_number(numbers, index)}>{spans_to_html(line)}\n</span>'
        for index, line in enumerate(spans)
    )
    rest = escape("\n".join(lines[len(code) :]))
    return f'<pre class="result listing{numbered}">{html}{rest}</pre>\n'


def _numbered_lines(lines: list[str]) -> tuple[list[str], list[str]]:
    """Return the numbers and the text of the first lines that have a number."""
    numbers, code = [], []
    for line in lines:
        if (found := _NUMBERED_LINE.fullmatch(line)) is None:
            break
        numbers.append(found[1])
        code.append(found[2])
    return numbers, code


def _number(numbers: list[str], index: int) -> str:
    return f' data-line="{numbers[index]}"' if numbers else ""
