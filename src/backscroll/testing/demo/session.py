"""Base class of a session in the demo.

The content of a session does not depend on the tool. Subclasses write it in the format
of each tool.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import md5
from random import Random
from uuid import UUID

from backscroll.testing.demo.project import Repository


def session_id(name: str) -> str:
    """Return the id of a session. It depends only on the name."""
    return str(UUID(bytes=md5(name.encode(), usedforsecurity=False).digest(), version=4))


class DemoSession(ABC):
    """Session of the demo. The methods add prompts, responses and tool calls in order."""

    def __init__(self, name: str, title: str, repository: Repository, *, folder: str | None = None) -> None:
        self.id = session_id(name)
        self.name = name
        self.title = title
        self.repository = repository
        self.folder = folder or repository.path
        self.random = Random(name)
        self.subagents = 0

    @property
    @abstractmethod
    def now(self) -> datetime:
        """Time of the last message."""

    @abstractmethod
    def pause(self, *, minutes: float = 0, seconds: float = 0) -> None:
        """Advance the clock."""

    @abstractmethod
    def prompt(self, text: str) -> None:
        """Add a prompt."""

    @abstractmethod
    def think(self, text: str) -> None:
        """Add thinking before the next response."""

    @abstractmethod
    def note(self, text: str) -> None:
        """Add text before the next tool call."""

    @abstractmethod
    def reply(self, text: str) -> None:
        """Add the response that ends a turn."""

    @abstractmethod
    def shell(self, command: str, output: str = "", *, code: int = 0) -> None:
        """Run a command."""

    @abstractmethod
    def grep(self, pattern: str, *found: str) -> None:
        """Search the project. ``found`` are lines of the form ``path:number:text``."""

    @abstractmethod
    def todo(self, *items: tuple[str, str]) -> None:
        """Write the todo list. Each item is a pair of content and status."""

    @abstractmethod
    def _add_read(self, path: str, text: str) -> None: ...

    @abstractmethod
    def _add_edit(self, path: str, old: str, new: str, before: str) -> None: ...

    @abstractmethod
    def _add_write(self, path: str, text: str, before: str | None) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """End the session. No other method may be called afterwards."""

    def read(self, *paths: str, repository: Repository | None = None) -> None:
        """Read files of the project."""
        repository = repository or self.repository
        for path in paths:
            self._add_read(self._absolute_path(path, repository), repository.files[path])

    def edit(self, path: str, old: str, new: str, *, repository: Repository | None = None) -> None:
        """Replace one part of a file."""
        repository = repository or self.repository
        before = repository.files[path]
        if before.count(old) != 1:
            raise ValueError(f"{self.name}: {path} contains this {before.count(old)} times:\n{old}")
        self._add_edit(self._absolute_path(path, repository), old, new, before)
        repository.put(path, before.replace(old, new), session=self.id)

    def write(self, path: str, text: str, *, repository: Repository | None = None) -> None:
        """Write a whole file."""
        repository = repository or self.repository
        self._add_write(self._absolute_path(path, repository), text, repository.files.get(path))
        repository.put(path, text, session=self.id)

    def delete(self, path: str) -> None:
        """Delete a file."""
        self.shell(f"git rm -q {path}")
        self.repository.put(path, None, session=self.id)

    def revert(self, *paths: str) -> None:
        """Revert all uncommitted changes of some files."""
        self.shell(f"git checkout -- {' '.join(paths)}")
        for path in paths:
            self.repository.restore(path)

    def commit(self, message: str) -> None:
        """Commit all changes as the assistant."""
        commit = self.repository.commit(message, self.now + timedelta(seconds=1))
        body = commit.message.strip().partition("\n\n")[2]
        quoted = f' -m "{body}"' if body else ""
        self.shell(
            f'git add -A && git commit -m "{commit.subject}"{quoted}', self.repository.commit_output(commit)
        )

    def commit_by_hand(
        self, message: str, *, minutes: float = 6, repository: Repository | None = None
    ) -> None:
        """Commit all changes as the user, some minutes after the last message."""
        (repository or self.repository).commit(message, self.now + timedelta(minutes=minutes))

    def _absolute_path(self, path: str, repository: Repository) -> str:
        return f"{self.folder if repository is self.repository else repository.path}/{path}"

    def _matched_paths(self, found: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(line.partition(":")[0] for line in found))
