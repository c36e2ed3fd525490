"""The command line: parse, call the library, print."""

import sys

__all__ = ["main"]


def main() -> None:
    """The ``backscroll`` command."""
    if sys.argv[1:] == ["--version"]:
        from backscroll import __version__

        sys.stdout.write(f"backscroll {__version__}\n")
        return
    try:
        import click  # noqa: F401
    except ImportError:
        sys.exit("The command line is an extra of its own; install it with: pip install 'backscroll[cli]'")
    from backscroll.cli.app import run

    run()
