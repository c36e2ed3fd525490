"""Command-line interface: parse arguments, call `History`, print.

commands/              one module per command or group of related commands
output/                what commands print: errors, progress, JSON, text that fits the terminal
startup.py             start a command
app.py                 all commands, global options, lazy loading of commands
command_group.py       groups of commands with suggestions for unknown names
query_command.py       commands whose arguments are a search query
global_options.py      global options and the `History` they configure
options.py             options that several commands share
completion_values.py   values that shell completion offers
session_picker.py  keyboard.py   choose a session from a list
install_command.py     how to install an optional dependency
launch.py              start another program
"""

import gc
import sys

from backscroll import __version__

__all__ = ["main"]

GC_THRESHOLD = 50_000  # the default of 700 costs 10 % of a command


def main() -> None:
    """Run the ``backscroll`` command."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        sys.stdout.write(f"backscroll {__version__}\n")
        return
    gc.set_threshold(GC_THRESHOLD, 20, 20)  # before the imports
    from backscroll.cli.startup import run_command  # start-up: not for --version

    run_command(arguments)
