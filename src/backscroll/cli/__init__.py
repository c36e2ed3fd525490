"""The command line: parse, call the library, print."""

import gc
import sys

__all__ = ["main"]

_MANY = 50_000  # values that come to be before it is looked which of them nobody needs


def main() -> None:
    """The ``backscroll`` command."""
    if sys.argv[1:] == ["--version"]:
        from backscroll import __version__

        sys.stdout.write(f"backscroll {__version__}\n")
        return
    # A command makes many values and next to no cycles: looking for these every seven hundred values, as is
    # usual, takes a tenth of its time, and looking once more at its end half as much.
    gc.set_threshold(_MANY, 20, 20)
    try:
        import click  # noqa: F401
    except ImportError:
        sys.exit("The command line is an extra of its own; install it with: pip install 'backscroll[cli]'")
    from backscroll.cli.app import run

    try:
        run()
    finally:
        gc.freeze()
