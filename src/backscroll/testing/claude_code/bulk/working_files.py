"""What lies open in one session: files read and edited again and again, commands, a list of tasks."""

from dataclasses import dataclass, field
from random import Random

from backscroll.testing.claude_code.bulk.size_distribution import Curve
from backscroll.testing.claude_code.bulk.text_pool import Text

__all__ = ["Command", "Desk", "Sheet"]

LENGTH = Curve((0, 150), (0.1, 800), (0.5, 3800), (0.9, 22_000), (0.985, 190_000), (1, 450_000))
COMMAND = Curve((0, 2), (0.1, 16), (0.5, 70), (0.9, 260), (0.99, 2500), (1, 6000))

_FILES = 60  # of a project
_AGAIN = 0.55  # of the files taken up: had before
_RUN_AGAIN = 0.2
_CHANGES = 3  # that are still seen in a file


@dataclass
class Sheet:
    """A file: the lines of the pool from one on, with the latest changes in between."""

    path: bytes
    line: int
    size: int
    changes: list[tuple[int, bytes]] = field(default_factory=list)

    def content(self, text: Text) -> bytes:
        """The whole of it."""
        plain = text.code.piece(self.line, self.size)
        for place, change in self.changes:
            cut = plain.find(b"\\n", place * len(plain) // 1000)
            if cut > 0:
                plain = plain[:cut] + b"\\n" + change + plain[cut:]
        return plain

    def change(self, rng: Random, new: bytes) -> None:
        """Let these lines be found in it from now on."""
        self.changes = [*self.changes[1 - _CHANGES :], (rng.randrange(1000), new[:2000].rstrip(b"\\"))]


@dataclass(frozen=True)
class Command:
    put: bytes
    line: int  # of the pool of what commands print


class Desk:
    """One session's belongings, in one project."""

    def __init__(self, rng: Random, text: Text, cwd: bytes) -> None:
        self.text, self._cwd, self._rng = text, cwd, rng
        place = Random(cwd)
        self._files = [place.randrange(len(text.files)) for _ in range(_FILES)]
        self._sheets: list[Sheet] = []
        self._commands: list[Command] = []
        self._tasks: list[bytes] = []
        self._done = 0
        self.todos = b""

    def sheet(self) -> Sheet:
        """A file to work on: often one of those at hand, mostly the latest."""
        rng = self._rng
        if self._sheets and rng.random() < _AGAIN:
            return self._sheets[-1 - int(rng.random() ** 2 * len(self._sheets))]
        number = self._files[int(rng.random() ** 2 * _FILES)]
        path = b"%b/src/part%d.py" % (self._cwd, number)
        known = next((sheet for sheet in self._sheets if sheet.path == path), None)
        if known is None:
            known = Sheet(path, self.text.files[number], LENGTH.draw(rng))
            self._sheets.append(known)
        return known

    def command(self) -> Command:
        """A command to run, perhaps once more."""
        rng, text = self._rng, self.text
        if self._commands and rng.random() < _RUN_AGAIN:
            return self._commands[int(rng.random() * len(self._commands))]
        script = text.printed if rng.random() < 0.3 else text.code
        put = b'{"command":"%b","description":"%b"}' % (
            b"cd %b && " % self._cwd + script.cut(rng, COMMAND.draw(rng)),
            text.prose.cut(rng, 40),
        )
        command = Command(put, int(rng.random() * len(text.printed)))
        self._commands.append(command)
        return command

    def tick(self) -> tuple[bytes, bytes]:
        """The list of tasks before and after one more of them is done."""
        rng = self._rng
        if self._done >= len(self._tasks):
            self._done = 0
            self._tasks = [
                b'{"content":"%b","status":"%%b","activeForm":"%b"}'
                % (
                    self.text.prose.cut(rng, 55).replace(b"%", b""),
                    self.text.prose.cut(rng, 55).replace(b"%", b""),
                )
                for _ in range(rng.randrange(2, 9))
            ]
        before = self.todos
        self.todos = b",".join(
            task % (b"completed" if n < self._done else b"in_progress" if n == self._done else b"pending")
            for n, task in enumerate(self._tasks)
        )
        self._done += 1
        return before, self.todos
