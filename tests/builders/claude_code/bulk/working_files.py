"""State of one generated session: open files, executed commands and the todo list."""

from dataclasses import dataclass, field
from random import Random

from tests.builders.claude_code.bulk.size_distribution import SizeDistribution
from tests.builders.claude_code.bulk.text_pool import TextPools, cut_escaped

FILE_BYTES = SizeDistribution(
    (0, 150), (0.1, 800), (0.5, 3800), (0.9, 22_000), (0.985, 190_000), (1, 450_000)
)
COMMAND_BYTES = SizeDistribution((0, 2), (0.1, 16), (0.5, 70), (0.9, 260), (0.99, 2500), (1, 6000))

_FILES_PER_PROJECT = 60
_REUSED_FILE_SHARE = 0.55
_REPEATED_COMMAND_SHARE = 0.2
_MAX_VISIBLE_CHANGES = 3  # per file


@dataclass
class WorkingFile:
    """A file: lines of the code pool with the latest changes inserted."""

    path: bytes
    line: int  # first line in the code pool
    size: int
    changes: list[tuple[int, bytes]] = field(default_factory=list)  # position in thousandths, inserted lines

    def content(self, text: TextPools) -> bytes:
        content = text.code.excerpt(self.line, self.size)
        for position, change in self.changes:
            line_end = content.find(b"\\n", position * len(content) // 1000)
            if line_end > 0:
                content = content[:line_end] + b"\\n" + change + content[line_end:]
        return content

    def change(self, rng: Random, new: bytes) -> None:
        """Insert these lines. The oldest change disappears if there are too many."""
        kept = self.changes[1 - _MAX_VISIBLE_CHANGES :]
        self.changes = [*kept, (rng.randrange(1000), cut_escaped(new, 2000))]


@dataclass(frozen=True)
class Command:
    arguments: bytes
    output_line: int  # first line of the output in the command output pool


class WorkingState:
    """Open files, executed commands and todos of one session."""

    def __init__(self, rng: Random, text: TextPools, cwd: bytes) -> None:
        self.text, self._cwd, self._rng = text, cwd, rng
        project_rng = Random(cwd)
        self._project_files = [
            project_rng.randrange(len(text.file_starts)) for _ in range(_FILES_PER_PROJECT)
        ]
        self._open_files: list[WorkingFile] = []
        self._commands: list[Command] = []
        self._todo_templates: list[bytes] = []
        self._completed_count = 0
        self.todos = b""

    def choose_file(self) -> WorkingFile:
        """Return a file of the project, often one that was used recently."""
        rng = self._rng
        if self._open_files and rng.random() < _REUSED_FILE_SHARE:
            return self._open_files[-1 - int(rng.random() ** 2 * len(self._open_files))]
        index = self._project_files[int(rng.random() ** 2 * _FILES_PER_PROJECT)]
        path = b"%b/src/part%d.py" % (self._cwd, index)
        file = next((open_file for open_file in self._open_files if open_file.path == path), None)
        if file is None:
            file = WorkingFile(path, self.text.file_starts[index], FILE_BYTES.sample(rng))
            self._open_files.append(file)
        return file

    def choose_command(self) -> Command:
        """Return a new command or repeat an earlier one."""
        rng, text = self._rng, self.text
        if self._commands and rng.random() < _REPEATED_COMMAND_SHARE:
            return self._commands[int(rng.random() * len(self._commands))]
        script = text.command_output if rng.random() < 0.3 else text.code
        arguments = b'{"command":"%b","description":"%b"}' % (
            b"cd %b && " % self._cwd + script.random_excerpt(rng, COMMAND_BYTES.sample(rng)),
            text.prose.random_excerpt(rng, 40),
        )
        command = Command(arguments, int(rng.random() * len(text.command_output)))
        self._commands.append(command)
        return command

    def complete_todo(self) -> tuple[bytes, bytes]:
        """Complete the next todo. Return the list before and after, as JSON without brackets."""
        rng = self._rng
        if self._completed_count >= len(self._todo_templates):
            self._completed_count = 0
            self._todo_templates = [
                b'{"content":"%b","status":"%%b","activeForm":"%b"}'
                % (
                    self.text.prose.random_excerpt(rng, 55).replace(b"%", b""),
                    self.text.prose.random_excerpt(rng, 55).replace(b"%", b""),
                )
                for _ in range(rng.randrange(2, 9))
            ]
        before = self.todos
        self.todos = b",".join(
            template % self._todo_status(index) for index, template in enumerate(self._todo_templates)
        )
        self._completed_count += 1
        return before, self.todos

    def _todo_status(self, index: int) -> bytes:
        if index < self._completed_count:
            return b"completed"
        return b"in_progress" if index == self._completed_count else b"pending"
