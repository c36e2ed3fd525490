"""Messages for the user: errors with exit codes, commands to type, what to do without sessions.

Does not import click, to keep `sync` fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from backscroll.errors import BackscrollError, UsageError
from backscroll.model.text import one_line, pluralize, sanitize

if TYPE_CHECKING:
    from backscroll.history.history import History
    from backscroll.model.problem import Problem


_NAME = "backscroll"
MAX_PATH_CHARS = 500


@contextmanager
def report_errors() -> Iterator[None]:
    """Print an error as one message and exit with its code."""
    try:
        yield
    except KeyboardInterrupt:
        _exit("Interrupted. Completed work is saved.", 130)
    except UsageError as error:
        _exit(str(error), 2)
    except BackscrollError as error:
        _exit(str(error), 1)
    except UnicodeEncodeError:
        # Python decodes bytes that are not UTF-8 to lone surrogates. Only paths may contain them.
        undecodable = next(
            (argument for argument in sys.argv if any("\ud800" <= char <= "\udfff" for char in argument)),
            None,
        )
        if undecodable is None:
            raise
        _exit(f"{undecodable!r} is not valid UTF-8.", 2)
    except BrokenPipeError:
        discard_output()
        sys.exit(0)
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        _exit(f"{path}{error.strerror or error}", 1)


def _exit(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"{printable_message(as_sentence(message))}\n")
    sys.exit(code)


def as_sentence(message: str) -> str:
    """Return a message with a full stop at its end, unless it has one or ends with a list."""
    return message if message.endswith((".", "?", "!", ")", ":")) or "\n" in message else f"{message}."


def printable_message(message: str) -> str:
    """Return a library's message without control characters, and with commands that the user can type."""
    if f"'{_NAME} " in message:
        message = message.replace(f"'{_NAME} ", f"'{program()} ")
    return sanitize(message)


def program() -> str:
    """Return what the user types to run this program.

    This is ``backscroll`` if the shell finds it on the PATH. Otherwise it is what the program was started
    with, such as ``.venv/bin/backscroll`` in a checkout, or ``python -m backscroll``.
    """
    started_as = Path(sys.argv[0])
    if started_as.parts[-2:] == (_NAME, "__main__.py"):
        return f"{Path(sys.executable).name} -m {_NAME}"
    if started_as.stem != _NAME or (not started_as.is_absolute() and len(started_as.parts) == 1):
        return _NAME  # found on the PATH, or started with python -c
    import shlex
    import shutil  # start-up time: only messages that name a command need them

    on_path = shutil.which(_NAME)
    if on_path is not None and _is_same_program(Path(on_path), started_as):
        return _NAME
    below_cwd = os.path.relpath(started_as)
    return shlex.quote(str(started_as) if below_cwd.startswith(os.pardir) else below_cwd)


def _is_same_program(first: Path, second: Path) -> bool:
    # On Windows, sys.argv[0] may lack the suffix .exe.
    return first.with_suffix("").resolve() == second.with_suffix("").resolve()


def command_hint(arguments: str) -> str:
    """Return a command as the user can type it: ``backscroll sync``, or ``.venv/bin/backscroll sync``."""
    return f"{program()} {arguments}"


def welcome_lines(history: History, *, no_sync: bool = False) -> Iterator[str]:
    """Return what to print if there are no sessions: the folders that were searched, and what to do next."""
    if no_sync:
        yield f"The archive is empty. Run '{command_hint('sync')}' to read your history."
        return
    if not history.is_complete and history.background_sync.status().is_running:
        yield "The first sync has just started. No session is ready yet; try again in a few seconds."
        return
    if denied := history.unreadable_paths():
        yield "No sessions could be read:"
        yield from (f"  {one_line(path, MAX_PATH_CHARS)}: permission denied" for path in denied)
        return
    yield "No history found. Searched these folders:"
    yield from (f"  {source.name:<12} {path}{_folder_state(path)}" for source, path in history.roots())
    yield ""
    yield f"To try Backscroll on sample data, run '{command_hint('demo DIR')}'."


def _folder_state(path: Path) -> str:
    if path.is_dir():
        return " (contains no sessions)"
    return " (broken link)" if path.is_symlink() else ""


def permission_lines(paths: Sequence[str]) -> Iterator[str]:
    """Return a message about files and folders that the user may not read; nothing without any."""
    if not paths:
        return
    first, *others = (one_line(path, MAX_PATH_CHARS) for path in paths)
    more = f" and {len(others):,} more" if others else ""
    yield f"Cannot read {first}{more}: permission denied. Sessions may be missing."
    yield f"Grant read permission, then run '{command_hint('sync')}'."


def irregular_lines(problems: Sequence[Problem]) -> Iterator[str]:
    """Return a message about entries that are no files; nothing without any."""
    if not problems:
        return
    first, *others = problems
    more = f" The same holds for {pluralize(len(others), 'other path')}." if others else ""
    yield f"Cannot read {one_line(first.origin.path, MAX_PATH_CHARS)}: it {first.reason}.{more}"
    yield f"Replace or remove what '{command_hint('doctor')}' names."


def discard_output() -> None:
    """Send standard output to the null device after the reader closed the pipe.

    Otherwise the interpreter reports an error when it flushes at exit.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def reopen_closed_streams() -> None:
    """Open the null device for each standard stream that is closed.

    Otherwise the next file that is opened gets the stream's descriptor and receives its output.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    # Python sets a stream to None if it was closed at start.
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8")
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8")
