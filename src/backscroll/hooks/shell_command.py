"""The shell command that runs the hook program.

Exit code 2 of a hook blocks the prompt or the tool call of the user. It is also the exit code of an
interpreter that does not find its program. What a hook prints may be sent to the model. So the command
discards all output and always succeeds, also after Backscroll was moved or deleted.
"""

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

PROGRAM_NAME = "backscroll_hook.py"
# The program as an argument, in any folder. Its quotes depend on the folder.
_OWN = re.compile(rf"(?:^|[\s/'\"\\]){re.escape(PROGRAM_NAME)}(?=$|[\s'\"])")


def program() -> list[str]:
    """Return interpreter, options and path of the hook program.

    ``-I`` and ``-S`` ignore the environment and installed packages.
    """
    return [sys.executable, "-I", "-S", str(Path(__file__).absolute().with_name(PROGRAM_NAME))]


def hook_command(spool: Path) -> str:
    """Return the command for POSIX shells. It is the same for all assistants.

    Cursor also runs the hooks of Claude Code, and a command that is registered twice only once.
    """
    words = [*program(), str(spool.absolute())]
    return f"{' '.join(map(shlex.quote, words))} >/dev/null 2>&1 || true"


def git_hook_command(spool: Path, roots: Sequence[str] = ()) -> str:
    """Return the command for a git hook: it records the commit in the background.

    HEAD is read first, because it may have moved when the program starts. ``|| :`` is for ``set -e``.
    """
    words = [*program(), str(spool.absolute())]
    run = f'{" ".join(map(shlex.quote, words))} "${{1:-post-commit}}" "$PWD" "$backscroll_head"'
    run = " ".join([run, *map(shlex.quote, roots)])
    return (
        "backscroll_head=$(git rev-parse HEAD --git-common-dir 2>/dev/null) || :;"
        f" ( {run} & ) </dev/null >/dev/null 2>&1 || :"
    )


def is_own_command(command: object) -> bool:
    """Return whether a command runs the hook program, of this or another installation."""
    return isinstance(command, str) and _OWN.search(command) is not None


def missing_files(command: str) -> list[str]:
    """Return the interpreter and the program of an own command that do not exist."""
    try:
        words = shlex.split(command)
    except ValueError:
        return [command]
    files = [*words[:1], *(word for word in words if word.endswith(PROGRAM_NAME))]
    return [file for file in files if not Path(file).exists()]
