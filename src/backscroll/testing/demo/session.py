"""A session while it is being told, whichever tool it was held in.

The story is written once, in the words people and assistants use; each tool's
scene knows how that tool writes it down.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import md5
from random import Random
from uuid import UUID

from backscroll.testing.demo.project import Repository

__all__ = ["Scene", "session_id"]


def session_id(name: str) -> str:
    """The id of a session of this name, the same wherever the history is written."""
    return str(UUID(bytes=md5(name.encode(), usedforsecurity=False).digest(), version=4))


class Scene(ABC):
    """What happens in one session, in order."""

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
        """When the last thing happened."""

    @abstractmethod
    def pause(self, *, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass."""

    @abstractmethod
    def say(self, text: str) -> None:
        """The person types something."""

    @abstractmethod
    def think(self, text: str) -> None:
        """The assistant thinks, before what it does or says next."""

    @abstractmethod
    def note(self, text: str) -> None:
        """The assistant says what it is about to do."""

    @abstractmethod
    def reply(self, text: str) -> None:
        """The assistant answers, and it is the person's turn."""

    @abstractmethod
    def shell(self, command: str, output: str = "", *, code: int = 0) -> None:
        """The assistant runs a command."""

    @abstractmethod
    def grep(self, pattern: str, *found: str) -> None:
        """The assistant searches the project; ``found`` are lines of ``path:number:text``."""

    @abstractmethod
    def todo(self, *items: tuple[str, str]) -> None:
        """The assistant writes its list: what is to do, and how it stands."""

    @abstractmethod
    def _show_read(self, path: str, text: str) -> None: ...

    @abstractmethod
    def _show_edit(self, path: str, old: str, new: str, before: str) -> None: ...

    @abstractmethod
    def _show_write(self, path: str, text: str, before: str | None) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """The session is over; nothing is told of it any more."""

    def read(self, *paths: str, repository: Repository | None = None) -> None:
        """The assistant reads files of the project."""
        repository = repository or self.repository
        for path in paths:
            self._show_read(self._full(path, repository), repository.files[path])

    def edit(self, path: str, old: str, new: str, *, repository: Repository | None = None) -> None:
        """The assistant replaces one passage of a file."""
        repository = repository or self.repository
        before = repository.files[path]
        if before.count(old) != 1:
            raise ValueError(f"{self.name}: {path} holds this {before.count(old)} times:\n{old}")
        self._show_edit(self._full(path, repository), old, new, before)
        repository.put(path, before.replace(old, new), session=self.id)

    def write(self, path: str, text: str, *, repository: Repository | None = None) -> None:
        """The assistant writes a whole file."""
        repository = repository or self.repository
        self._show_write(self._full(path, repository), text, repository.files.get(path))
        repository.put(path, text, session=self.id)

    def delete(self, path: str) -> None:
        """The assistant deletes a file."""
        self.shell(f"git rm -q {path}")
        self.repository.put(path, None, session=self.id)

    def undo(self, *paths: str) -> None:
        """The assistant takes back everything it did to these files."""
        self.shell(f"git checkout -- {' '.join(paths)}")
        for path in paths:
            self.repository.restore(path)

    def commit(self, message: str) -> None:
        """The assistant commits."""
        commit = self.repository.commit(message, self.now + timedelta(seconds=1))
        body = commit.message.strip().partition("\n\n")[2]
        quoted = f' -m "{body}"' if body else ""
        self.shell(f'git add -A && git commit -m "{commit.subject}"{quoted}', self.repository.told(commit))

    def later(self, message: str, *, minutes: float = 6, repository: Repository | None = None) -> None:
        """The person commits by hand, some time after the last thing that happened."""
        (repository or self.repository).commit(message, self.now + timedelta(minutes=minutes))

    def _full(self, path: str, repository: Repository) -> str:
        return f"{self.folder if repository is self.repository else repository.path}/{path}"

    def _shown_paths(self, found: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(line.partition(":")[0] for line in found))
