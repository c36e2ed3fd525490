"""Precision and recall of the sessions that are found for commits, on repositories with a known truth.

Precision is the share of the claims for a first session that are right; a claim on a commit of the user alone
is wrong. Recall is the share of the commits of sessions that have the right session among their claims.
Commits of sessions count if the session was active in the two hours before.
"""

import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history.history import History
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.commit_scenarios import SCENARIOS, Scenario
from benchmarks.result_table import Result
from benchmarks.simulated_project import Options, simulate

_SEEDS = (1, 2, 3)
_MIN_FIRST, _MIN_TOP_THREE, _MAX_FALSE = 93.0, 97.0, 2.0  # percent

# In the hard ones, the last active session is right for 80 to 85 %, and the text alone for 75 to 85 %.
_HARD = Options(sessions_per_day=25, parallel=0.85, opaque=0.3, scripts=0.35, user_tweaks=0.35, formatted=0.2)
_PROJECTS = {
    "several sessions a day": Options(),
    "sessions in parallel": Options(sessions_per_day=14, parallel=0.6),
    "the user commits": Options(assistant_commits=0.05, late_commits=0.5),
    "squash": Options(squashed=0.5),
    "rebase": Options(rebased=0.7),
    "reformatted": Options(formatted=0.8),
    "moved files": Options(moved=0.25),
    "scripts": Options(scripts=0.8, opaque=0.15),
    "other folders and worktrees": Options(other_folder=0.9),
    "another clone": Options(),
    "clones of their own, rebased": replace(
        _HARD, clones=0.9, rebased=0.8, assistant_commits=0.9, quiet_commits=0.8
    ),
    "hard: mixed": _HARD,
    "hard: the user commits": replace(_HARD, assistant_commits=0.1),
}

# Commit, its session ids (none for a commit of the user), and the ids that were found.
_Outcome = tuple[frozenset[str], list[str]]


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Compare the found sessions with the truth, by scenario and in total."""
    every: list[_Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, options in _PROJECTS.items():
            outcomes = [
                outcome
                for seed in _SEEDS
                for outcome in _project(Path(folder) / f"{name} {seed}", replace(options, seed=seed), name)
            ]
            every += outcomes
            yield from _results(name, outcomes)
        for name, build in SCENARIOS.items():
            outcomes = []
            for seed in _SEEDS:
                scenario = Scenario(Path(folder) / f"{name} {seed}", seed)
                build(scenario)
                outcomes += _scenario(scenario)
            every += outcomes
            yield from _results(name, outcomes)
    yield from _totals(every)


def _project(folder: Path, options: Options, name: str) -> Iterator[_Outcome]:
    project = simulate(options, folder / "work" / "shop")
    root = folder / "claude"
    root.mkdir(parents=True)
    project.write(root)
    repository = project.folder
    if name == "another clone":
        repository = folder / "elsewhere" / "copy"
        subprocess.run(["git", "clone", "-q", str(project.folder), str(repository)], check=True)
        project.folder.rename(folder / "gone")
    found = _found(root, folder / "archive", repository)
    for commit in project.commits:
        if not commit.session_ids or commit.active_ids:
            yield commit.session_ids, found[commit.sha]


def _scenario(scenario: Scenario) -> Iterator[_Outcome]:
    for repository in {folder for folder, _ in scenario.truth}:
        found = _found(scenario.root, scenario.folder / "archive", repository)
        for (folder, sha), session in scenario.truth.items():
            if folder == repository:
                yield frozenset([session] if session is not None else []), found[sha]


def _found(root: Path, home: Path, repository: Path) -> dict[str, list[str]]:
    with History(roots=[NamedRoot("claude-code", root)], home=home) as history:
        history.sync()
        commits = history.list_commits(repository, limit=None).data
    return {commit.sha: [session.session_id for session in commit.sessions] for commit in commits}


def _results(name: str, outcomes: Iterable[_Outcome]) -> Iterator[Result]:
    counts = _count(outcomes)
    values = {
        "precision": counts["first"] / max(1, counts["claimed"]),
        "recall": counts["any"] / max(1, counts["session"]),
    }
    for kind, value in values.items():
        yield Result(
            key=f"commits {name} {kind}",
            label=f"Commits, {name}: {kind} ({counts['session']} commits)",
            value=100 * value,
            unit="%",
            higher_is_better=True,
        )


def _totals(outcomes: Iterable[_Outcome]) -> Iterator[Result]:
    counts = _count(outcomes)
    for key, label, of, target in (
        ("first", "right session first", "session", _MIN_FIRST),
        ("three", "right session in the top 3", "session", _MIN_TOP_THREE),
        ("false", "claims on commits of the user alone", "user", _MAX_FALSE),
    ):
        yield Result(
            key=f"commits {key}",
            label=f"Commits, all: {label} ({counts[of]} commits)",
            value=100 * counts[key] / max(1, counts[of]),
            unit="%",
            target=target,
            higher_is_better=key != "false",
        )


def _count(outcomes: Iterable[_Outcome]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for expected, found in outcomes:
        counts["claimed"] += bool(found)
        if not expected:
            counts["user"] += 1
            counts["false"] += bool(found)
            continue
        counts["session"] += 1
        counts["first"] += bool(found) and found[0] in expected
        counts["three"] += bool(expected.intersection(found[:3]))
        counts["any"] += bool(expected.intersection(found))
    return counts
