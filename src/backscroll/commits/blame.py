"""The commit, the session and the prompt behind each line of a file."""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from backscroll.archive import Archive
from backscroll.commits.attribution import attribute_lines, line_hashes
from backscroll.commits.commit_graph import (
    COMMIT_VERSION,
    EncodedChanges,
    read_graph,
    read_partial_changes,
)
from backscroll.commits.evidence.content import Writer, find_writers, select_fragments
from backscroll.commits.paths import base_name
from backscroll.commits.prompts import EditPrompt, find_prompts
from backscroll.commits.sessions import SessionWork, load_sessions, update_scans
from backscroll.git import BlamedLine, Commit, Repository, blame, list_file_commits, read_commits
from backscroll.git.process import decode
from backscroll.model.code.commit import BlameLine

__all__ = ["blame_file"]

_SLACK_SECONDS = 120
_NEVER = 1 << 60
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
    first_edit = archive.edit_scans.first_edit_at()
    since = first_edit // 1000 - _SLACK_SECONDS if first_edit is not None else _NEVER
    known = archive.commit_cache.known(COMMIT_VERSION)
    with ThreadPoolExecutor(max_workers=1) as executor:  # git works while the sessions are loaded
        reading = executor.submit(_read_history, repository, blamed, revision, known, since)
        sessions, writers = _find_writers(archive, blamed)
        history = reading.result()
    graph = read_graph(
        archive,
        repository,
        history.commits,
        since=since,
        parents=[*history.commits, *history.parents],
        partial=history.changes,
        progress=progress,
    )
    edits = attribute_lines(archive, graph, blamed, sessions, writers)
    prompts = find_prompts(archive, sessions, {edit for edit in edits if edit is not None})
    return [
        _line(line, graph.commits.get(line.sha or ""), prompts.get(edit, _NO_PROMPT) if edit else _NO_PROMPT)
        for line, edit in zip(blamed, edits, strict=True)
    ]


def _find_writers(
    archive: Archive, lines: Sequence[BlamedLine]
) -> tuple[list[SessionWork], dict[int, list[Writer]]]:
    """Return the sessions that wrote one of the lines or changed a file of the same name, and their edits."""
    wanted = {hashed for hashed in line_hashes(lines) if hashed is not None}
    names = {base_name(line.path) for line in lines}
    encoded = [name.encode() for name in names]
    selected = select_fragments(archive, wanted, lambda scan: any(name in scan for name in encoded))
    sessions = load_sessions(archive, selected)
    return sessions, find_writers(wanted, sessions, names)


class _History(NamedTuple):
    commits: list[Commit]  # of the lines, and the others that change the same files
    parents: list[Commit]
    changes: dict[str, EncodedChanges]  # of the files


def _read_history(
    repository: Repository,
    lines: Sequence[BlamedLine],
    revision: str | None,
    known: Collection[str],
    since: int,
) -> _History:
    """Return the commits of the files. The changes of ``known`` commits are not read."""
    shas = {line.sha for line in lines if line.sha is not None}
    if not shas:
        return _History([], [], {})
    paths = sorted({line.path for line in lines})
    commits = list_file_commits(repository, paths, ref=revision or "HEAD")
    commits += read_commits(repository, sorted(shas - {commit.sha for commit in commits}))
    parents = {commit.parents[0] for commit in commits if commit.sha in shas and commit.parents}
    return _History(
        commits,
        read_commits(repository, sorted(parents - {commit.sha for commit in commits})),
        read_partial_changes(repository, commits, paths, known=known, since=since),
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
