"""A session as Markdown for code hosting sites, and escaping of text from a history for Markdown pages.

Prompts are block quotes, answers are Markdown, thinking and tool output are collapsed, edits are diffs.
A subagent is collapsed after the call that started it.

Markdown text can affect the page around it: open a fence without closing it, contain HTML, load images,
define links for the rest of the page. A text is used as Markdown only if all of this has been escaped *and* a
parser confirms that none is left. Otherwise it is shown in a code fence.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING

from backscroll.model.message import Message, ToolCall
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, sanitize
from backscroll.render.session_header import (
    attachment_label,
    format_time,
    header_fields,
    message_heading,
    session_title,
    subagent_facts,
)
from backscroll.render.tool_calls import (
    argument_lines,
    call_outcome,
    command_param,
    describe_call,
    diff_lines,
)
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MAX_OPEN_DIFF_LINES = 40  # longer diffs are collapsed
_CODE_FIELDS = ("Session", "Subagent of", "Workspace", "Branch", "Model")

_SPECIAL = re.compile(r"[\\`*_\[\]<>#&|~$!]")
_MAX_MARKDOWN_CHARS = 60_000  # longer texts are pasted files and logs
_SUSPECT = re.compile(r"[<`~\[\]\\]|^ {0,3}#|^[ \t>]*[=-]+[ \t]*$", re.MULTILINE)
_CODE_SPAN = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_CLOSED_FENCE = re.compile(r"^```[\w+#:./-]*\n(?:(?!.*```).*\n)*```[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^( {0,3})(#{1,6})(?=[ \t]|$)")
_DEFINITION = re.compile(r"^([ \t>]*(?:[-*+]|\d+[.)])?[ \t>]*)\[")
_OPENERS = re.compile(r"\\.|(`+)|<|!\[", re.DOTALL)
_ALLOWED_LINK = re.compile(r"(?:https?://|mailto:|#|[^:]*$)", re.IGNORECASE)
_END_MARKER = "backscrollend"
_HEADING_SHIFT = 3  # headings of a text are below those of the page


def markdown(summary: SessionSummary, items: Iterable[TranscriptItem]) -> Iterator[str]:
    """Yield the page in chunks."""
    yield f"# {escape_markdown(session_title(summary))}\n\n"
    for name, value in header_fields(summary):
        yield f"- **{name}** {code_span(value) if name in _CODE_FIELDS else escape_markdown(value)}\n"
    depth = 0
    previous = ""
    for item in items:
        match item:
            case SubagentStart():
                depth += 1
                previous = ""
                yield from _start_subagent(item)
            case SubagentEnd():
                depth -= 1
                previous = ""
                yield "\n</details>\n"
            case MessageItem():
                heading = message_heading(item.message, is_agent=depth > 0)
                shown = "" if heading == previous else heading
                yield from _message(item.message, shown, is_agent=depth > 0)
                previous = heading if item.message.role == "assistant" else ""


def _start_subagent(item: SubagentStart) -> Iterator[str]:
    summary = item.summary
    yield f"\n<details>\n<summary><b>Subagent</b> {escape(session_title(summary))}"
    yield f" · {subagent_facts(summary, is_placed=item.is_placed)}</summary>\n"


def _message(message: Message, heading: str, *, is_agent: bool) -> Iterator[str]:
    if message.tool is not None:
        yield from _tool_call(message, message.tool)
        return
    yield "\n"
    match message.role:
        case "user" if not is_agent:
            yield f"## {escape_markdown(heading)}\n\n"
            yield blockquote(message.content)
        case "thinking" | "system":
            yield f"<details>\n<summary>{escape(heading)}</summary>\n\n"
            yield code_fence(message.content, "text")
            yield "\n</details>\n"
        case "error" | "user":
            yield f"**{escape_markdown(heading)}**\n\n"
            yield blockquote(message.content)
        case _:
            yield f"**{escape_markdown(heading)}**\n\n" if heading else ""
            yield safe_markdown(message.content)
    yield _attachments(message)


def _attachments(message: Message) -> str:
    if not message.attachments:
        return ""
    labels = (escape_markdown(attachment_label(attachment)) for attachment in message.attachments)
    return "\n" + "".join(f"- {label}\n" for label in labels)


def _tool_call(message: Message, tool: ToolCall) -> Iterator[str]:
    diff = [line for edit in tool.edits for line in diff_lines(edit)]
    subject = escape(describe_call(tool))
    time = format_time(message.timestamp, is_inferred=message.has_inferred_time)
    notes = " · ".join(
        part for part in ("" if message.is_active else "abandoned", call_outcome(tool), time) if part
    )
    is_open = " open" if 0 < len(diff) <= _MAX_OPEN_DIFF_LINES else ""
    yield f"\n<details{is_open}>\n<summary><b>{escape(one_line(tool.name, 100))}</b>"
    yield f"{f' <code>{subject}</code>' if subject else ''}{f' · {escape(notes)}' if notes else ''}"
    yield "</summary>\n\n"
    if message.content.strip():
        yield safe_markdown(message.content) + "\n"
    if diff:
        yield code_fence("\n".join(diff), "diff")
    else:
        yield from _arguments(tool)
    result = sanitize(tool.result or "")
    if result.strip() and diff:
        yield f"\n<details>\n<summary>Result</summary>\n\n{code_fence(result, 'text')}\n</details>\n"
    elif result.strip():
        yield "\n" + code_fence(result, "text")
    yield _attachments(message)
    yield "\n</details>\n"


def _arguments(tool: ToolCall) -> Iterator[str]:
    """Yield the arguments: a command as a code block, the others with their names."""
    command = command_param(tool)
    if command is not None:
        yield code_fence(tool.params[command], "sh")
    lines = list(argument_lines(tool, without=command))
    has_text = any(isinstance(value, str) for key, value in tool.params.items() if key != command)
    if lines and (command is None or has_text):
        yield ("\n" if command else "") + code_fence("\n".join(lines), "text")


def escape_markdown(text: str) -> str:
    """Return the text in one line with all Markdown characters escaped."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", sanitize(text).replace("\n", " "))


def code_span(text: str) -> str:
    """Return the text in one line as inline code."""
    text = sanitize(text).replace("\n", " ")
    ticks = "`" * (_longest_run(text, "`") + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}" if text.strip() else ""


def code_fence(text: str, language: str = "") -> str:
    """Return the text in a code fence that nothing in it can close."""
    text = sanitize(text)
    fence = "`" * max(3, _longest_run(text, "`") + 1)
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}\n"


def _longest_run(text: str, character: str) -> int:
    return max(map(len, re.findall(f"{character}+", text)), default=0)


def safe_markdown(text: str) -> str:
    """Return the text as Markdown that cannot affect the page around it, or in a code fence."""
    lines = _safe_lines(sanitize(text))
    return "\n".join(lines) + "\n" if lines is not None else code_fence(text)


def blockquote(text: str) -> str:
    """Return the same as a block quote that keeps the line breaks."""
    text = sanitize(text).expandtabs(4)  # after > a tab has a different width
    lines = _safe_lines(text)
    is_plain = _is_plain(text)
    if lines is not None:
        has_code = not is_plain or "    " in text or "```" in text
        code = _code_lines(_parser().parse("\n".join(lines))) if has_code else set()
        quoted = "".join(
            f"> {line.rstrip()}  \n"
            if index not in code and line.strip() and after.strip()
            else f"> {line}".rstrip() + "\n"
            for index, (line, after) in enumerate(zip(lines, [*lines[1:], ""], strict=True))
        )
        if is_plain or _is_safe(quoted):
            return quoted
    return "".join(f"> {line}\n" for line in code_fence(text).removesuffix("\n").split("\n"))


def _safe_lines(text: str) -> list[str] | None:
    """Return lines without side effects on the page; None if the text needs a code fence."""
    text = text.strip("\n")
    if len(text) > _MAX_MARKDOWN_CHARS:
        return None
    if _is_plain(text):
        return text.split("\n")
    tokens = _parser().parse(text)
    lines = text.split("\n")
    code = _code_lines(tokens)
    done: set[int] = set()
    for token in tokens:
        if token.type != "inline" or token.map is None or token.map[0] in done:
            continue
        first, end = token.map
        done.update(range(first, end))
        lines[first:end] = _escape_inline("\n".join(lines[first:end])).split("\n")
    for index, line in enumerate(lines):
        if index in code:
            continue
        line = _HEADING.sub(lambda found: found[1] + "#" * min(6, len(found[2]) + _HEADING_SHIFT), line)
        lines[index] = _DEFINITION.sub(r"\1\[", line) if "]:" in line else line
    last = tokens[-1] if tokens else None
    if last is not None and last.type == "fence" and last.level == 0 and not _is_closed(lines, last):
        lines.append(last.markup)
    return lines if _is_safe("\n".join(lines)) else None


def _is_plain(text: str) -> bool:
    """Return whether a text has no side effects, without parsing it: 10 times as fast.

    Closed fences are ignored, and code spans within a line. A table could divide such a span, and longer
    runs of backticks can enclose lines.
    """
    if len(text) > _MAX_MARKDOWN_CHARS:
        return False
    if "```" in text:
        text = _CLOSED_FENCE.sub("", text)
    if "`" in text and "``" not in text and "|" not in text:
        text = _CODE_SPAN.sub("x", text)
    return not _SUSPECT.search(text)


def _escape_inline(source: str) -> str:
    """Escape HTML and images in a paragraph. Inline code stays unchanged."""
    out, at = [], 0
    while found := _OPENERS.search(source, at):
        out.append(source[at : found.start()])
        at = found.end()
        if ticks := found[1]:
            close = re.compile(f"(?<!`){ticks}(?!`)").search(source, at)
            stop = close.end() if close else at
            out.append(source[found.start() : stop])
            at = stop
        else:
            out.append(found[0] if found[0].startswith("\\") else f"\\{found[0]}")
    return "".join([*out, source[at:]])


def _is_closed(lines: list[str], fence: "Token") -> bool:
    assert fence.map is not None
    last = lines[-1].strip()
    return (
        fence.map[1] - fence.map[0] > 1
        and len(last) >= len(fence.markup)
        and set(last) == {fence.markup[0]}
        and not lines[-1].startswith("    ")
    )


def _code_lines(tokens: "list[Token]") -> set[int]:
    blocks = (
        token.map for token in tokens if token.type in ("fence", "code_block") and token.map is not None
    )
    return {index for first, end in blocks for index in range(first, end)}


def _is_safe(text: str) -> bool:
    """Return whether a permissive parser finds no HTML, image, unusual link or unclosed block."""
    env: dict[str, object] = {}
    tokens = _permissive_parser().parse(f"{text}\n\n{_END_MARKER}\n", env)
    if env.get("references") or len(tokens) < 3 or tokens[-2].content != _END_MARKER or tokens[-2].level != 1:
        return False
    for token in tokens:
        for part in (token, *(token.children or ())):
            if part.type in ("html_block", "html_inline", "image"):
                return False
            if part.type == "link_open" and not _ALLOWED_LINK.match(str(part.attrs.get("href", ""))):
                return False
    return True


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@lru_cache(maxsize=1)
def _permissive_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    class PermissiveMarkdownIt(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802  overrides a method of the library
            return True

    return PermissiveMarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
