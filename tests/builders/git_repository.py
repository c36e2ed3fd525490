"""Repositories written with the git executable, with the given times."""

import os
import subprocess
from datetime import datetime
from pathlib import Path


class GitRepository:
    """A checkout. Every commit has a given time, so that hashes are the same in every run."""

    def __init__(self, folder: Path, *, branch: str = "main", is_existing: bool = False) -> None:
        self.folder = folder
        if not is_existing:
            folder.mkdir(parents=True)
            self.run("init", "--quiet", "--template=", f"--initial-branch={branch}")

    def write(self, path: str, text: str | bytes) -> None:
        """Write a file of the checkout."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self, message: str, at: datetime, *, author: str = "Robin Vale") -> str:
        """Commit all changes. Return the hash."""
        self.run("add", "--all", at=at)
        self.run("commit", "--quiet", "--allow-empty", "-m", message, at=at, author=author)
        return self.head()

    def head(self) -> str:
        """Return the hash of the last commit."""
        return self.run("rev-parse", "HEAD").strip()

    def worktree(self, folder: Path, branch: str) -> "GitRepository":
        """Add a worktree on a new branch."""
        self.run("worktree", "add", "--quiet", "-b", branch, str(folder))
        return GitRepository(folder, is_existing=True)

    def bare_clone(self, folder: Path) -> Path:
        """Clone the repository without a checkout."""
        self.run("clone", "--quiet", "--bare", str(self.folder), str(folder))
        return folder

    def run(self, *arguments: str, at: datetime | None = None, author: str = "Robin Vale") -> str:
        """Run git without the configuration of the user and the system. ``at`` is the time of new commits."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
        for role in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{role}_NAME": author, f"GIT_{role}_EMAIL": "robin@example.invalid"}
            if at is not None:
                environment[f"GIT_{role}_DATE"] = at.isoformat()
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=environment,
            check=True,
            capture_output=True,
        )
        return done.stdout.decode()
