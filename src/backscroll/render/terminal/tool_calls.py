"""A tool call as one line with its result folded, and what is shown of it below."""

from collections.abc import Iterator

from backscroll.model import Message, ToolCall
from backscroll.model.sanitize import one_line, sanitize
from backscroll.render.diffs import diff_lines
from backscroll.render.terminal.options import TranscriptOptions
from backscroll.render.terminal.prose import prose_lines, truncate_line
from backscroll.render.terminal.width import cell_width, truncate
from backscroll.render.tool_calls import argument_lines, call_outcome, describe_call

__all__ = ["call_lines"]

_DIFF = 20  # lines of an edit that are shown unasked
_TROUBLE = 6  # last lines of what a failed call said
_MARK = "  ▸ "
_INDENT = "    "
_STYLES = {"+": "added", "-": "removed", "@": "place"}


def call_lines(
    message: Message,
    tool: ToolCall,
    view: TranscriptOptions,
    *,
    base: str | None,
    when: str,
    is_unfolded: bool,
) -> Iterator[str]:
    """The call; paths below ``base`` are told from there on."""
    style = view.style
    name = one_line(tool.name, 60)
    notes = [call_outcome(tool), "" if message.is_active else "abandoned", when]
    told = "".join(f" · {note}" for note in notes if note)
    room = max(view.room - cell_width(_MARK + name + told) - 2, 12)
    about = truncate(_below(base, describe_call(tool, max(room * 4, 400))), room)
    style_name = "error" if tool.status in ("failed", "cancelled") or tool.decision == "rejected" else "dim"
    yield (
        f"{style('dim', _MARK)}{style('tool', name)}{f'  {about}' if about else ''}"
        f"{style(style_name, told.removesuffix(f' · {when}')) if when else style(style_name, told)}"
        f"{style('dim', f' · {when}') if when else ''}"
    )
    inner = view.narrowed(len(_INDENT))
    if message.content.strip():
        said = prose_lines(message.content, style, width=inner.width, is_full=is_unfolded)
        yield from (f"{_INDENT}{line}".rstrip() for line in said)
    changed = list(_diff(tool))
    shown = changed if is_unfolded or len(changed) <= _DIFF + 1 else changed[:_DIFF]
    yield from (_INDENT + _painted(line, view, is_full=is_unfolded) for line in shown)
    if len(shown) < len(changed):
        yield _INDENT + style("dim", f"… {len(changed) - len(shown):,} more lines")
    if is_unfolded:
        yield from _unfolded(tool, view, has_diff=bool(changed))
    elif tool.status == "failed":
        yield from _trouble(tool, view)


def _below(base: str | None, about: str) -> str:
    return about.removeprefix(f"{base.rstrip('/')}/") if base else about


def _diff(tool: ToolCall) -> Iterator[str]:
    """Every edit; the name of the file only where there are several, as the call's line has the one."""
    for edit in tool.edits:
        lines = diff_lines(edit)
        head = [line for line in (next(lines, ""), next(lines, "")) if line]
        if len(tool.edits) > 1:
            yield from head
        yield from lines


def _painted(line: str, view: TranscriptOptions, *, is_full: bool) -> str:
    text = truncate_line(line, is_full=is_full)
    return view.style(_STYLES.get(line[:1], "dim"), text)


def _unfolded(tool: ToolCall, view: TranscriptOptions, *, has_diff: bool) -> Iterator[str]:
    style = view.style
    if not has_diff:
        yield from (f"{_INDENT}{style('dim', line)}" for line in argument_lines(tool))
    if tool.result:
        yield from (f"{_INDENT}{style('dim', '│')} {line}" for line in _lines(tool.result))


def _trouble(tool: ToolCall, view: TranscriptOptions) -> Iterator[str]:
    """The end of what a failed call said, which tells why more often than its beginning."""
    lines = [line for line in _lines(tool.result or "") if line.strip()]
    if len(lines) > _TROUBLE + 1:
        hidden = len(lines) - _TROUBLE
        yield f"{_INDENT}{view.style('dim', f'│ … {hidden:,} lines before')}"
        lines = lines[-_TROUBLE:]
    room = view.room - len(_INDENT) - 2
    yield from (f"{_INDENT}{view.style('dim', '│')} {truncate(line[: room * 2], room)}" for line in lines)


def _lines(result: str) -> list[str]:
    return sanitize(result).removesuffix("\n").split("\n")
