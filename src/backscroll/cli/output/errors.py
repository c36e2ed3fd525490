"""Errors as messages on standard error and exit codes; standard streams that are closed."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from backscroll.errors import BackscrollError, UsageError

__all__ = ["as_sentence", "discard_output", "reopen_closed_streams", "report_errors"]


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
    from backscroll.cli.output.hints import printable_message  # start-up time: only errors need it

    sys.stderr.write(f"{printable_message(as_sentence(message))}\n")
    sys.exit(code)


def as_sentence(message: str) -> str:
    """Return a message with a full stop at its end, unless it has one or ends with a list."""
    return message if message.endswith((".", "?", "!", ")", ":")) or "\n" in message else f"{message}."


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
