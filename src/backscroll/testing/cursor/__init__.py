"""Cursor's own databases, written for tests: every generation, every kind of session, every damage.

    home = cursor.Home(tmp_path)
    home.composer([cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")])
    home.write()

`GENERATIONS` has one whole history for each generation, `write_history` a big one.
"""

from backscroll.testing.cursor import damage
from backscroll.testing.cursor.generations import DOCS, GENERATIONS, SHOP, Example, every_kind, every_tool
from backscroll.testing.cursor.graph import Graph, build_graph
from backscroll.testing.cursor.history import write_history
from backscroll.testing.cursor.messages import (
    Message,
    Tool,
    assistant,
    cancelled,
    empty,
    failed,
    image,
    loading,
    missing,
    orphaned,
    rejected,
    simulated,
    thinking,
    tool,
    user,
    with_hollow_tool,
)
from backscroll.testing.cursor.rows import COMPOSER_VERSIONS, SECRET
from backscroll.testing.cursor.session_kinds import KINDS
from backscroll.testing.cursor.session_lists import Entry
from backscroll.testing.cursor.side_databases import write_picture, write_search, write_tracking
from backscroll.testing.cursor.tool_calls import CLI_NAMES, NAMES, example
from backscroll.testing.cursor.user_data import STARTS, Composer, Home
from backscroll.testing.cursor.workspaces import (
    Place,
    container,
    empty_window,
    local,
    multi_root,
    ssh,
    windows,
    write_code_workspace,
    wsl,
)

__all__ = [
    "CLI_NAMES",
    "COMPOSER_VERSIONS",
    "DOCS",
    "GENERATIONS",
    "KINDS",
    "NAMES",
    "SECRET",
    "SHOP",
    "STARTS",
    "Composer",
    "Entry",
    "Example",
    "Graph",
    "Home",
    "Message",
    "Place",
    "Tool",
    "assistant",
    "build_graph",
    "cancelled",
    "container",
    "damage",
    "empty",
    "empty_window",
    "every_kind",
    "every_tool",
    "example",
    "failed",
    "image",
    "loading",
    "local",
    "missing",
    "multi_root",
    "orphaned",
    "rejected",
    "simulated",
    "ssh",
    "thinking",
    "tool",
    "user",
    "windows",
    "with_hollow_tool",
    "write_code_workspace",
    "write_history",
    "write_picture",
    "write_search",
    "write_tracking",
    "wsl",
]
