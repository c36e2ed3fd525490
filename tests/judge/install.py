"""Install versions of Claude Code from npm.

    python -m tests.judge.install 1.0.69 2.1.105 latest
    python -m tests.judge.install --spread 30

Prints the version numbers, separated by commas, for ``pytest --judge``. A version that cannot be installed
is in the list too: its tests are skipped with the reason. The cache folder is $BACKSCROLL_JUDGE_CACHE, by
default ``backscroll-judge`` in the cache folder of the user.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import platformdirs

from tests.judge.versions import Version, spread

_PACKAGE = "@anthropic-ai/claude-code"
_TIMEOUT_SECONDS = 300
_ENVIRONMENT = dict(os.environ)  # before the tests change it

CACHE = Path(os.environ.get("BACKSCROLL_JUDGE_CACHE") or platformdirs.user_cache_path("backscroll-judge"))


def executable(version: str) -> Path:
    """Return the path of an installed version, existing or not."""
    return CACHE / version / "node_modules" / ".bin" / "claude"


def failure(version: str) -> str | None:
    """Return why a version is not installed; None if it is."""
    if executable(version).exists():
        return None
    log = CACHE / f"{version}.failed"
    reason = log.read_text("utf-8").strip() if log.exists() else "run 'make test-judge' to install it"
    return f"Claude Code {version} is not installed: {reason}"


def install(version: str) -> str | None:
    """Install a version unless it is in the cache. Return the reason if that fails."""
    if executable(version).exists():
        return None
    partial = CACHE / f"{version}.partial-{os.getpid()}"
    partial.mkdir(parents=True)
    try:
        _npm("install", "--prefix", str(partial), f"{_PACKAGE}@{version}")
        shutil.rmtree(CACHE / version, ignore_errors=True)
        partial.rename(CACHE / version)
        if executable(version).exists():
            return None
        reason = "the package contains no program for this system"
    except _NpmError as error:
        reason = str(error)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    (CACHE / f"{version}.failed").write_text(reason, "utf-8")
    return reason


def published() -> list[str]:
    """Return all published versions."""
    versions = json.loads(_npm("view", _PACKAGE, "versions", "--json"))
    return [version for version in versions if version.replace(".", "").isdigit()]


def latest() -> str:
    """Return the newest version; the newest in the cache if npm cannot be reached."""
    try:
        return _npm("view", _PACKAGE, "dist-tags.latest").strip()
    except _NpmError as error:
        cached = [folder.name for folder in CACHE.glob("*.*.*") if executable(folder.name).exists()]
        if not cached:
            raise
        newest = max(cached, key=Version)
        _report(f"The newest version is unknown ({error}). The newest in the cache is {newest}.")
        return newest


class _NpmError(Exception):
    """npm is not installed, or failed."""


def _npm(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["npm", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1", *arguments],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            env=_ENVIRONMENT,
        )
    except FileNotFoundError:
        raise _NpmError("npm is not installed") from None
    except subprocess.TimeoutExpired:
        raise _NpmError(f"npm did not finish within {_TIMEOUT_SECONDS} seconds") from None
    if done.returncode:
        lines = [line.removeprefix("npm error ") for line in done.stderr.splitlines() if "npm error" in line]
        raise _NpmError("; ".join(lines[:2]) or f"npm failed with code {done.returncode}")
    return done.stdout


def _report(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _select(names: list[str], count: int) -> list[str]:
    chosen = list(names)
    try:
        chosen += spread(published(), count) if count else []
        chosen = [latest() if name == "latest" else name for name in chosen]
    except _NpmError as error:
        _report(f"The published versions are unknown: {error}.")
        chosen = [name for name in chosen if name != "latest"]
    return sorted(dict.fromkeys(chosen), key=Version)


def main() -> None:
    parser = argparse.ArgumentParser(description="Install versions of Claude Code for the judge tests.")
    parser.add_argument("versions", nargs="*", help="version numbers, or 'latest'")
    parser.add_argument("--spread", type=int, default=0, help="so many of all published versions")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    versions = _select(options.versions, options.spread)
    for version in versions:
        reason = install(version)
        if reason is not None:
            _report(f"Claude Code {version} is not installed: {reason}. Its tests are skipped.")
    sys.stdout.write(",".join(versions) + "\n")


if __name__ == "__main__":
    main()
