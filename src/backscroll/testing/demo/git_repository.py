"""Write repositories with the git executable."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from backscroll.testing.demo.project import Commit, Repository, author_line


def find_git() -> str | None:
    """Return the path of the git executable, or None."""
    return shutil.which("git")


def write_files(repository: Repository, folder: Path) -> None:
    """Write the current files of a checkout. Their modification time is the time of the last commit."""
    at = repository.head.at.timestamp() if repository.head is not None else 0.0
    for name, text in repository.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        os.utime(path, (at, at))


def write_repository(git: str, repository: Repository, projects: Path) -> None:
    """Write all commits of a repository, and its worktrees.

    The result contains nothing that depends on the time of writing: no hooks, no reflog
    and no file times in the index. So the same history gives the same bytes.
    """
    folder = projects / repository.name
    _run(git, folder, "init", "--quiet", "--template=")
    _run(git, folder, "config", "core.logAllRefUpdates", "false")  # the reflog contains the time of writing
    _run(git, folder, "symbolic-ref", "HEAD", f"refs/heads/{repository.branch}")
    commits = [*repository.commits, *(commit for tree in repository.worktrees for commit in tree.commits)]
    _run(git, folder, "fast-import", "--quiet", input=b"".join(_fast_import_stream(commits)))
    _run(git, folder, "read-tree", "HEAD")
    for tree in repository.worktrees:
        _write_worktree(git, repository, tree, projects)


def _write_worktree(git: str, repository: Repository, tree: Repository, projects: Path) -> None:
    """Write a worktree. Its paths refer to the final folder, not to the temporary one."""
    checkout = projects / tree.name
    _run(
        git,
        projects / repository.name,
        "worktree",
        "add",
        "--quiet",
        "--no-checkout",
        str(checkout),
        tree.branch,
    )
    metadata = projects / repository.name / ".git/worktrees" / tree.name
    (checkout / ".git").write_text(f"gitdir: {repository.path}/.git/worktrees/{tree.name}\n")
    (metadata / "gitdir").write_text(f"{tree.path}/.git\n")
    (metadata / "index").unlink(missing_ok=True)
    _run(git, checkout, f"--git-dir={metadata}", f"--work-tree={checkout}", "read-tree", tree.branch)
    # These contain the time of writing.
    shutil.rmtree(metadata / "logs", ignore_errors=True)
    (metadata / "ORIG_HEAD").unlink(missing_ok=True)


def _fast_import_stream(commits: list[Commit]) -> Iterator[bytes]:
    """Yield the input of ``git fast-import`` for the commits."""
    marks: dict[str, int] = {}
    for commit in sorted(commits, key=lambda commit: commit.at):
        author = author_line(commit.at)
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


def _run(git: str, folder: Path, *arguments: str, input: bytes = b"") -> None:
    """Run git without the configuration of the user and the system."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    subprocess.run(
        [git, *arguments], cwd=folder, env=environment, input=input, check=True, capture_output=True
    )
