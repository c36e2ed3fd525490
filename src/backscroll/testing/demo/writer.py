"""Write the demo completely or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from backscroll.errors import DestinationError
from backscroll.testing.cursor import write_code_workspace
from backscroll.testing.demo.claude_session import ClaudeSession
from backscroll.testing.demo.cursor_cli_session import CursorCliSession
from backscroll.testing.demo.cursor_session import CursorIdeSession
from backscroll.testing.demo.git_repository import find_git, write_files, write_repository
from backscroll.testing.demo.projects import (
    lintel_autumn,
    lintel_summer,
    saltern_autumn,
    saltern_summer,
    tideline_autumn,
    tideline_july,
    tideline_summer,
    website,
)
from backscroll.testing.demo.sample_history import SampleHistory
from backscroll.testing.demo.session import session_id

# Deleted after the first sync, so that `list --gone` has something to show.
_DELETED_SESSION = "tideline/clock-change-tests"

# Chronological within a project. A session that edits two projects follows the earlier ones of both.
_PROJECT_MODULES = (
    tideline_july,
    tideline_summer,
    saltern_summer,
    tideline_autumn,
    saltern_autumn,
    lintel_summer,
    lintel_autumn,
    website,
)

ROOTS = {"claude-code": ".claude", "cursor": ".config/Cursor", "cursor-cli": ".cursor"}  # in the folder


class Demo(Struct, frozen=True):
    """Paths and totals of a written demo."""

    folder: str
    roots: dict[str, str]  # by source
    sessions: dict[str, int]  # by source; subagents are not counted
    subagents: int
    repositories: int
    commits: int
    began_at: datetime
    ended_at: datetime
    has_git: bool  # without git the projects have files, but no commits


def build_history(home: str, folder: Path) -> SampleHistory:
    """Return the sample history of a user with this home folder.

    `SampleHistory.write` writes the sessions. Plans, tasks and images are written here.
    """
    history = SampleHistory(home, folder)
    for module in _PROJECT_MODULES:
        module.add_sessions(history)
    return history


def write(folder: Path) -> Demo:
    """Write the demo as a home folder. The same folder path gives the same bytes.

    The folder must be empty or not exist. Missing parents are created. After an error,
    nothing remains.
    """
    folder = folder.absolute()
    git = find_git()
    try:
        with _temporary_folder(folder) as work:
            history = build_history(str(folder), work)
            history.write()
            _write_projects(history, work / "projects", git)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DestinationError(
            f"{folder} cannot be written: {reason}. Choose another folder.", folder
        ) from error
    return _summarize(history, folder, has_git=git is not None)


def delete_session(demo: Demo) -> None:
    """Delete one session's transcript and side folder, as Claude Code does after its retention period."""
    id_ = session_id(_DELETED_SESSION)
    (transcript,) = Path(demo.roots["claude-code"], "projects").glob(f"*/{id_}.jsonl")
    transcript.unlink()
    shutil.rmtree(transcript.with_suffix(""), ignore_errors=True)


@contextmanager
def _temporary_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder. On success it is renamed to the given folder, otherwise removed."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        reason = "is not empty" if folder.is_dir() else "is a file"
        raise DestinationError(f"{folder} {reason}. Choose a folder that does not exist yet.", folder)
    new_parents = [parent for parent in folder.parents if not parent.exists()]
    work = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        work.mkdir(parents=True)
        yield work
        if folder.exists():
            folder.rmdir()
        work.rename(folder)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        for parent in new_parents:
            with suppress(OSError):
                parent.rmdir()
        raise


def _write_projects(history: SampleHistory, projects: Path, git: str | None) -> None:
    for repository in history.repositories.values():
        for checkout in (repository, *repository.worktrees):
            (projects / checkout.name).mkdir(parents=True)
        if git is not None:
            write_repository(git, repository, projects)
        for checkout in (repository, *repository.worktrees):
            write_files(checkout, projects / checkout.name)
    write_code_workspace(projects / tideline_autumn.WORKSPACE, ["tideline", "saltern"])


def _summarize(history: SampleHistory, folder: Path, *, has_git: bool) -> Demo:
    kinds = {"claude-code": ClaudeSession, "cursor": CursorIdeSession, "cursor-cli": CursorCliSession}
    counts = {
        source: sum(isinstance(session, kind) for session in history.sessions)
        for source, kind in kinds.items()
    }
    counts["claude-code"] += len({prompt.session_id for prompt in history.orphaned_prompts})
    repositories = list(history.repositories.values())
    commits = [
        commit
        for repository in repositories
        for checkout in (repository, *repository.worktrees)
        for commit in checkout.commits
    ]
    return Demo(
        folder=str(folder),
        roots={source: str(folder / name) for source, name in ROOTS.items()},
        sessions=counts,
        subagents=sum(session.subagents for session in history.sessions),
        repositories=len(repositories),
        commits=len(commits) if has_git else 0,
        began_at=min(commit.at for commit in commits),
        ended_at=max(session.now for session in history.sessions),
        has_git=has_git,
    )
