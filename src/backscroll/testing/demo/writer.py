"""Write the demo: all of it, or nothing."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from backscroll.errors import DestinationError
from backscroll.testing.cursor import write_code_workspace
from backscroll.testing.demo.claude_session import ClaudeScene
from backscroll.testing.demo.cursor_cli_session import TerminalScene
from backscroll.testing.demo.cursor_session import EditorScene
from backscroll.testing.demo.git_repository import find_git, write_files, write_repository
from backscroll.testing.demo.projects import (
    ferry_autumn,
    ferry_july,
    ferry_summer,
    importer_autumn,
    importer_summer,
    linter_autumn,
    linter_summer,
    website,
)
from backscroll.testing.demo.session import session_id
from backscroll.testing.demo.story import Story

__all__ = ["Demo", "delete_session", "tell", "write"]

# Deleted after the first sync, so that `list --gone` has something to show.
_DELETED_SESSION = "tideline/clock-change-tests"

# Every project's chapters in the order of time; where two projects meet, both have come that far.
_CHAPTERS = (
    ferry_july,
    ferry_summer,
    importer_summer,
    ferry_autumn,
    importer_autumn,
    linter_summer,
    linter_autumn,
    website,
)


class Demo(Struct, frozen=True):
    """What was written, and where."""

    folder: str
    roots: dict[str, str]  # by source
    sessions: dict[str, int]  # by source; subagents are not counted
    subagents: int
    repositories: int
    commits: int
    began_at: datetime
    ended_at: datetime
    has_git: bool  # without git the projects have files, but no commits


def tell(home: str, folder: Path) -> Story:
    """The whole story, as it happened in that home.

    `Story.write` puts it below the folder; plans, tasks and pictures are there as soon as they are told.
    """
    story = Story(home, folder)
    for chapter in _CHAPTERS:
        chapter.tell(story)
    return story


def write(folder: Path) -> Demo:
    """Write the demo as a home folder. The same folder name gives the same bytes.

    The folder may exist only if it is empty; its parents are made. When anything
    goes wrong, nothing is left behind.
    """
    folder = folder.absolute()
    git = find_git()
    try:
        with _beside(folder) as work:
            story = tell(str(folder), work)
            story.write()
            _write_projects(story, work / "projects", git)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DestinationError(
            f"{folder} cannot be written ({reason}); name another folder", folder
        ) from error
    return _summed_up(story, folder, has_git=git is not None)


def delete_session(demo: Demo) -> None:
    """Delete one session's transcript and side folder, as Claude Code does after its retention period."""
    id_ = session_id(_DELETED_SESSION)
    (transcript,) = Path(demo.roots["claude-code"], "projects").glob(f"*/{id_}.jsonl")
    transcript.unlink()
    shutil.rmtree(transcript.with_suffix(""), ignore_errors=True)


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A folder to work in that takes the wanted one's place in the end, or vanishes."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        what = "is not empty" if folder.is_dir() else "is a file"
        raise DestinationError(f"{folder} {what}; name a folder that does not exist yet", folder)
    made = [parent for parent in folder.parents if not parent.exists()]
    work = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        work.mkdir(parents=True)
        yield work
        if folder.exists():
            folder.rmdir()
        work.rename(folder)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        raise


def _write_projects(story: Story, projects: Path, git: str | None) -> None:
    for repository in story.repositories.values():
        for checkout in (repository, *repository.worktrees):
            (projects / checkout.name).mkdir(parents=True)
        if git is not None:
            write_repository(git, repository, projects)
        for checkout in (repository, *repository.worktrees):
            write_files(checkout, projects / checkout.name)
    write_code_workspace(projects / ferry_autumn.WORKSPACE, ["tideline", "saltern"])


def _summed_up(story: Story, folder: Path, *, has_git: bool) -> Demo:
    kinds = {"claude-code": ClaudeScene, "cursor": EditorScene, "cursor-cli": TerminalScene}
    counts = {source: sum(isinstance(one, kind) for one in story.scenes) for source, kind in kinds.items()}
    counts["claude-code"] += len({prompt.session_id for prompt in story.lost})
    repositories = list(story.repositories.values())
    commits = [
        commit
        for repository in repositories
        for checkout in (repository, *repository.worktrees)
        for commit in checkout.commits
    ]
    return Demo(
        folder=str(folder),
        roots={
            "claude-code": str(folder / ".claude"),
            "cursor": str(folder / ".config/Cursor"),
            "cursor-cli": str(folder / ".cursor"),
        },
        sessions=counts,
        subagents=sum(scene.subagents for scene in story.scenes),
        repositories=len(repositories),
        commits=len(commits) if has_git else 0,
        began_at=min(commit.at for commit in commits),
        ended_at=max(scene.now for scene in story.scenes),
        has_git=has_git,
    )
