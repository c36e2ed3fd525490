"""The commit, the session and the prompt behind each line of a file."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from backscroll.archive import Archive
from backscroll.commits.attribution import attribute_lines
from backscroll.commits.commit_graph import CommitGraph, read_graph
from backscroll.commits.prompts import EditPrompt, find_prompts
from backscroll.commits.sessions import load_sessions, update_scans
from backscroll.git import BlamedLine, Commit, Repository, blame, list_file_commits, read_commits
from backscroll.git.process import decode
from backscroll.model.code.commit import BlameLine

__all__ = ["blame_file"]

_SLACK_SECONDS = 120
_NO_PROMPT = EditPrompt(None, None, None, None, None, None, None)

Progress = Callable[[int, int], None]  # done, total


def blame_file(
    archive: Archive,
    repository: Repository,
    file: Path,
    *,
    lines: tuple[int, int] | None = None,
    revision: str | None = None,
    progress: Progress | None = None,
) -> list[BlameLine]:
    """Return the lines of a file with commit, session and prompt. See `backscroll.git.blame`."""
    blamed = blame(repository, file, lines, revision=revision)
    update_scans(archive, progress)
    graph = _file_graph(archive, repository, blamed, revision, progress)
    sessions = load_sessions(archive)
    edits = attribute_lines(archive, graph, blamed, sessions)
    prompts = find_prompts(archive, sessions, {edit for edit in edits if edit is not None})
    return [
        _line(line, graph.commits.get(line.sha or ""), prompts.get(edit, _NO_PROMPT) if edit else _NO_PROMPT)
        for line, edit in zip(blamed, edits, strict=True)
    ]


def _file_graph(
    archive: Archive,
    repository: Repository,
    lines: Sequence[BlamedLine],
    revision: str | None,
    progress: Progress | None,
) -> CommitGraph:
    """Return the commits of the lines, and the others that change the same files."""
    shas = {line.sha for line in lines if line.sha is not None}
    commits: list[Commit] = []
    if shas:
        paths = sorted({line.path for line in lines})
        commits = list_file_commits(repository, paths, ref=revision or "HEAD")
        known = {commit.sha for commit in commits}
        commits += read_commits(repository, sorted(shas - known))
    known = {commit.sha for commit in commits}
    parents = {commit.parents[0] for commit in commits if commit.sha in shas and commit.parents}
    first_edit = archive.edit_scans.first_edit_at()
    return read_graph(
        archive,
        repository,
        commits if first_edit is not None else [],
        since=(first_edit or 0) // 1000 - _SLACK_SECONDS,
        parents=[*commits, *read_commits(repository, sorted(parents - known))],
        progress=progress,
    )


def _line(line: BlamedLine, commit: Commit | None, prompt: EditPrompt) -> BlameLine:
    return BlameLine(
        line=line.number,
        text=decode(line.text).removesuffix("\r"),
        sha=line.sha,
        session_ref=prompt.session_ref,
        message_id=prompt.message_id,
        prompt=prompt.prompt,
        prompt_id=prompt.prompt_id,
        first=prompt.first,
        last=prompt.last,
        agent_ref=prompt.agent_ref,
        author=commit.author if commit is not None else None,
        at=datetime.fromtimestamp(commit.authored_at, UTC) if commit is not None else None,
        subject=commit.subject if commit is not None else None,
    )
