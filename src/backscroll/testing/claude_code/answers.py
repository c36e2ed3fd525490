"""Tool calls and their results as finished bytes, in the mix and the sizes of real ones."""

from itertools import accumulate
from random import Random
from typing import NamedTuple

from backscroll.testing.claude_code.curve import Curve
from backscroll.testing.claude_code.text import Text

__all__ = ["Answered", "Answers"]


class Answered(NamedTuple):
    """JSON values: a tool's name, its input, the result's content, the rich copy, and a subagent's prompt."""

    name: bytes
    put: bytes
    content: bytes
    rich: bytes
    prompt: bytes | None = None


RESULT = Curve((0, 8), (0.1, 44), (0.5, 396), (0.9, 4618), (0.99, 26_100), (0.999, 55_893), (1, 102_524))
ORIGINAL = Curve((0, 150), (0.1, 800), (0.5, 3800), (0.9, 22_000), (0.985, 190_000), (1, 450_000))
CHANGED = Curve((0, 20), (0.1, 60), (0.5, 300), (0.9, 1700), (0.99, 6000), (1, 20_000))
WRITTEN = Curve((0, 60), (0.1, 700), (0.5, 4200), (0.9, 14_000), (0.99, 40_000), (1, 90_000))
COMMAND = Curve((0, 2), (0.1, 16), (0.5, 70), (0.9, 260), (0.99, 2500), (1, 6000))
IMAGE = Curve((0, 30_000), (0.5, 240_000), (0.9, 480_000), (0.99, 1_000_000), (1, 2_000_000))

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

    def draw(self, rng: Random, cwd: bytes, agent_tool: bytes) -> Answered:
        """One call with its answer."""
        share = rng.random()
        size = RESULT.at(share)
        _, tools, weights = next(row for row in self._mix if share < row[0])
        path = b"%b/src/%b.py" % (cwd, self._word(rng))
        match rng.choices(tools, cum_weights=weights)[0]:
            case "Bash":
                return self._bash(rng, size)
            case "Read" if rng.random() < 0.003:
                return self._picture(rng, path)
            case "Read":
                return self._read(rng, size, path)
            case "Edit":
                return self._edit(rng, size, path)
            case "MultiEdit":
                return self._multi_edit(rng, size, path)
            case "Write":
                return self._write(rng, size, path)
            case "TodoWrite":
                return self._todos(rng, size)
            case "Task":
                return self._task(rng, size, agent_tool)
            case "mcp":
                told = b'[{"type":"text","text":"%b"}]' % self._text.prose.cut(rng, size)
                return Answered(b"mcp__tickets__search", b'{"query":"%b"}' % self._word(rng), told, told)
            case name:
                return self._listing(rng, size, name.encode(), path)

    def _word(self, rng: Random) -> bytes:
        return b"part%d" % rng.randrange(400)

    def _bash(self, rng: Random, size: int) -> Answered:
        out = b'"%b"' % self._text.code.cut(rng, size)
        put = b'{"command":"%b","description":"%b"}' % (
            self._text.code.cut(rng, COMMAND.draw(rng)),
            self._text.prose.cut(rng, 40),
        )
        rich = b'{"stdout":%b,"stderr":"","interrupted":false,"isImage":false}' % out
        return Answered(b"Bash", put, out, rich)

    def _read(self, rng: Random, size: int, path: bytes) -> Answered:
        told = self._text.numbered.cut(rng, size)
        rich = (
            b'{"type":"text","file":{"filePath":"%b","content":"%b","numLines":%d,"startLine":1,"totalLines":%d}}'
            % (path, self._text.code.cut(rng, size * 7 // 8), size // 40 + 1, size // 40 + 1)
        )
        return Answered(b"Read", b'{"file_path":"%b"}' % path, b'"%b"' % told, rich)

    def _picture(self, rng: Random, path: bytes) -> Answered:
        data = self._text.base64(rng, IMAGE.draw(rng))
        told = b'[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%b"}}]' % data
        rich = b'{"type":"image","file":{"base64":"%b","type":"image/png","originalSize":%d}}' % (
            data,
            len(data),
        )
        return Answered(b"Read", b'{"file_path":"%b"}' % path.replace(b".py", b".png"), told, rich)

    def _edit(self, rng: Random, size: int, path: bytes) -> Answered:
        code = self._text.code
        old, new = code.cut(rng, CHANGED.draw(rng)), code.cut(rng, CHANGED.draw(rng))
        put = b'{"file_path":"%b","old_string":"%b","new_string":"%b"}' % (path, old, new)
        rich = (
            b'{"filePath":"%b","oldString":"%b","newString":"%b","originalFile":"%b","structuredPatch":%b,'
            b'"userModified":false,"replaceAll":false}'
        ) % (path, old, new, code.cut(rng, ORIGINAL.draw(rng)), _patch(old, new))
        return Answered(b"Edit", put, b'"%b"' % self._text.numbered.cut(rng, size), rich)

    def _multi_edit(self, rng: Random, size: int, path: bytes) -> Answered:
        code = self._text.code
        old, new = code.cut(rng, CHANGED.draw(rng)), code.cut(rng, CHANGED.draw(rng))
        edits = b'[{"old_string":"%b","new_string":"%b"}]' % (old, new)
        rich = (
            b'{"filePath":"%b","edits":%b,"originalFileContents":"%b","structuredPatch":%b,"userModified":false}'
            % (path, edits, code.cut(rng, ORIGINAL.draw(rng)), _patch(old, new))
        )
        put = b'{"file_path":"%b","edits":%b}' % (path, edits)
        return Answered(b"MultiEdit", put, b'"%b"' % self._text.numbered.cut(rng, size), rich)

    def _write(self, rng: Random, size: int, path: bytes) -> Answered:
        content = self._text.code.cut(rng, WRITTEN.draw(rng))
        put = b'{"file_path":"%b","content":"%b"}' % (path, content)
        rich = b'{"type":"create","filePath":"%b","content":"%b","structuredPatch":[]}' % (path, content)
        return Answered(b"Write", put, b'"%b"' % self._text.prose.cut(rng, size), rich)

    def _todos(self, rng: Random, size: int) -> Answered:
        items = b",".join(
            b'{"content":"%b","status":"pending","activeForm":"%b"}'
            % (self._text.prose.cut(rng, 55), self._text.prose.cut(rng, 55))
            for _ in range(rng.randrange(2, 9))
        )
        rich = b'{"oldTodos":[%b],"newTodos":[%b]}' % (items, items)
        return Answered(
            b"TodoWrite", b'{"todos":[%b]}' % items, b'"%b"' % self._text.prose.cut(rng, size), rich
        )

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

    def _listing(self, rng: Random, size: int, name: bytes, path: bytes) -> Answered:
        told = b'"%b"' % self._text.code.cut(rng, size)
        put = b'{"pattern":"%b","path":"%b"}' % (self._word(rng), path)
        rich = b'{"mode":"content","numFiles":%d,"filenames":[],"content":%b,"numLines":%d}'
        return Answered(name, put, told, rich % (size // 60, told, size // 40))


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
