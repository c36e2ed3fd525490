"""A tool call as one line with its result folded, and what is shown of it below."""

from collections.abc import Iterator

from backscroll.model import Message, ToolCall
from backscroll.model.sanitize import inert, one_line
from backscroll.render.diffs import diff_lines
from backscroll.render.terminal.options import View
from backscroll.render.terminal.prose import prose_lines, shortened
from backscroll.render.terminal.width import cells, cut
from backscroll.render.tool_calls import argument_lines, describe, outcome

__all__ = ["call_lines"]

_DIFF = 20  # lines of an edit that are shown unasked
_TROUBLE = 6  # last lines of what a failed call said
_MARK = "  ▸ "
_INDENT = "    "
_STYLES = {"+": "added", "-": "removed", "@": "place"}


def call_lines(
    message: Message, tool: ToolCall, view: View, *, base: str | None, when: str, is_unfolded: bool
) -> Iterator[str]:
    """The call; paths below ``base`` are told from there on."""
    ink = view.ink
    name = one_line(tool.name, 60)
    notes = [outcome(tool), "" if message.is_active else "abandoned", when]
    told = "".join(f" · {note}" for note in notes if note)
    room = max(view.room - cells(_MARK + name + told) - 2, 12)
    about = cut(_below(base, describe(tool, max(room * 4, 400))), room)
    style = "error" if tool.status in ("failed", "cancelled") or tool.decision == "rejected" else "dim"
    yield (
        f"{ink('dim', _MARK)}{ink('tool', name)}{f'  {about}' if about else ''}"
        f"{ink(style, told.removesuffix(f' · {when}')) if when else ink(style, told)}"
        f"{ink('dim', f' · {when}') if when else ''}"
    )
    inner = view.narrowed(len(_INDENT))
    if message.content.strip():
        said = prose_lines(message.content, ink, width=inner.width, is_full=is_unfolded)
        yield from (f"{_INDENT}{line}".rstrip() for line in said)
    changed = list(_diff(tool))
    shown = changed if is_unfolded or len(changed) <= _DIFF + 1 else changed[:_DIFF]
    yield from (_INDENT + _painted(line, view, is_full=is_unfolded) for line in shown)
    if len(shown) < len(changed):
        yield _INDENT + ink("dim", f"… {len(changed) - len(shown):,} more lines")
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


def _painted(line: str, view: View, *, is_full: bool) -> str:
    text = shortened(line, is_full=is_full)
    return view.ink(_STYLES.get(line[:1], "dim"), text)


def _unfolded(tool: ToolCall, view: View, *, has_diff: bool) -> Iterator[str]:
    ink = view.ink
    if not has_diff:
        yield from (f"{_INDENT}{ink('dim', line)}" for line in argument_lines(tool))
    if tool.result:
        yield from (f"{_INDENT}{ink('dim', '│')} {line}" for line in _lines(tool.result))


def _trouble(tool: ToolCall, view: View) -> Iterator[str]:
    """The end of what a failed call said, which tells why more often than its beginning."""
    lines = [line for line in _lines(tool.result or "") if line.strip()]
    if len(lines) > _TROUBLE + 1:
        hidden = len(lines) - _TROUBLE
        yield f"{_INDENT}{view.ink('dim', f'│ … {hidden:,} lines before')}"
        lines = lines[-_TROUBLE:]
    room = view.room - len(_INDENT) - 2
    yield from (f"{_INDENT}{view.ink('dim', '│')} {cut(line[: room * 2], room)}" for line in lines)


def _lines(result: str) -> list[str]:
    return inert(result).removesuffix("\n").split("\n")
