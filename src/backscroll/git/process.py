"""Run git with settings that do not depend on the user's configuration."""

import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from backscroll.errors import RepositoryError

_OPTIONS = (
    "--no-pager",
    "--no-replace-objects",
    *("-c", "core.quotepath=off"),
    *("-c", "core.fsmonitor=false"),  # a file system monitor would start a process
    *("-c", "log.showSignature=false"),
    *("-c", "log.mailmap=false"),
    *("-c", "log.showRoot=true"),
    *("-c", "log.diffMerges=separate"),
    *("-c", "diff.noprefix=false"),
    *("-c", "diff.mnemonicPrefix=false"),
    *("-c", "diff.interHunkContext=0"),
    *("-c", f"diff.orderFile={os.devnull}"),
    *("-c", "diff.relative=false"),
    *("-c", "i18n.logOutputEncoding=UTF-8"),
    *("-c", "blame.markIgnoredLines=false"),
    *("-c", "blame.markUnblamableLines=false"),
)
# Variables that select another repository than the given folder, as git sets them for its hooks.
_REPOSITORY_VARIABLES = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS",
)  # fmt: skip
_READ_BYTES = 1 << 20
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_ESCAPE = re.compile(r"\\([abtnvfr\"\\]|[0-7]{3})")


def run_git(folder: Path, *arguments: str) -> bytes:
    """Return the output of git. Raises `RepositoryError` if it fails."""
    if any("\0" in argument for argument in arguments):
        raise RepositoryError(f"Git failed in {folder}: an argument contains a null character.", folder)
    done = subprocess.run(
        [_find_git(folder), *_OPTIONS, *arguments],
        cwd=_existing(folder),
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise _failure(folder, done.stderr)
    return done.stdout


def output_or_empty(folder: Path, *arguments: str) -> bytes:
    """Return the output of git, or nothing if it fails, as it does for values that are not set."""
    try:
        return run_git(folder, *arguments)
    except RepositoryError:
        return b""


def stream_git(folder: Path, *arguments: str, lines: Iterable[str]) -> Iterator[bytes]:
    """Yield the output of git line by line, without newlines. ``lines`` are its standard input."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [_find_git(folder), *_OPTIONS, *arguments],
            cwd=_existing(folder),
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdin is not None and process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def write_input() -> None:
            with suppress(OSError), stdin:  # git exited early; its exit code is checked below
                for line in lines:
                    stdin.write(f"{line}\n".encode())

        writer = threading.Thread(target=write_input, daemon=True)
        writer.start()
        try:
            rest = b""
            while block := stdout.read(_READ_BYTES):
                *complete, rest = (rest + block).split(b"\n")
                yield from complete
            if rest:
                yield rest
            writer.join()
            if process.wait():
                errors.seek(0)
                raise _failure(folder, errors.read())
        finally:
            process.kill()  # no effect if it has exited
            stdout.close()
            process.wait()


def decode(text: bytes) -> str:
    """Decode text or a path. Bytes that are not UTF-8 are replaced."""
    return text.decode("utf-8", "replace")


def unquote(path: str) -> str:
    """Undo the quoting of a path with special characters."""
    if not (path.startswith('"') and path.endswith('"') and len(path) > 1):
        return path

    def unescape(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 8) if code.isdigit() else _ESCAPES.get(code, ord(code)))

    return _ESCAPE.sub(unescape, path[1:-1])


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise RepositoryError(f"The folder {folder} does not exist.", folder)
    return folder


def _find_git(folder: Path) -> str:
    git = shutil.which("git")
    if git is None:
        raise RepositoryError("git is not installed, or not in PATH. Install it to read commits.", folder)
    return git


def _environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in _REPOSITORY_VARIABLES}
    # Git refreshes the index of a checkout while reading, unless optional locks are off.
    return environment | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def _failure(folder: Path, message: bytes) -> RepositoryError:
    text = decode(message).strip()
    if "not a git repository" in text:
        return _no_repository(folder)
    if "dubious ownership" in text:
        return RepositoryError(
            f"Git refuses to read {folder} because it belongs to another user."
            f" Run 'git config --global --add safe.directory {folder}' to allow it.",
            folder,
        )
    first = text.partition("\n")[0].removeprefix("fatal: ").removeprefix("error: ").rstrip(".")
    return RepositoryError(f"Git failed in {folder}: {first or 'no message'}.", folder)


def _no_repository(folder: Path) -> RepositoryError:
    """Return the error for a folder that is in no repository, or in a damaged one."""
    for parent in (folder, *folder.parents):
        place = parent / ".git"
        if place.is_file():
            named = decode(place.read_bytes()).strip().removeprefix("gitdir:").strip()
            return RepositoryError(
                f"{place} names the repository {named}, which does not exist or is damaged.",
                folder,
                hint="Run 'git worktree repair' in the main checkout, or clone it again.",
            )
        if (place / "objects").is_dir():
            return RepositoryError(
                f"{place} is damaged: git does not accept it as a repository.",
                folder,
                hint="Check its files HEAD and config, or clone it again.",
            )
    return RepositoryError(
        f"{folder} is not in a git repository.", folder, hint="Pass --repo DIR to name a repository."
    )
