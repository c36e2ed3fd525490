"""What commits change: lines with context, hunks of a whole history, sizes, and an id of the content."""

import re
from collections.abc import Iterator
from hashlib import sha256

import msgspec
from msgspec import Struct

from backscroll.git.process import decode, run_git, stream_git, unquote
from backscroll.git.repository import Repository
from backscroll.model.message import Edit, Hunk

_DIFF_TREE = (
    "diff-tree", "--no-commit-id", "--root", "-r", "-M", "--no-color", "--no-ext-diff", "--no-textconv"
)  # fmt: skip
_ANY_HUNK_HEADER = re.compile(rb"^@@ [^@]* @@.*$", re.MULTILINE)
_BLOB_IDS = re.compile(rb"^index [0-9a-f]+\.\.[0-9a-f]+", re.MULTILINE)
_PATCH_ID_CHARS = 16
_COMMIT_MARK = b"\x01commit "  # starts the line of a commit; no line of a patch starts with it
_HUNK_HEADER = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_CONTEXT_LINES = 3
_MAX_LINE_BYTES = 2000


def read_diff(repository: Repository, sha: str, *, max_lines: int) -> Iterator[Edit]:
    """Yield the changes of each text file in a commit. A hunk includes unchanged lines on both sides.

    Stops after ``max_lines``: a file that exceeds them is not included, nor are later ones. A merge has no
    changes.
    """
    lines = stream_git(
        repository.folder,
        *(*_DIFF_TREE, "-p", f"-U{_CONTEXT_LINES}", "--ignore-submodules=all"),
        *("--src-prefix=a/", "--dst-prefix=b/", sha),
        lines=(),
    )
    file: _File | None = None
    for count, line in enumerate(lines):
        if count >= max_lines:
            return
        if line.startswith(b"diff --git "):  # a line of content starts with a sign
            if file is not None:
                yield from file.edit()
            file = _File()
        elif file is not None:
            file.add(line[:_MAX_LINE_BYTES])
    if file is not None:
        yield from file.edit()


class PatchedFile(Struct):
    """A file of a patch: its paths, and whether it is new or deleted, as far as its header was read."""

    path: str = ""  # the old one if the file is deleted
    old_path: str | None = None  # if the file is renamed
    is_new: bool = False
    is_deleted: bool = False

    def add_header(self, line: bytes) -> None:
        """Process a line that is not content of the file."""
        if line.startswith((b"--- ", b"+++ ")):
            path = unquote(decode(line[4:]).removesuffix("\t"))
            self.path = path[2:] if path != "/dev/null" else self.path
        elif line.startswith(b"rename from "):
            self.old_path = unquote(decode(line[12:]))
        elif line.startswith(b"rename to "):
            self.path = unquote(decode(line[10:]))
        elif line.startswith(b"deleted file mode "):
            self.is_deleted = True
        elif line.startswith(b"new file mode "):
            self.is_new = True


class _File(PatchedFile):
    """The changes of one file, read line by line."""

    hunks: list[Hunk] = msgspec.field(default_factory=list)
    start: tuple[int, int] = (0, 0)
    removed: list[str] = msgspec.field(default_factory=list)
    added: list[str] = msgspec.field(default_factory=list)
    # Lines of the current hunk that are left: old, new.
    remaining: list[int] = msgspec.field(default_factory=lambda: [0, 0])

    def edit(self) -> Iterator[Edit]:
        """Yield the changes, if there are any lines."""
        if self.path and self.hunks:
            yield Edit(
                path=self.path,
                hunks=tuple(self.hunks),
                kind="create" if self.is_new else "delete" if self.is_deleted else "update",
            )

    def add(self, line: bytes) -> None:
        """Add a line of the patch."""
        if any(self.remaining):
            self._add_content(line)
        elif match := _HUNK_HEADER.match(line):
            self.start = int(match[1]), int(match[3])
            self.remaining = [int(match[2] or 1), int(match[4] or 1)]
        else:
            self.add_header(line)

    def _add_content(self, line: bytes) -> None:
        sign, text = line[:1], decode(line[1:])
        if sign == b"\\":  # "No newline at end of file"
            return
        if sign != b"+":
            self.removed.append(text)
            self.remaining[0] -= 1
        if sign != b"-":
            self.added.append(text)
            self.remaining[1] -= 1
        if not any(self.remaining):
            self.hunks.append(Hunk(tuple(self.removed), tuple(self.added), *self.start))
            self.removed, self.added = [], []


class HunkLines(Struct, frozen=True, gc=False):
    """Lines that replace others. Numbers count from 1 and are those of the old file."""

    old_start: int
    old_count: int
    new_start: int
    added: tuple[bytes, ...]


class FileHunks(PatchedFile):
    """Changes of one file."""

    hunks: list[HunkLines] = msgspec.field(default_factory=list)


class CommitHunks(Struct, frozen=True):
    """Changes of one commit against its first parent."""

    sha: str
    authored_at: int  # seconds since 1970
    committed_at: int
    is_merge: bool
    files: list[FileHunks]


def read_hunks(repository: Repository, ref: str) -> Iterator[CommitHunks]:
    """Yield the commits of the first-parent history, oldest first. A merge contains what it merges."""
    lines = stream_git(
        repository.folder,
        *("log", "--first-parent", "-m", "--reverse", "--topo-order", "-p", "-U0", "-M", "--no-color"),
        *("--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--format=%x01commit %H %at %ct %p"),
        *(ref, "--"),
        lines=(),
    )
    current: CommitHunks | None = None
    remaining_old = remaining_new = 0
    added: list[bytes] = msgspec.field(default_factory=list)
    span = (0, 0, 0)
    for line in lines:
        if remaining_old or remaining_new:
            if line.startswith(b"-"):
                remaining_old -= 1
            elif line.startswith(b"+"):
                remaining_new -= 1
                added.append(line[1:])
            if not remaining_old and not remaining_new and current is not None:
                current.files[-1].hunks.append(HunkLines(*span, tuple(added)))
        elif line.startswith(_COMMIT_MARK):
            if current is not None:
                yield current
            sha, authored_at, committed_at, *parents = line[len(_COMMIT_MARK) :].split()
            current = CommitHunks(sha.decode(), int(authored_at), int(committed_at), len(parents) > 1, [])
        elif current is None:
            continue
        elif line.startswith(b"diff --git "):
            current.files.append(FileHunks())
        elif match := _HUNK_HEADER.match(line):
            span = int(match[1]), int(match[2] or 1), int(match[3])
            remaining_old, remaining_new = span[1], int(match[4] or 1)
            added = []
        elif current.files:
            current.files[-1].add_header(line)
    if current is not None:
        yield current


class FileSize(Struct, frozen=True):
    """Added and removed lines of one file in a commit; None for a binary file."""

    path: str
    added: int | None
    removed: int | None


def read_sizes(repository: Repository, sha: str) -> list[FileSize]:
    """Return the changed files of a commit, in git's order. A merge has none."""
    fields = iter(decode(run_git(repository.folder, *_DIFF_TREE, "--numstat", "-z", sha)).split("\0"))
    sizes: list[FileSize] = []
    for field in fields:
        added, _, rest = field.partition("\t")
        removed, tab, path = rest.partition("\t")
        if not tab:
            continue
        if not path:  # renamed: the old and the new path follow
            next(fields)
            path = next(fields)
        sizes.append(FileSize(path, *(int(n) if n.isdigit() else None for n in (added, removed))))
    return sizes


def patch_id(repository: Repository, sha: str) -> str:
    """Return an id of the lines that a commit adds and removes. Line numbers and context do not count."""
    patch = run_git(repository.folder, *_DIFF_TREE, "-p", "-U0", "--full-index", sha)
    # A binary file has no lines: its blob ids stand for its content.
    if b"\nBinary files " not in patch:
        patch = _BLOB_IDS.sub(b"index", patch)
    return sha256(_ANY_HUNK_HEADER.sub(b"@@", patch)).hexdigest()[:_PATCH_ID_CHARS]
