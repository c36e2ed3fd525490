"""Example calls of every tool of Cursor, with realistic arguments and results."""

from collections.abc import Callable
from typing import Any

from backscroll.testing.cursor.messages import Tool

TOOL_NAMES = (
    "read_file",
    "read_file_v2",
    "edit_file",
    "edit_file_v2",
    "search_replace",
    "MultiEdit",
    "write",
    "edit_notebook",
    "reapply",
    "apply_patch",
    "delete_file",
    "run_terminal_cmd",
    "run_terminal_command",
    "run_terminal_command_v2",
    "grep",
    "ripgrep",
    "grep_search",
    "glob_file_search",
    "file_search",
    "list_directory",
    "todo_write",
    "create_plan",
    "ask_question",
    "ripgrep_raw_search",
    "codebase_search",
    "semantic_search_full",
    "list_dir",
    "list_dir_v2",
    "read_lints",
    "web_search",
    "web_fetch",
    "fetch_rules",
    "task",
    "task_v2",
    "create_diagram",
    "mcp-tracker-get_ticket",
)

# Names of the same tools in the CLI and in the messages for the model.
CLI_TOOL_NAMES = (
    "Read",
    "Write",
    "StrReplace",
    "Edit",
    "ApplyPatch",
    "Delete",
    "Grep",
    "rg",
    "Glob",
    "LS",
    "Shell",
    "AwaitShell",
    "SemanticSearch",
    "WebSearch",
    "WebFetch",
    "TodoWrite",
    "ReadLints",
    "CreatePlan",
    "Task",
    "Subagent",
    "AskQuestion",
    "SwitchMode",
    "CallMcpTool",
)

_EDIT_TOOLS = (
    "edit_file",
    "edit_file_v2",
    "search_replace",
    "MultiEdit",
    "write",
    "edit_notebook",
    "reapply",
)


def tool_number(name: str) -> int:
    """Return the number of a tool, invented if it is not known."""
    if "terminal" in name:
        return 15
    if name in ("MultiEdit", "delete_file"):
        return 11
    if name in _EDIT_TOOLS:
        return 38
    return 40 + TOOL_NAMES.index(name) if name in TOOL_NAMES else 19


def example_call(name: str, *, folder: str = "/home/dev/shop", word: str = "total") -> Tool:
    """Return a completed call of a tool."""
    if name in _PAYLOADS:
        params, result = _PAYLOADS[name](folder, word)
        return Tool(name, params, result, has_raw_args="terminal" not in name)
    if name in _EDIT_TOOLS:
        params, result = _edit(folder, word)
        return Tool(name, params, result, decision="accepted")
    return Tool(name, {"explanation": f"about {word}", "query": word}, {"success": {"text": f"about {word}"}})


def _shell(folder: str, word: str) -> tuple[dict[str, Any], dict[str, Any]]:
    params = {
        "command": f"pytest -q -k {word}",
        "cwd": folder,
        "options": {"timeout": 30000},
        "commandDescription": f"Run the tests about {word}",
    }
    return params, {"output": "3 passed", "exitCode": 0, "rejected": False, "notInterrupted": True}


def _edit(folder: str, word: str) -> tuple[dict[str, Any], dict[str, Any]]:
    params = {
        "relativeWorkspacePath": f"{folder}/cart.py",
        "old_string": f"return {word}",
        "new_string": f"return round({word}, 2)",
    }
    chunk = {
        "diffString": f"-    return {word}\n+    return round({word}, 2)\n+\n",
        "oldStart": 12,
        "newStart": 12,
        "oldLines": 1,
        "newLines": 2,
        "linesAdded": 2,
        "linesRemoved": 1,
    }
    return params, {"diff": {"chunks": [chunk]}}


def _read(folder: str, word: str) -> tuple[dict[str, Any], dict[str, Any]]:
    # The path is absolute, in spite of the field name.
    params = {"relativeWorkspacePath": f"{folder}/cart.py", "limit": 200}
    return params, {"contents": f"def basket():\n    return {word}\n", "totalLinesInFile": 2}


def _read_target(folder: str, word: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"targetFile": f"{folder}/cart.py"}, _read(folder, word)[1]


def _grep(folder: str, word: str) -> tuple[dict[str, Any], dict[str, Any]]:
    match = {"file": f"{folder}/cart.py", "matches": [{"lineNumber": 12, "content": f"    return {word}"}]}
    params = {"pattern": word, "path": folder, "outputMode": "content"}
    return params, {"success": {"workspaceResults": {folder: {"content": {"matches": [match]}}}}}


def _list(folder: str, word: str) -> tuple[dict[str, Any], dict[str, Any]]:
    files = [{"name": "cart.py", "isDirectory": False}, {"name": f"{word}s", "isDirectory": True}]
    return {"path": folder}, {"files": files}


def _glob(folder: str, word: str) -> tuple[dict[str, Any], dict[str, Any]]:
    found = {"absPath": folder, "files": [{"relPath": f"{word}.py"}], "totalFiles": 1}
    return {"targetDirectory": folder, "globPattern": "**/*.py"}, {"directories": [found]}


def _todo(folder: str, word: str) -> tuple[dict[str, Any], dict[str, Any]]:
    todos = [
        {"id": "1", "content": f"Find where {word} is rounded", "status": "completed"},
        {"id": "2", "content": "Add a test", "status": "in_progress"},
    ]
    return {"merge": False, "todos": todos}, {"success": True, "finalTodos": todos}


_PAYLOADS: dict[str, Callable[[str, str], tuple[dict[str, Any], dict[str, Any]]]] = {
    "run_terminal_cmd": _shell,
    "run_terminal_command": _shell,
    "run_terminal_command_v2": _shell,
    "read_file": _read,
    "read_file_v2": _read_target,
    "grep": _grep,
    "ripgrep": _grep,
    "ripgrep_raw_search": _grep,
    "grep_search": _grep,
    "list_directory": _list,
    "list_dir": _list,
    "list_dir_v2": _list,
    "glob_file_search": _glob,
    "file_search": _glob,
    "todo_write": _todo,
}
