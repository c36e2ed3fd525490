"""Command-line interface: parse arguments, call `History`, print.

commands/            one module per command, or per few related commands
startup.py           start a command; global options; a sync without click
app.py               all commands, loaded only when they run; groups with suggestions for unknown names
options.py           options that several commands share, commands with a query, shell completion
output.py            standard output: text, pager, JSON documents; confirmation
messages.py          errors and exit codes, commands named in messages, welcome and permission messages
progress.py          progress bar with an estimate
sync.py              run a sync and print its result
session_picker.py    choose a session from a list
install_command.py   how to install an optional dependency
"""

import gc
import sys

from backscroll import __version__

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
