"""How a command ends: with what it wrote, or with a sentence on standard error."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from backscroll.errors import BackscrollError, UsageError

__all__ = ["ignore_output", "opened_streams", "sentences"]


@contextmanager
def sentences() -> Iterator[None]:
    """Say what goes wrong in a sentence, and end with the code that goes with it."""
    try:
        yield
    except KeyboardInterrupt:
        _end("Stopped. What was done so far is whole.", 130)
    except UsageError as error:
        _end(str(error), 2)
    except BackscrollError as error:
        _end(str(error), 1)
    except UnicodeEncodeError:
        # Only a path may be any bytes; Python keeps those that are no UTF-8 as halves of characters.
        spoiled = next(
            (word for word in sys.argv if any("\ud800" <= sign <= "\udfff" for sign in word)), None
        )
        if spoiled is None:
            raise
        _end(f"{spoiled!r} is not UTF-8, and cannot be looked for or kept", 2)
    except BrokenPipeError:
        ignore_output()
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _end(f"{where}{error.strerror or error}", 1)


def _end(sentence: str, code: int) -> None:
    from backscroll.model.sanitize import sanitize  # a path, a title or a word may be anything

    sys.stderr.write(f"{sanitize(sentence)}\n")
    sys.exit(code)


def ignore_output() -> None:
    """Whoever read our output has seen enough; the interpreter must not complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def opened_streams() -> None:
    """Let what goes to a closed stream go nowhere, and not into a file that was opened under its number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    # Python has None for a stream that was closed when it began.
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8")
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8")
