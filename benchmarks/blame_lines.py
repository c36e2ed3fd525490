"""Precision and recall of the sessions that `blame` and `survival` find for lines with a known writer.

Precision is the share of right sessions among the lines that name one. Recall is the share of provable lines
with the right session: lines whose text is in the transcript of a session in the archive. Lines that a user
typed, or a session whose transcript is deleted, should have no session. If they are copies of a whole file,
that of the original is right, too.

Equal lines beside each other can be exchanged in a diff. So a line counts for `blame` only if git without
detection of copies finds a commit that really added it.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from backscroll.archive.archive import Archive
from backscroll.commits.survival import replay_commits
from backscroll.config import NamedRoot
from backscroll.git.repository import open_repository
from backscroll.history.history import History
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.result_table import Result
from benchmarks.simulated_code import Line
from benchmarks.simulated_project import Options, SimulatedProject, run_git, simulate

_SEEDS = (1, 2)
_SESSION_COUNT = 80
_MAX_FILES = 60  # of a project that are blamed
_MIN_RIGHT, _MIN_FOUND = 97.0, 97.0  # percent
_MIN_CODE_CHARS = 4  # `survival` does not count shorter lines

_OTHER_PROJECT = "sessions of another project"  # whose folder is deleted, with the same names of files
_MIXED = "hard: mixed"

_BASE = Options(session_count=_SESSION_COUNT, boilerplate=0.3)
_PROJECTS = {
    "several sessions a day": _BASE,
    "missing sessions": replace(_BASE, missing=0.4),
    "typed files of frequent lines": replace(_BASE, user_commits=0.6, typed_files=0.4, boilerplate=0.5),
    "missing subagents": replace(_BASE, subagents=0.5, lost_subagents=0.5),
    "new files like older ones": replace(_BASE, modelled=0.8, boilerplate=0.5),
    "code moved by the user": replace(_BASE, user_commits=0.5, relocated=0.6),
    "reformatted": replace(_BASE, formatted=0.8),
    "squash": replace(_BASE, squashed=0.5),
    "rebase": replace(_BASE, rebased=0.7),
    "scripts": replace(_BASE, scripts=0.6),
    _OTHER_PROJECT: replace(_BASE, missing=0.4),
    _MIXED: replace(
        _BASE,
        missing=0.35,
        subagents=0.3,
        lost_subagents=0.4,
        boilerplate=0.5,
        modelled=0.5,
        user_commits=0.5,
        typed_files=0.3,
        relocated=0.3,
        formatted=0.3,
        squashed=0.2,
        parallel=0.4,
    ),
}


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Compare the found sessions with the writers, by scenario and in total."""
    totals: dict[str, Counter[str]] = {"blame": Counter(), "survival": Counter()}
    with tempfile.TemporaryDirectory() as folder:
        for name, options in _PROJECTS.items():
            counts: dict[str, Counter[str]] = {"blame": Counter(), "survival": Counter()}
            for seed in _SEEDS:
                place = Path(folder) / f"{name} {seed}"
                if name in (_OTHER_PROJECT, _MIXED):
                    for session in simulate(
                        replace(options, seed=seed + 100, first_number=1000), place / "work" / "api"
                    ).sessions:
                        session.save(place / "claude")
                project = simulate(replace(options, seed=seed), place / "work" / "shop")
                for command, found in _compare(project, place).items():
                    counts[command] += found
            for command, found in counts.items():
                totals[command] += found
                yield from _results(command, name, found)
    for command, found in totals.items():
        yield from _results(command, "all", found)


def _compare(project: SimulatedProject, folder: Path) -> dict[str, Counter[str]]:
    root = folder / "claude"
    root.mkdir(parents=True, exist_ok=True)
    project.write(root)
    with History(roots=[NamedRoot("claude-code", root)], home=folder / "archive") as history:
        history.sync()
        return {"blame": _blame(history, project), "survival": _survival(history, project)}


def _blame(history: History, project: SimulatedProject) -> Counter[str]:
    counts: Counter[str] = Counter()
    archived = {session.id for session in project.sessions if not session.is_missing}
    marks = {commit.sha: commit.marks for commit in project.commits}
    paths = sorted(project.committed)
    for path in project.random.sample(paths, min(_MAX_FILES, len(paths))):
        lines = project.committed[path]
        shas = _plain_blame(project.folder, path)
        found = history.blame_file(path, project.folder, ref="HEAD")
        for line, sha, blamed in zip(lines, shas, found, strict=True):
            assert isinstance(line, Line) and line == blamed.text
            if not line.strip():
                continue
            if line.commits.isdisjoint(marks[sha]):
                counts["exchanged"] += 1
                continue
            _add(counts, line, archived, blamed.session_ref)
    return counts


def _add(counts: Counter[str], line: Line, archived: set[str], ref: str | None) -> None:
    is_provable = line.is_recorded and line.writer in archived
    writers = {line.writer} if is_provable else {line.writer, line.copied_from}
    is_right = ref is not None and ref.removeprefix("claude-code:") in writers
    counts["named"] += ref is not None
    counts["right"] += is_right
    counts["provable"] += is_provable
    counts["found"] += is_provable and is_right


def _plain_blame(repository: Path, path: str) -> list[str]:
    output = run_git(repository, "blame", "-w", "-l", "-s", "--root", "HEAD", "--", path)
    return [line.partition(" ")[0] for line in output.splitlines()]


def _survival(history: History, project: SimulatedProject) -> Counter[str]:
    counts: Counter[str] = Counter()
    archived = {session.id for session in project.sessions if not session.is_missing}
    with closing(Archive(history.archive_path)) as archive:
        replay = replay_commits(archive, open_repository(project.folder), ref="HEAD")
    for path, lines in project.committed.items():
        for line, found in zip(lines, replay.files[path], strict=True):
            assert isinstance(line, Line)
            if len("".join(line.split()).rstrip(",;")) >= _MIN_CODE_CHARS:
                _add(counts, line, archived, replay.sessions[found[0].session].ref if found else None)
    return counts


def _results(command: str, name: str, counts: Counter[str]) -> Iterator[Result]:
    for kind, part, of, target in (
        ("right", "right", "named", _MIN_RIGHT),
        ("found", "found", "provable", _MIN_FOUND),
    ):
        text = "lines named right" if kind == "right" else "provable lines found"
        yield Result(
            key=f"{command} lines {name} {kind}",
            label=f"Lines ({command}), {name}: {text} ({counts[of]:,} lines)",
            value=100 * counts[part] / max(1, counts[of]),
            unit="%",
            target=target,
            higher_is_better=True,
        )
