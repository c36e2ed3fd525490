"""Repositories on disk, written with the git executable."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from backscroll.testing.demo.project import Commit, Repository, stamp

__all__ = ["find_git", "write_files", "write_repository"]


def find_git() -> str | None:
    """The git executable, when there is one."""
    return shutil.which("git")


def write_files(repository: Repository, folder: Path) -> None:
    """The files of a checkout as its last session left them, each with the time of the last commit."""
    at = repository.head.at.timestamp() if repository.head is not None else 0.0
    for name, text in repository.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        os.utime(path, (at, at))


def write_repository(git: str, repository: Repository, projects: Path) -> None:
    """All commits of a repository below its folder, and its worktrees beside it.

    Nothing git writes of its own accord stays: no hooks, and no times of files in
    the index. So the same story gives the same bytes.
    """
    folder = projects / repository.name
    _run(git, folder, "init", "--quiet", "--template=")
    _run(git, folder, "config", "core.logAllRefUpdates", "false")  # the log would hold the time of writing
    _run(git, folder, "symbolic-ref", "HEAD", f"refs/heads/{repository.branch}")
    commits = [*repository.commits, *(commit for tree in repository.worktrees for commit in tree.commits)]
    _run(git, folder, "fast-import", "--quiet", told=b"".join(_stream(commits)))
    _run(git, folder, "read-tree", "HEAD")
    for tree in repository.worktrees:
        _write_worktree(git, repository, tree, projects)


def _write_worktree(git: str, repository: Repository, tree: Repository, projects: Path) -> None:
    """A worktree whose two pointers say where it will be, not where it is being written."""
    beside = projects / tree.name
    _run(
        git,
        projects / repository.name,
        "worktree",
        "add",
        "--quiet",
        "--no-checkout",
        str(beside),
        tree.branch,
    )
    kept = projects / repository.name / ".git/worktrees" / tree.name
    (beside / ".git").write_text(f"gitdir: {repository.path}/.git/worktrees/{tree.name}\n")
    (kept / "gitdir").write_text(f"{tree.path}/.git\n")
    (kept / "index").unlink(missing_ok=True)
    _run(git, beside, f"--git-dir={kept}", f"--work-tree={beside}", "read-tree", tree.branch)
    # What these hold is when the worktree was made, not when it is supposed to have been.
    shutil.rmtree(kept / "logs", ignore_errors=True)
    (kept / "ORIG_HEAD").unlink(missing_ok=True)


def _stream(commits: list[Commit]) -> Iterator[bytes]:
    """The commits as ``git fast-import`` takes them."""
    marks: dict[str, int] = {}
    for commit in sorted(commits, key=lambda commit: commit.at):
        author = stamp(commit.at)
        mark = marks[commit.id] = len(marks) + 1
        yield f"commit refs/heads/{commit.branch}\nmark :{mark}\n".encode()
        yield f"author {author}\ncommitter {author}\n".encode()
        yield _data(commit.message)
        before = commit.parent.files if commit.parent is not None else {}
        if commit.parent is not None:
            yield f"from :{marks[commit.parent.id]}\n".encode()
        for path in sorted({*before, *commit.files}):
            if path not in commit.files:
                yield f"D {path}\n".encode()
            elif before.get(path) != commit.files[path]:
                yield f"M 100644 inline {path}\n".encode() + _data(commit.files[path])
        yield b"\n"


def _data(text: str) -> bytes:
    content = text.encode()
    return f"data {len(content)}\n".encode() + content + b"\n"


def _run(git: str, folder: Path, *arguments: str, told: bytes = b"") -> None:
    """Run git with nobody's settings but its own."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    subprocess.run([git, *arguments], cwd=folder, env=own, input=told, check=True, capture_output=True)
