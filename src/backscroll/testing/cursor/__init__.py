"""Builders for the databases of the Cursor IDE, for every generation of its format.

    home = cursor.Home(tmp_path)
    home.composer([cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")])
    home.write()

messages         messages, independent of the format
user_data        the user-data folder with its databases
bubbles          messages as chat tabs, inline bubbles and bubble rows
rows             other rows of a session
session_lists    lists and the table of sessions
graph            the content-addressed graph of a conversation
prompt_messages  messages of the graph as the model receives them
workspaces       workspaces of every kind
tool_calls       example calls of every tool
side_databases   code tracking, search and images
"""

from backscroll.testing.cursor.graph import Graph, build_graph
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
    with_empty_tool_data,
)
from backscroll.testing.cursor.rows import COMPOSER_VERSIONS, SECRET
from backscroll.testing.cursor.session_lists import Entry
from backscroll.testing.cursor.side_databases import write_image, write_search, write_tracking
from backscroll.testing.cursor.tool_calls import CLI_TOOL_NAMES, TOOL_NAMES, example_call
from backscroll.testing.cursor.user_data import START_TIMES, Composer, Home
from backscroll.testing.cursor.workspaces import (
    DOCS,
    SHOP,
    Workspace,
    container_folder,
    empty_window,
    local_folder,
    multi_root,
    ssh_folder,
    windows_folder,
    write_code_workspace,
    wsl_folder,
)

__all__ = [
    "CLI_TOOL_NAMES",
    "COMPOSER_VERSIONS",
    "DOCS",
    "SECRET",
    "SHOP",
    "START_TIMES",
    "TOOL_NAMES",
    "Composer",
    "Entry",
    "Graph",
    "Home",
    "Message",
    "Tool",
    "Workspace",
    "assistant",
    "build_graph",
    "cancelled",
    "container_folder",
    "empty",
    "empty_window",
    "example_call",
    "failed",
    "image",
    "loading",
    "local_folder",
    "missing",
    "multi_root",
    "orphaned",
    "rejected",
    "simulated",
    "ssh_folder",
    "thinking",
    "tool",
    "user",
    "windows_folder",
    "with_empty_tool_data",
    "write_code_workspace",
    "write_image",
    "write_search",
    "write_tracking",
    "wsl_folder",
]
