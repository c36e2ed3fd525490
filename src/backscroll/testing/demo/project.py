"""A project while its story is told: its files as they are now, and the commits so far."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from difflib import SequenceMatcher

from msgspec import Struct

from backscroll.testing.demo.git_objects import commit_id, tree_id

__all__ = ["Change", "Commit", "Repository", "stamp"]

_AUTHOR = "Robin Vale <robin@example.invalid>"
_CLOCKS_WENT_BACK = datetime(2026, 10, 25, 1, tzinfo=UTC)


class Change(Struct, frozen=True):
    """One edit of one file. A file that is not there is None."""

    session: str | None  # None: made by hand
    path: str
    before: str | None
    after: str | None


class Commit(Struct, frozen=True):
    """A commit with all the files it holds, and the edits that led to it."""

    id: str
    parent: "Commit | None"
    branch: str
    at: datetime
    message: str
    files: Mapping[str, str]
    changes: tuple[Change, ...]

    @property
    def subject(self) -> str:
        return self.message.partition("\n")[0]

    @property
    def sessions(self) -> tuple[str, ...]:
        """The sessions whose edits are in it, in the order of their first edit."""
        return tuple(dict.fromkeys(change.session for change in self.changes if change.session is not None))


class Repository:
    """Files and commits of one checkout; a worktree is another one that shares the commits."""

    def __init__(self, home: str, name: str, *, branch: str = "main", head: Commit | None = None) -> None:
        self.name = name
        self.path = f"{home}/projects/{name}"
        self.branch = branch
        self.files: dict[str, str] = dict(head.files) if head is not None else {}
        self.head = head
        self.commits: list[Commit] = []
        self.worktrees: list[Repository] = []
        self._home = home
        self._pending: list[Change] = []

    def put(self, path: str, text: str | None, *, session: str | None = None) -> None:
        """Change a file; None deletes it."""
        before = self.files.get(path)
        if text is None:
            self.files.pop(path)
        else:
            self.files[path] = text
        self._pending.append(Change(session, path, before, text))

    def restore(self, path: str) -> None:
        """Take back what was done to a file since the last commit."""
        self._pending = [change for change in self._pending if change.path != path]
        if self.head is not None and path in self.head.files:
            self.files[path] = self.head.files[path]
        else:
            self.files.pop(path, None)

    def commit(self, message: str, at: datetime) -> Commit:
        """Commit everything that was changed."""
        if not self._pending:
            raise ValueError(f"nothing to commit in {self.name}: {message}")
        if self.head is not None and at <= self.head.at:
            raise ValueError(f"{message} is not after {self.head.subject}")
        message = message.rstrip("\n") + "\n"
        parent = self.head.id if self.head is not None else None
        id = commit_id(tree_id(self.files), parent, stamp(at), message)
        changes, self._pending = tuple(self._pending), []
        self.head = Commit(id, self.head, self.branch, at, message, dict(self.files), changes)
        self.commits.append(self.head)
        return self.head

    def worktree(self, branch: str) -> "Repository":
        """A second checkout beside this one, on a branch of its own."""
        tree = Repository(self._home, f"{self.name}-{branch}", branch=branch, head=self.head)
        self.worktrees.append(tree)
        return tree

    def told(self, commit: Commit) -> str:
        """What git prints after a commit."""
        before = commit.parent.files if commit.parent is not None else {}
        paths = [p for p in sorted({*before, *commit.files}) if before.get(p) != commit.files.get(p)]
        added = removed = 0
        for path in paths:
            more, less = _counted(before.get(path, ""), commit.files.get(path, ""))
            added, removed = added + more, removed + less
        root = "(root-commit) " if commit.parent is None else ""
        parts = [f" {len(paths)} file{'s' if len(paths) > 1 else ''} changed"]
        parts += [f"{added} insertion{'s' if added > 1 else ''}(+)"] if added else []
        parts += [f"{removed} deletion{'s' if removed > 1 else ''}(-)"] if removed else []
        created = [f" create mode 100644 {path}" for path in paths if path not in before]
        return "\n".join(
            [f"[{self.branch} {root}{commit.id[:7]}] {commit.subject}", ", ".join(parts), *created]
        )


def stamp(at: datetime) -> str:
    """Author and time as git keeps them, in the zone the author lives in."""
    hours = 1 if at >= _CLOCKS_WENT_BACK else 2
    local = at.astimezone(timezone(timedelta(hours=hours)))
    return f"{_AUTHOR} {int(at.timestamp())} {local:%z}"


def _counted(before: str, after: str) -> tuple[int, int]:
    """Lines put in and taken out."""
    old, new = before.splitlines(), after.splitlines()
    added = removed = 0
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            added, removed = added + d - c, removed + b - a
    return added, removed
