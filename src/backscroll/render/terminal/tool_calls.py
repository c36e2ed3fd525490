"""Tool calls: one line with the result collapsed, and the diff or error output below it."""

from collections.abc import Iterator

from backscroll.model import Message, ToolCall
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.diffs import diff_lines
from backscroll.render.terminal.options import TranscriptOptions
from backscroll.render.terminal.prose import prose_lines, truncate_line
from backscroll.render.terminal.width import cell_width, truncate
from backscroll.render.tool_calls import argument_lines, call_outcome, describe_call

__all__ = ["call_lines"]

_MAX_DIFF_LINES = 20
_MAX_ERROR_LINES = 6
_MIN_SUBJECT_WIDTH = 12
_MARKER = "  ▸ "
_INDENT = "    "
_DIFF_STYLES = {"+": "added", "-": "removed", "@": "accent"}


def call_lines(
    message: Message,
    tool: ToolCall,
    options: TranscriptOptions,
    *,
    base: str | None,
    when: str,
    is_unfolded: bool,
) -> Iterator[str]:
    """Yield a call. Paths below the folder `base` are shown relative to it."""
    style = options.style
    name = one_line(tool.name, 60)
    notes = "".join(
        f" · {note}" for note in (call_outcome(tool), "" if message.is_active else "abandoned") if note
    )
    time = f" · {when}" if when else ""
    used = cell_width(_MARKER + name + notes + time) + 2
    width = max(options.max_line_width - used, _MIN_SUBJECT_WIDTH)
    subject = truncate(_relative(base, describe_call(tool, max(width * 4, 400))), width)
    is_error = tool.status in ("failed", "cancelled") or tool.decision == "rejected"
    yield (
        f"{style('dim', _MARKER)}{style('tool', name)}{f'  {subject}' if subject else ''}"
        f"{style('error' if is_error else 'dim', notes)}{style('dim', time)}"
    )
    inner = options.narrowed(len(_INDENT))
    if message.content.strip():
        text = prose_lines(message.content, style, width=inner.width, is_full=is_unfolded)
        yield from (f"{_INDENT}{line}".rstrip() for line in text)
    diff = list(_diff(tool))
    shown = diff if is_unfolded or len(diff) <= _MAX_DIFF_LINES + 1 else diff[:_MAX_DIFF_LINES]
    yield from (_INDENT + _style_diff_line(line, options, is_full=is_unfolded) for line in shown)
    if len(shown) < len(diff):
        yield _INDENT + style("dim", f"… {pluralize(len(diff) - len(shown), 'more line')}")
    if is_unfolded:
        yield from _arguments_and_result(tool, options, has_diff=bool(diff))
    elif tool.status == "failed":
        yield from _error_output(tool, options)


def _relative(base: str | None, subject: str) -> str:
    return subject.removeprefix(f"{base.rstrip('/')}/") if base else subject


def _diff(tool: ToolCall) -> Iterator[str]:
    """Yield all edits. File names are included if there are several; a single one is in the call's line."""
    for edit in tool.edits:
        lines = diff_lines(edit)
        file_lines = [line for line in (next(lines, ""), next(lines, "")) if line]
        if len(tool.edits) > 1:
            yield from file_lines
        yield from lines


def _style_diff_line(line: str, options: TranscriptOptions, *, is_full: bool) -> str:
    text = truncate_line(line, is_full=is_full)
    return options.style(_DIFF_STYLES.get(line[:1], "dim"), text)


def _arguments_and_result(tool: ToolCall, options: TranscriptOptions, *, has_diff: bool) -> Iterator[str]:
    style = options.style
    if not has_diff:
        yield from (f"{_INDENT}{style('dim', line)}" for line in argument_lines(tool))
    if tool.result:
        yield from (f"{_INDENT}{style('dim', '│')} {line}" for line in _lines(tool.result))


def _error_output(tool: ToolCall, options: TranscriptOptions) -> Iterator[str]:
    """Yield the end of the output of a failed call, which usually contains the reason."""
    lines = [line for line in _lines(tool.result or "") if line.strip()]
    if len(lines) > _MAX_ERROR_LINES + 1:
        hidden = pluralize(len(lines) - _MAX_ERROR_LINES, "earlier line")
        yield f"{_INDENT}{options.style('dim', f'│ … {hidden}')}"
        lines = lines[-_MAX_ERROR_LINES:]
    width = options.max_line_width - len(_INDENT) - 2
    bar = options.style("dim", "│")
    yield from (f"{_INDENT}{bar} {truncate(line[: width * 2], width)}" for line in lines)


def _lines(result: str) -> list[str]:
    return sanitize(result).removesuffix("\n").split("\n")
