"""What everything costs: ``python -m benchmarks [NAMES]``, and ``make bench`` for all of it."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks import check, page, peers
from benchmarks.figures import Beside, Figure, markdown, table
from benchmarks.machine import machine
from benchmarks.offline import is_offline, run_offline
from benchmarks.stage import Stage

# A question is a module with `figures(stage)`; in this order, since the last of them add to the archive.
QUESTIONS = (
    "cold",
    "refresh",
    "commands",
    "reading",
    "screen",
    "words",
    "exact",
    "questions",
    "recall",
    "economy",
    "assistant",
    "export",
    "append",
    "editor",
    "watch",
    "sources",
)


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # programs are compiled once, and not with every start
    with_peers = options.peers and not options.names
    problems = peers.prepare() if with_peers and not is_offline() else []
    if with_peers and not is_offline():
        code = run_offline(arguments)
        if code is not None:
            return code
        problems.append("the network could not be switched off here")
    stage = Stage(options.scale, keep=options.keep)
    print(about := machine(), "\n", sep="", flush=True)
    # Before any question adds to the archive.
    wrong = check.disagreements(stage) if options.check else []
    figures = _measured(stage, options.names or QUESTIONS)
    beside = list(_peers(stage, problems)) if with_peers else []
    conditions = _conditions(stage, with_peers=with_peers)
    if options.check:
        conditions += f" {_verdict(wrong)}"
    print("\n", table(figures, beside), "\n\n", conditions, sep="")
    if options.write:
        page.write(stage.scale, "\n\n".join([f"{about}.", conditions, markdown(figures, beside)]))
    for problem in problems + wrong:
        print(problem)
    return bool(problems or wrong)


def _verdict(wrong: list[str]) -> str:
    if wrong:
        return "An independent count of the files does not agree with the archive."
    return "An independent count of the files agrees with the archive, which verifies."


def _measured(stage: Stage, names: Sequence[str]) -> list[Figure]:
    figures = []
    for name in names:
        for figure in importlib.import_module(f"benchmarks.{name}").figures(stage):
            figures.append(figure)
            print(f"{figure.what}: {figure.value:,.2f} {figure.unit}", file=sys.stderr, flush=True)
    return figures


def _peers(stage: Stage, problems: list[str]) -> list[Beside]:
    found: list[Beside] = []
    for name, measure in (("agentsview", peers.agentsview), ("fast-resume", peers.fast_resume)):
        if not peers.version_of(name):
            problems.append(f"{name} is not installed, so nothing stands beside it")
            continue
        try:
            found += measure(stage)
        except (RuntimeError, OSError) as error:
            problems.append(f"{name} could not be measured: {error}")
    return found


def _conditions(stage: Stage, *, with_peers: bool) -> str:
    versions = ", ".join(f"{name} {peers.version_of(name)}" for name in ("agentsview", "fast-resume"))
    beside = f" Beside {versions}, network {'off' if is_offline() else 'on'}." if with_peers else ""
    return f"{datetime.now(UTC):%Y-%m-%d}, history {stage.scale}; the source lies in the page cache.{beside}"


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(QUESTIONS)}")
    parser.add_argument("--scale", choices=("S", "L"), default="S", help="1,000 or 10,000 sessions")
    parser.add_argument("--keep", action="store_true", help="use the archive of the last run")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="leave the other programs out")
    parser.add_argument("--check", action="store_true", help="count the files independently, and compare")
    parser.add_argument("--write", action="store_true", help=f"put the figures into {page.PAGE.name}")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
