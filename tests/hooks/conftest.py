"""A repository with an archive that its hook reports to."""

import json
import os
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backscroll import History
from backscroll.config import NamedRoot
from backscroll.hooks import install_git_hooks

if shutil.which("git") is None:
    collect_ignore_glob = ["test_install_git_hooks.py", "test_commit_worker.py"]


class Repo:
    """A repository, and the archive that its hook reports to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "my repo"
        self.home = folder / "home"
        self.claude = folder / "claude"
        for path in (self.folder, self.home, self.claude):
            path.mkdir()
        self.git("init", "-q", "-b", "main")
        self._count = 0

    def git(self, *arguments: str, folder: Path | None = None, **environ: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder or self.folder,
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        self.errors = done.stderr
        return done.stdout.strip()

    def commit(self, folder: Path | None = None, **environ: str) -> str:
        self._count += 1
        (folder or self.folder).joinpath(f"file{self._count}.txt").write_text(f"line {self._count}\n")
        self.git("add", "--all", folder=folder)
        self.git("commit", "-q", "-m", f"commit {self._count}", folder=folder, **environ)
        return self.git("rev-parse", "HEAD", folder=folder)

    def open(self) -> History:
        return History(home=self.home, roots=[NamedRoot("claude-code", self.claude)])

    def install(self, *, is_global: bool = False) -> None:
        with self.open() as history:
            history.hooks.apply_git_change(history.hooks.plan_git_install(self.folder, is_global=is_global))

    def uninstall(self, *, is_global: bool = False) -> None:
        with self.open() as history:
            history.hooks.apply_git_change(history.hooks.plan_git_uninstall(self.folder, is_global=is_global))

    def wait_for_records(self, count: int) -> list[dict[str, Any]]:
        """Wait until the hooks have recorded so many commits. They run in the background."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            file = self.home / "spool" / "events.jsonl"
            lines = file.read_bytes().splitlines() if file.exists() else []
            found = [json.loads(line)["commit"] for line in lines if line]
            if len(found) >= count:
                return found
            time.sleep(0.02)
        raise TimeoutError

    def commits(self) -> dict[str, str]:
        """Sync, and return the reported commits with their events."""
        with self.open() as history:
            history.sync()
        with closing(sqlite3.connect(self.home / "archive.db")) as db:
            return dict(db.execute("select sha, event from hook_commit").fetchall())

    @property
    def hooks(self) -> Path:
        return self.folder / ".git" / "hooks"

    def write_hook(self, text: str, name: str = "post-commit", mode: int = 0o755) -> Path:
        path = self.hooks / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CODE_SESSION_ID", raising=False)
    # Scripts, also with a new git.
    monkeypatch.setattr(install_git_hooks, "has_configured_hooks", lambda _: False)
    (tmp_path / "gitconfig").write_text("[user]\n\tname = Zoe\n\temail = zoe@example.org\n")
    return Repo(tmp_path)
