"""The command line: parse, call the library, print."""

import gc
import os
import sys

__all__ = ["main"]

_MANY = 50_000  # values that come to be before it is looked which of them nobody needs


def main() -> None:
    """The ``backscroll`` command."""
    words = sys.argv[1:]
    if words == ["--version"]:
        from backscroll import __version__

        sys.stdout.write(f"backscroll {__version__}\n")
        return
    # A command makes many values and next to no cycles: looking for these every seven hundred values, as is
    # usual, takes a tenth of its time, and looking once more at its end half as much.
    gc.set_threshold(_MANY, 20, 20)
    from backscroll.cli.exit import opened_streams, sentences

    opened_streams()
    try:
        with sentences():
            _run(words)
    finally:
        gc.freeze()


def _run(words: list[str]) -> None:
    from backscroll.cli.fast_sync import plain_sync

    # What reads command lines takes longer to load than a sync that finds nothing.
    if "_BACKSCROLL_COMPLETE" not in os.environ and (asked := plain_sync(words)) is not None:
        from backscroll.cli.sync_output import refresh

        setup, as_json = asked
        sys.exit(refresh(setup, as_json=as_json))
    try:
        import click  # noqa: F401
    except ImportError:
        sys.exit("The command line is an extra of its own; install it with: pip install 'backscroll[cli]'")
    from backscroll.cli.app import run

    run()
