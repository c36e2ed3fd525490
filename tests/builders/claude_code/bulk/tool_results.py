"""Random tool calls with their results, as JSON bytes, with the frequencies and sizes of real ones."""

from itertools import accumulate
from random import Random
from typing import NamedTuple

from tests.builders.claude_code.bulk.size_distribution import SizeDistribution
from tests.builders.claude_code.bulk.text_pool import TextPools
from tests.builders.claude_code.bulk.working_files import WorkingFile, WorkingState


class GeneratedCall(NamedTuple):
    """Tool call with its result. All values except the name and the prompt are JSON."""

    name: bytes
    arguments: bytes
    content: bytes
    structured: bytes  # value of toolUseResult
    prompt: bytes | None = None  # prompt of a subagent


RESULT_BYTES = SizeDistribution(
    (0, 8), (0.1, 44), (0.5, 396), (0.9, 4618), (0.99, 26_100), (0.999, 55_893), (1, 102_524)
)
EDIT_BYTES = SizeDistribution((0, 20), (0.1, 60), (0.5, 300), (0.9, 1700), (0.99, 6000), (1, 20_000))
NEW_FILE_BYTES = SizeDistribution(
    (0, 60), (0.1, 700), (0.5, 4200), (0.9, 14_000), (0.99, 40_000), (1, 90_000)
)
IMAGE_BYTES = SizeDistribution((0, 30_000), (0.5, 240_000), (0.9, 480_000), (0.99, 1_000_000), (1, 2_000_000))

_TODO_RESULT = (
    b"The tasks have been written down. Keep the list up to date while you work, tick off what is done as "
    b"soon as it is done, and go on with the next of them. There is always one in progress, and no more than "
    b"one. When a task turns out to be larger than it looked, write it as several; when one is not needed "
    b"any more, take it out. The list is told to the person you work with, who reads how far it is."
)

# Quantile of the result size up to which a row applies, and the share of each tool in all calls.
_TOOLS_BY_RESULT_SIZE: tuple[tuple[float, dict[str, float]], ...] = (
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


class ToolCallGenerator:
    """Generator of tool calls."""

    def __init__(self, text: TextPools) -> None:
        self.text = text
        self._tools_by_size = [
            (quantile, list(tools), list(accumulate(tools.values())))
            for quantile, tools in _TOOLS_BY_RESULT_SIZE
        ]

    def generate(self, rng: Random, state: WorkingState, agent_tool: bytes) -> GeneratedCall:
        """Return a random call with its result."""
        share = rng.random()
        size = RESULT_BYTES.quantile(share)
        _, tools, weights = next(row for row in self._tools_by_size if share < row[0])
        match rng.choices(tools, cum_weights=weights)[0]:
            case "Bash":
                return self._bash(rng, size, state)
            case "Read" if rng.random() < 0.003:
                return self._read_image(rng, state.choose_file().path)
            case "Read":
                return self._read(rng, size, state.choose_file())
            case "Edit":
                return self._edit(rng, size, state.choose_file())
            case "MultiEdit":
                return self._multi_edit(rng, size, state.choose_file())
            case "Write":
                return self._write(rng, size, state.choose_file())
            case "TodoWrite":
                return self._todos(size, state)
            case "Task":
                return self._task(rng, size, agent_tool)
            case "mcp":
                content = b'[{"type":"text","text":"%b"}]' % self.text.prose.random_excerpt(rng, size)
                arguments = b'{"query":"%b"}' % _word(rng)
                return GeneratedCall(b"mcp__tickets__search", arguments, content, content)
            case name:
                return self._search(rng, size, name.encode(), state.choose_file())

    def _bash(self, rng: Random, size: int, state: WorkingState) -> GeneratedCall:
        command = state.choose_command()
        share = rng.random()
        if share < 0.2:
            output = self.text.code.excerpt(state.choose_file().line, size)
        elif share < 0.4 and size > 60:
            output = b"[main %07x] %b" % (
                rng.getrandbits(28),
                self.text.prose.random_excerpt(rng, size - 15),
            )
        else:
            output = self.text.command_output.excerpt(command.output_line, size)
        structured = b'{"stdout":"%b","stderr":"","interrupted":false,"isImage":false}' % output
        return GeneratedCall(b"Bash", command.arguments, b'"%b"' % output, structured)

    def _read(self, rng: Random, size: int, file: WorkingFile) -> GeneratedCall:
        code, numbered = self.text.code, self.text.numbered
        first = file.line if rng.random() < 0.7 else code.line_after(file.line, int(rng.random() * file.size))
        last = numbered.line_after(first, size)
        content = code.lines(first, last - first) or code.excerpt(first, size)
        structured = (
            b'{"type":"text","file":{"filePath":"%b","content":"%b","numLines":%d,"startLine":%d,"totalLines":%d}}'
            % (file.path, content, last - first + 1, first - file.line + 1, last - file.line + 1)
        )
        arguments = b'{"file_path":"%b"}' % file.path
        if first > file.line:
            arguments = b'{"file_path":"%b","offset":%d}' % (file.path, first - file.line + 1)
        return GeneratedCall(b"Read", arguments, b'"%b"' % numbered.excerpt(first, size), structured)

    def _read_image(self, rng: Random, path: bytes) -> GeneratedCall:
        data = self.text.base64(rng, IMAGE_BYTES.sample(rng))
        content = b'[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%b"}}]' % data
        structured = b'{"type":"image","file":{"base64":"%b","type":"image/png","originalSize":%d}}' % (
            data,
            len(data),
        )
        return GeneratedCall(
            b"Read", b'{"file_path":"%b"}' % path.replace(b".py", b".png"), content, structured
        )

    def _choose_change(self, rng: Random, file: WorkingFile) -> tuple[bytes, bytes, int]:
        """Return lines of a file, the lines that replace them and the number of the first line."""
        code = self.text.code
        line = code.line_after(file.line, int(rng.random() * file.size))
        old = code.excerpt(line, EDIT_BYTES.sample(rng))
        size = EDIT_BYTES.sample(rng)
        kept = old[: size * 2 // 3].rpartition(b"\\n")[0]
        new = code.random_excerpt(rng, max(size - len(kept) - 2, 2))
        return old, b"%b\\n%b" % (kept, new) if kept else new, line

    def _edit(self, rng: Random, size: int, file: WorkingFile) -> GeneratedCall:
        old, new, line = self._choose_change(rng, file)
        arguments = b'{"file_path":"%b","old_string":"%b","new_string":"%b"}' % (file.path, old, new)
        structured = (
            b'{"filePath":"%b","oldString":"%b","newString":"%b","originalFile":"%b","structuredPatch":%b,'
            b'"userModified":false,"replaceAll":false}'
        ) % (file.path, old, new, file.content(self.text), _structured_patch(old, new))
        file.change(rng, new)
        return GeneratedCall(b"Edit", arguments, self._updated_content(file, line, size), structured)

    def _multi_edit(self, rng: Random, size: int, file: WorkingFile) -> GeneratedCall:
        old, new, line = self._choose_change(rng, file)
        edits = b'[{"old_string":"%b","new_string":"%b"}]' % (old, new)
        structured = (
            b'{"filePath":"%b","edits":%b,"originalFileContents":"%b","structuredPatch":%b,"userModified":false}'
            % (file.path, edits, file.content(self.text), _structured_patch(old, new))
        )
        file.change(rng, new)
        arguments = b'{"file_path":"%b","edits":%b}' % (file.path, edits)
        return GeneratedCall(b"MultiEdit", arguments, self._updated_content(file, line, size), structured)

    def _updated_content(self, file: WorkingFile, line: int, size: int) -> bytes:
        intro = b"The file %b has been updated. Here it is, with line numbers:\\n" % file.path
        if size <= len(intro) + 8:
            return b'"%b"' % intro[: size - 1].rstrip(b"\\")
        return b'"%b%b"' % (intro, self.text.numbered.excerpt(line, size - len(intro)))

    def _write(self, rng: Random, size: int, file: WorkingFile) -> GeneratedCall:
        content = self.text.code.excerpt(file.line, NEW_FILE_BYTES.sample(rng))
        arguments = b'{"file_path":"%b","content":"%b"}' % (file.path, content)
        structured = b'{"type":"create","filePath":"%b","content":"%b","structuredPatch":[]}' % (
            file.path,
            content,
        )
        return GeneratedCall(b"Write", arguments, self._updated_content(file, file.line, size), structured)

    def _todos(self, size: int, state: WorkingState) -> GeneratedCall:
        before, after = state.complete_todo()
        structured = b'{"oldTodos":[%b],"newTodos":[%b]}' % (before, after)
        return GeneratedCall(
            b"TodoWrite", b'{"todos":[%b]}' % after, b'"%b"' % _TODO_RESULT[:size], structured
        )

    def _task(self, rng: Random, size: int, tool: bytes) -> GeneratedCall:
        prompt = self.text.prose.random_excerpt(rng, EDIT_BYTES.sample(rng) * 2)
        content = b'[{"type":"text","text":"%b"}]' % self.text.prose.random_excerpt(rng, size)
        arguments = b'{"description":"%b","prompt":"%b","subagent_type":"general-purpose"}'
        structured = (
            b'{"status":"completed","prompt":"%b","content":%b,"totalDurationMs":%d,'
            b'"totalTokens":%d,"totalToolUseCount":4,"usage":{"input_tokens":4,"output_tokens":210}}'
        )
        return GeneratedCall(
            tool,
            arguments % (self.text.prose.random_excerpt(rng, 30), prompt),
            content,
            structured % (prompt, content, rng.randrange(4000, 90_000), rng.randrange(4000, 60_000)),
            prompt,
        )

    def _search(self, rng: Random, size: int, name: bytes, file: WorkingFile) -> GeneratedCall:
        content = b'"%b"' % self.text.search_output.random_excerpt(rng, size)
        arguments = b'{"pattern":"%b","path":"%b"}' % (_word(rng), file.path.rpartition(b"/")[0])
        structured = b'{"mode":"content","numFiles":%d,"filenames":[],"content":%b,"numLines":%d}'
        return GeneratedCall(name, arguments, content, structured % (size // 60, content, size // 40))


def _word(rng: Random) -> bytes:
    return b"part%d" % rng.randrange(400)


def _structured_patch(old: bytes, new: bytes) -> bytes:
    lines = b",".join(
        [b'"-%b"' % line for line in _split_lines(old)] + [b'"+%b"' % line for line in _split_lines(new)],
    )
    return b'[{"oldStart":12,"oldLines":%d,"newStart":12,"newLines":%d,"lines":[%b]}]' % (
        len(_split_lines(old)),
        len(_split_lines(new)),
        lines,
    )


def _split_lines(escaped: bytes) -> list[bytes]:
    return escaped.split(b"\\n")
