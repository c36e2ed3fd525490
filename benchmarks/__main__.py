"""Benchmark runner: ``python -m benchmarks [NAMES]``, or ``make bench`` for all benchmarks."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks import archive_check, peers
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.network_namespace import is_offline, run_offline
from benchmarks.result_table import PeerResult, Result, markdown, table, write_results
from benchmarks.system_info import describe_system

# A benchmark is a module with `measure(context)`. The last ones change the archive, so the order matters.
BENCHMARKS = (
    "first_sync",
    "first_answer",
    "unchanged_sync",
    "command_latency",
    "long_session",
    "tui_latency",
    "word_search",
    "pattern_search",
    "search_quality",
    "recall_quality",
    "retrieval_quality",
    "commit_links",
    "blame_lines",
    "commit_speed",
    "token_cost",
    "mcp_latency",
    "export",
    "backup_speed",
    "hook_latency",
    "append_latency",
    "cursor_sync",
    "multilingual_sync",
    "watch_latency",
    "source_parsing",
    "web_load",
)


def main(arguments: list[str]) -> int:
    options = _parse_options(arguments)
    # Let child processes cache bytecode. Otherwise each start would include compilation.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with_peers = options.peers and not options.names
    problems = peers.prepare() if with_peers and not is_offline() else []
    if with_peers and not is_offline():
        exit_code = run_offline(arguments)
        if exit_code is not None:
            return exit_code
        problems.append("The network could not be disabled.")
    context = BenchmarkContext(options.scale, keep=options.keep)
    print(system := describe_system(), "\n", sep="", flush=True)
    # Some benchmarks add sessions to the archive, so check it first.
    differences = archive_check.find_differences(context) if options.check else []
    results = _run_benchmarks(context, options.names or BENCHMARKS)
    peer_results = _run_peers(context, problems) if with_peers else []
    conditions = _describe_conditions(context, with_peers=with_peers)
    if options.check:
        conditions += f" {_describe_check(differences)}"
    print("\n", table(results, peer_results), "\n\n", conditions, sep="")
    if options.write:
        write_results(context.scale, "\n\n".join([f"{system}.", conditions, markdown(results, peer_results)]))
    for problem in problems + differences:
        print(problem)
    return bool(problems or differences)


def _run_benchmarks(context: BenchmarkContext, names: Sequence[str]) -> list[Result]:
    results = []
    for name in names:
        for result in importlib.import_module(f"benchmarks.{name}").measure(context):
            results.append(result)
            print(f"{result.label}: {result.value:,.2f} {result.unit}", file=sys.stderr, flush=True)
    return results


def _run_peers(context: BenchmarkContext, problems: list[str]) -> list[PeerResult]:
    results: list[PeerResult] = []
    for name, measure in (("agentsview", peers.agentsview), ("fast-resume", peers.fast_resume)):
        if not peers.installed_version(name):
            problems.append(f"{name} is not installed and was not measured.")
            continue
        try:
            results += measure(context)
        except (RuntimeError, OSError) as error:
            problems.append(f"{name} could not be measured: {error}")
    return results


def _describe_conditions(context: BenchmarkContext, *, with_peers: bool) -> str:
    text = f"{datetime.now(UTC):%Y-%m-%d}, history {context.scale}; the source is in the page cache."
    if not with_peers:
        return text
    versions = ", ".join(f"{name} {peers.installed_version(name)}" for name in ("agentsview", "fast-resume"))
    return f"{text} Compared with {versions}; network {'off' if is_offline() else 'on'}."


def _describe_check(differences: list[str]) -> str:
    if differences:
        return "An independent count of the source files differs from the archive."
    return "An independent count of the source files matches the archive, and the archive verifies."


def _parse_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"run only these: {', '.join(BENCHMARKS)}")
    parser.add_argument(
        "--scale", choices=("S", "M", "L"), default="S", help="1,000, 1,000 multilingual or 10,000 sessions"
    )
    parser.add_argument("--keep", action="store_true", help="reuse the archive of the last run")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="skip the other programs")
    parser.add_argument("--check", action="store_true", help="compare the archive with the source files")
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
