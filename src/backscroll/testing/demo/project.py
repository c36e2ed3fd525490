"""Files and commits of a project while its sessions are defined."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from difflib import SequenceMatcher

from msgspec import Struct

from backscroll.testing.demo.git_objects import commit_id, tree_id

_AUTHOR = "Robin Vale <robin@example.invalid>"
_WINTER_TIME_START = datetime(2026, 10, 25, 1, tzinfo=UTC)


class Change(Struct, frozen=True):
    """Edit of one file. The text of a missing file is None."""

    session: str | None  # None: edited by hand
    path: str
    before: str | None
    after: str | None


class Commit(Struct, frozen=True):
    """Commit with all its files and the edits since its parent."""

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
        """Sessions with edits in this commit, ordered by their first edit."""
        return tuple(dict.fromkeys(change.session for change in self.changes if change.session is not None))


class Repository:
    """Files and commits of one checkout. A worktree is a second checkout with the same parent commits."""

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
        """Change a file. None deletes it."""
        before = self.files.get(path)
        if text is None:
            self.files.pop(path)
        else:
            self.files[path] = text
        self._pending.append(Change(session, path, before, text))

    def restore(self, path: str) -> None:
        """Revert the changes of a file since the last commit."""
        self._pending = [change for change in self._pending if change.path != path]
        if self.head is not None and path in self.head.files:
            self.files[path] = self.head.files[path]
        else:
            self.files.pop(path, None)

    def commit(self, message: str, at: datetime) -> Commit:
        """Commit all changes."""
        if not self._pending:
            raise ValueError(f"Nothing to commit in {self.name}: {message}")
        if self.head is not None and at <= self.head.at:
            raise ValueError(f"Commit {message!r} is not later than {self.head.subject!r}.")
        message = message.rstrip("\n") + "\n"
        parent = self.head.id if self.head is not None else None
        id = commit_id(tree_id(self.files), parent, author_line(at), message)
        changes, self._pending = tuple(self._pending), []
        self.head = Commit(id, self.head, self.branch, at, message, dict(self.files), changes)
        self.commits.append(self.head)
        return self.head

    def worktree(self, branch: str) -> "Repository":
        """Return a second checkout on a new branch."""
        tree = Repository(self._home, f"{self.name}-{branch}", branch=branch, head=self.head)
        self.worktrees.append(tree)
        return tree

    def commit_output(self, commit: Commit) -> str:
        """Return the output of ``git commit``."""
        before = commit.parent.files if commit.parent is not None else {}
        paths = [p for p in sorted({*before, *commit.files}) if before.get(p) != commit.files.get(p)]
        added = removed = 0
        for path in paths:
            path_added, path_removed = _count_changes(before.get(path, ""), commit.files.get(path, ""))
            added, removed = added + path_added, removed + path_removed
        root = "(root-commit) " if commit.parent is None else ""
        parts = [f" {len(paths)} file{'s' if len(paths) > 1 else ''} changed"]
        parts += [f"{added} insertion{'s' if added > 1 else ''}(+)"] if added else []
        parts += [f"{removed} deletion{'s' if removed > 1 else ''}(-)"] if removed else []
        created = [f" create mode 100644 {path}" for path in paths if path not in before]
        return "\n".join(
            [f"[{self.branch} {root}{commit.id[:7]}] {commit.subject}", ", ".join(parts), *created]
        )


def author_line(at: datetime) -> str:
    """Return author and local time in the format of git."""
    hours = 1 if at >= _WINTER_TIME_START else 2
    local = at.astimezone(timezone(timedelta(hours=hours)))
    return f"{_AUTHOR} {int(at.timestamp())} {local:%z}"


def _count_changes(before: str, after: str) -> tuple[int, int]:
    """Return the number of added and removed lines."""
    old, new = before.splitlines(), after.splitlines()
    added = removed = 0
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            added, removed = added + d - c, removed + b - a
    return added, removed
