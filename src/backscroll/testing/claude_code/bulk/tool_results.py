"""Tool calls and their results as finished bytes, in the mix and the sizes of real ones."""

from itertools import accumulate
from random import Random
from typing import NamedTuple

from backscroll.testing.claude_code.bulk.size_distribution import Curve
from backscroll.testing.claude_code.bulk.text_pool import Text
from backscroll.testing.claude_code.bulk.working_files import Desk, Sheet

__all__ = ["Answered", "Answers"]


class Answered(NamedTuple):
    """JSON values: a tool's name, its input, the result's content, the rich copy, and a subagent's prompt."""

    name: bytes
    put: bytes
    content: bytes
    rich: bytes
    prompt: bytes | None = None


RESULT = Curve((0, 8), (0.1, 44), (0.5, 396), (0.9, 4618), (0.99, 26_100), (0.999, 55_893), (1, 102_524))
CHANGED = Curve((0, 20), (0.1, 60), (0.5, 300), (0.9, 1700), (0.99, 6000), (1, 20_000))
WRITTEN = Curve((0, 60), (0.1, 700), (0.5, 4200), (0.9, 14_000), (0.99, 40_000), (1, 90_000))
IMAGE = Curve((0, 30_000), (0.5, 240_000), (0.9, 480_000), (0.99, 1_000_000), (1, 2_000_000))

_TASKS_KEPT = (
    b"The tasks have been written down. Keep the list up to date while you work, tick off what is done as "
    b"soon as it is done, and go on with the next of them. There is always one in progress, and no more than "
    b"one. When a task turns out to be larger than it looked, write it as several; when one is not needed "
    b"any more, take it out. The list is told to the person you work with, who reads how far it is."
)

# Which tools give results of which size: the share of results that are smaller, and of calls per tool.
_MIX: tuple[tuple[float, dict[str, float]], ...] = (
    (0.22, {"Bash": 0.11, "Write": 0.03, "Edit": 0.03, "Grep": 0.03, "Glob": 0.01, "mcp": 0.01}),
    (
        0.50,
        {
            "TodoWrite": 0.12,
            "Bash": 0.06,
            "Write": 0.03,
            "Edit": 0.03,
            "Grep": 0.01,
            "Glob": 0.01,
            "mcp": 0.02,
        },
    ),
    (0.75, {"Edit": 0.10, "Bash": 0.07, "Read": 0.05, "LS": 0.01, "MultiEdit": 0.01, "mcp": 0.01}),
    (0.90, {"Read": 0.08, "Bash": 0.03, "Task": 0.02, "Grep": 0.01, "MultiEdit": 0.01}),
    (1.00, {"Read": 0.06, "Bash": 0.02, "Task": 0.01, "LS": 0.01}),
)


class Answers:
    """Draws tool calls."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._mix = [(top, list(tools), list(accumulate(tools.values()))) for top, tools in _MIX]

    def draw(self, rng: Random, desk: Desk, agent_tool: bytes) -> Answered:
        """One call with its answer."""
        share = rng.random()
        size = RESULT.at(share)
        _, tools, weights = next(row for row in self._mix if share < row[0])
        match rng.choices(tools, cum_weights=weights)[0]:
            case "Bash":
                return self._bash(rng, size, desk)
            case "Read" if rng.random() < 0.003:
                return self._picture(rng, desk.sheet().path)
            case "Read":
                return self._read(rng, size, desk.sheet())
            case "Edit":
                return self._edit(rng, size, desk.sheet())
            case "MultiEdit":
                return self._multi_edit(rng, size, desk.sheet())
            case "Write":
                return self._write(rng, size, desk.sheet())
            case "TodoWrite":
                return self._todos(size, desk)
            case "Task":
                return self._task(rng, size, agent_tool)
            case "mcp":
                told = b'[{"type":"text","text":"%b"}]' % self._text.prose.cut(rng, size)
                return Answered(b"mcp__tickets__search", b'{"query":"%b"}' % _word(rng), told, told)
            case name:
                return self._listing(rng, size, name.encode(), desk.sheet())

    def _bash(self, rng: Random, size: int, desk: Desk) -> Answered:
        command = desk.command()
        share = rng.random()
        if share < 0.2:
            told = self._text.code.piece(desk.sheet().line, size)
        elif share < 0.4 and size > 60:
            told = b"[main %07x] %b" % (rng.getrandbits(28), self._text.prose.cut(rng, size - 15))
        else:
            told = self._text.printed.piece(command.line, size)
        rich = b'{"stdout":"%b","stderr":"","interrupted":false,"isImage":false}' % told
        return Answered(b"Bash", command.put, b'"%b"' % told, rich)

    def _read(self, rng: Random, size: int, sheet: Sheet) -> Answered:
        code, numbered = self._text.code, self._text.numbered
        first = sheet.line if rng.random() < 0.7 else code.line_at(sheet.line, int(rng.random() * sheet.size))
        last = numbered.line_at(first, size)
        plain = code.lines(first, last - first) or code.piece(first, size)
        rich = (
            b'{"type":"text","file":{"filePath":"%b","content":"%b","numLines":%d,"startLine":%d,"totalLines":%d}}'
            % (sheet.path, plain, last - first + 1, first - sheet.line + 1, last - sheet.line + 1)
        )
        put = b'{"file_path":"%b"}' % sheet.path
        if first > sheet.line:
            put = b'{"file_path":"%b","offset":%d}' % (sheet.path, first - sheet.line + 1)
        return Answered(b"Read", put, b'"%b"' % numbered.piece(first, size), rich)

    def _picture(self, rng: Random, path: bytes) -> Answered:
        data = self._text.base64(rng, IMAGE.draw(rng))
        told = b'[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%b"}}]' % data
        rich = b'{"type":"image","file":{"base64":"%b","type":"image/png","originalSize":%d}}' % (
            data,
            len(data),
        )
        return Answered(b"Read", b'{"file_path":"%b"}' % path.replace(b".py", b".png"), told, rich)

    def _change(self, rng: Random, sheet: Sheet) -> tuple[bytes, bytes, int]:
        """Lines of a file, those that take their place, and the line where they stand."""
        code = self._text.code
        line = code.line_at(sheet.line, int(rng.random() * sheet.size))
        old = code.piece(line, CHANGED.draw(rng))
        size = CHANGED.draw(rng)
        kept = old[: size * 2 // 3].rpartition(b"\\n")[0]
        new = code.cut(rng, max(size - len(kept) - 2, 2))
        return old, b"%b\\n%b" % (kept, new) if kept else new, line

    def _edit(self, rng: Random, size: int, sheet: Sheet) -> Answered:
        old, new, line = self._change(rng, sheet)
        put = b'{"file_path":"%b","old_string":"%b","new_string":"%b"}' % (sheet.path, old, new)
        rich = (
            b'{"filePath":"%b","oldString":"%b","newString":"%b","originalFile":"%b","structuredPatch":%b,'
            b'"userModified":false,"replaceAll":false}'
        ) % (sheet.path, old, new, sheet.content(self._text), _patch(old, new))
        sheet.change(rng, new)
        return Answered(b"Edit", put, self._updated(sheet, line, size), rich)

    def _multi_edit(self, rng: Random, size: int, sheet: Sheet) -> Answered:
        old, new, line = self._change(rng, sheet)
        edits = b'[{"old_string":"%b","new_string":"%b"}]' % (old, new)
        rich = (
            b'{"filePath":"%b","edits":%b,"originalFileContents":"%b","structuredPatch":%b,"userModified":false}'
            % (sheet.path, edits, sheet.content(self._text), _patch(old, new))
        )
        sheet.change(rng, new)
        put = b'{"file_path":"%b","edits":%b}' % (sheet.path, edits)
        return Answered(b"MultiEdit", put, self._updated(sheet, line, size), rich)

    def _updated(self, sheet: Sheet, line: int, size: int) -> bytes:
        told = b"The file %b has been updated. Here it is, with line numbers:\\n" % sheet.path
        if size <= len(told) + 8:
            return b'"%b"' % told[: size - 1].rstrip(b"\\")
        return b'"%b%b"' % (told, self._text.numbered.piece(line, size - len(told)))

    def _write(self, rng: Random, size: int, sheet: Sheet) -> Answered:
        content = self._text.code.piece(sheet.line, WRITTEN.draw(rng))
        put = b'{"file_path":"%b","content":"%b"}' % (sheet.path, content)
        rich = b'{"type":"create","filePath":"%b","content":"%b","structuredPatch":[]}' % (
            sheet.path,
            content,
        )
        return Answered(b"Write", put, self._updated(sheet, sheet.line, size), rich)

    def _todos(self, size: int, desk: Desk) -> Answered:
        before, after = desk.tick()
        rich = b'{"oldTodos":[%b],"newTodos":[%b]}' % (before, after)
        return Answered(b"TodoWrite", b'{"todos":[%b]}' % after, b'"%b"' % _TASKS_KEPT[:size], rich)

    def _task(self, rng: Random, size: int, tool: bytes) -> Answered:
        prompt = self._text.prose.cut(rng, CHANGED.draw(rng) * 2)
        told = b'[{"type":"text","text":"%b"}]' % self._text.prose.cut(rng, size)
        put = b'{"description":"%b","prompt":"%b","subagent_type":"general-purpose"}'
        rich = (
            b'{"status":"completed","prompt":"%b","content":%b,"totalDurationMs":%d,'
            b'"totalTokens":%d,"totalToolUseCount":4,"usage":{"input_tokens":4,"output_tokens":210}}'
        )
        return Answered(
            tool,
            put % (self._text.prose.cut(rng, 30), prompt),
            told,
            rich % (prompt, told, rng.randrange(4000, 90_000), rng.randrange(4000, 60_000)),
            prompt,
        )

    def _listing(self, rng: Random, size: int, name: bytes, sheet: Sheet) -> Answered:
        told = b'"%b"' % self._text.listed.cut(rng, size)
        put = b'{"pattern":"%b","path":"%b"}' % (_word(rng), sheet.path.rpartition(b"/")[0])
        rich = b'{"mode":"content","numFiles":%d,"filenames":[],"content":%b,"numLines":%d}'
        return Answered(name, put, told, rich % (size // 60, told, size // 40))


def _word(rng: Random) -> bytes:
    return b"part%d" % rng.randrange(400)


def _patch(old: bytes, new: bytes) -> bytes:
    lines = b",".join(
        [b'"-%b"' % line for line in _split(old)] + [b'"+%b"' % line for line in _split(new)],
    )
    return b'[{"oldStart":12,"oldLines":%d,"newStart":12,"newLines":%d,"lines":[%b]}]' % (
        len(_split(old)),
        len(_split(new)),
        lines,
    )


def _split(escaped: bytes) -> list[bytes]:
    return escaped.split(b"\\n")
