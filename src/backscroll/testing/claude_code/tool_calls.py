"""Tool calls together with what came of them.

``content`` is what the model was told, ``rich`` the structured copy that Claude
Code keeps beside it in ``toolUseResult``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from backscroll.testing.claude_code.blocks import Block, image

__all__ = [
    "Call",
    "ask",
    "bash",
    "bash_output",
    "edit",
    "exit_plan",
    "fetch",
    "glob",
    "grep",
    "kill_bash",
    "ls",
    "mcp",
    "multi_edit",
    "read",
    "screenshot",
    "todos",
    "tool_search",
    "web_search",
    "write",
]


@dataclass(frozen=True)
class Call:
    """A tool's name and input, and the answer it gets."""

    name: str
    input: Any
    content: str | list[Block] = ""
    rich: Any = None
    is_error: bool = False
    id: str | None = None  # given when the call is written, unless set

    def failed(self, reason: str) -> "Call":
        """The same call, answered with an error; its rich copy is then only a string."""
        return replace(
            self, content=f"<tool_use_error>{reason}</tool_use_error>", rich=f"Error: {reason}", is_error=True
        )


def bash(command: str, stdout: str = "", *, stderr: str = "", description: str = "") -> Call:
    rich = {"stdout": stdout, "stderr": stderr, "interrupted": False, "isImage": False}
    put = {"command": command} | ({"description": description} if description else {})
    return Call("Bash", put, "\n".join(filter(None, (stdout, stderr))), rich)


def read(path: str, content: str, *, start: int = 1) -> Call:
    lines = content.split("\n")
    numbered = "\n".join(f"{number:>6}→{line}" for number, line in enumerate(lines, start))
    file = {
        "filePath": path,
        "content": content,
        "numLines": len(lines),
        "startLine": start,
        "totalLines": start + len(lines) - 1,
    }
    return Call("Read", {"file_path": path}, numbered, {"type": "text", "file": file})


def screenshot(path: str, data: bytes) -> Call:
    """Reading an image: its base64 is stored twice."""
    block = image(data)
    file = {"base64": block["source"]["data"], "type": "image/png", "originalSize": len(data)}
    return Call("Read", {"file_path": path}, [block], {"type": "image", "file": file})


def write(path: str, content: str, *, original: str | None = None) -> Call:
    rich: dict[str, Any] = {"type": "create", "filePath": path, "content": content, "structuredPatch": []}
    if original is None:
        return Call(
            "Write", {"file_path": path, "content": content}, f"File created successfully at: {path}", rich
        )
    rich |= {"type": "update", "structuredPatch": patch(original, content), "originalFile": original}
    return Call("Write", {"file_path": path, "content": content}, f"The file {path} has been updated.", rich)


def edit(
    path: str, old: str, new: str, *, original: str, replace_all: bool = False, user_modified: bool = False
) -> Call:
    after = original.replace(old, new) if replace_all else original.replace(old, new, 1)
    rich = {
        "filePath": path,
        "oldString": old,
        "newString": new,
        "originalFile": original,
        "structuredPatch": patch(original, after),
        "userModified": user_modified,
        "replaceAll": replace_all,
    }
    put: dict[str, Any] = {"file_path": path, "old_string": old, "new_string": new}
    if replace_all:
        put["replace_all"] = True
    return Call("Edit", put, f"The file {path} has been updated.", rich)


def multi_edit(path: str, edits: Sequence[tuple[str, str]], *, original: str) -> Call:
    after = original
    for old, new in edits:
        after = after.replace(old, new, 1)
    asked = [{"old_string": old, "new_string": new} for old, new in edits]
    rich = {
        "filePath": path,
        "edits": [{**one, "replace_all": False} for one in asked],
        "originalFileContents": original,
        "structuredPatch": patch(original, after),
        "userModified": False,
    }
    told = f"Applied {len(edits)} edits to {path}"
    return Call("MultiEdit", {"file_path": path, "edits": asked}, told, rich)


def glob(pattern: str, found: Sequence[str]) -> Call:
    rich = {"filenames": list(found), "durationMs": 12, "numFiles": len(found), "truncated": False}
    return Call("Glob", {"pattern": pattern}, "\n".join(found) or "No files found", rich)


def grep(pattern: str, found: Sequence[str], *, content: str = "") -> Call:
    rich = {
        "mode": "content" if content else "files_with_matches",
        "numFiles": len(found),
        "filenames": list(found),
        "content": content,
        "numLines": content.count("\n") + 1 if content else 0,
    }
    told = content or f"Found {len(found)} files\n" + "\n".join(found)
    return Call("Grep", {"pattern": pattern, "output_mode": rich["mode"]}, told, rich)


def ls(path: str, names: Sequence[str]) -> Call:
    told = f"- {path}/\n" + "\n".join(f"  - {name}" for name in names)
    return Call("LS", {"path": path}, told, told)


def todos(new: Sequence[tuple[str, str]], *, old: Sequence[tuple[str, str]] = ()) -> Call:
    """Pairs of what is to do and its status."""
    rich = {"oldTodos": _todos(old), "newTodos": _todos(new)}
    return Call("TodoWrite", {"todos": _todos(new)}, "Todos have been modified successfully.", rich)


def fetch(url: str, result: str) -> Call:
    rich = {
        "bytes": len(result),
        "code": 200,
        "codeText": "OK",
        "result": result,
        "durationMs": 840,
        "url": url,
    }
    return Call("WebFetch", {"url": url, "prompt": "What does it say?"}, result, rich)


def web_search(query: str, titles: Sequence[str]) -> Call:
    """Results as they come, with the null that some builds write among them."""
    found = [{"title": title, "url": f"https://example.invalid/{n}"} for n, title in enumerate(titles)]
    rich = {
        "query": query,
        "results": [{"tool_use_id": "srvtoolu_demo", "content": found}, None],
        "durationSeconds": 2.5,
    }
    return Call("WebSearch", {"query": query}, "\n".join(titles), rich)


def bash_output(shell: str, stdout: str) -> Call:
    rich = {
        "shellId": shell,
        "command": "npm run dev",
        "status": "running",
        "exitCode": None,
        "stdout": stdout,
        "stderr": "",
        "stdoutLines": stdout.count("\n") + 1,
        "stderrLines": 0,
        "timestamp": "2025-10-01T08:00:00.000Z",
    }
    told = f"<status>running</status>\n<stdout>\n{stdout}\n</stdout>"
    return Call("BashOutput", {"bash_id": shell}, told, rich)


def kill_bash(shell: str) -> Call:
    told = f"Successfully killed shell: {shell}"
    return Call("KillBash", {"shell_id": shell}, told, {"message": told, "shell_id": shell, "success": True})


def ask(question: str, options: Sequence[str], answer: str) -> Call:
    asked = [{"question": question, "header": "Choice", "options": [{"label": name} for name in options]}]
    told = f'User has answered your questions: "{question}"="{answer}".'
    return Call(
        "AskUserQuestion", {"questions": asked}, told, {"questions": asked, "answers": {question: answer}}
    )


def exit_plan(plan: str) -> Call:
    told = "User has approved your plan. You can now start coding."
    return Call("ExitPlanMode", {"plan": plan}, told, {"plan": plan, "isAgent": False})


def tool_search(query: str, names: Sequence[str]) -> Call:
    found: list[Block] = [{"type": "tool_reference", "tool_name": name} for name in names]
    rich = {"query": query, "matches": list(names), "total_deferred_tools": 40}
    return Call("ToolSearch", {"query": query}, found, rich)


def mcp(server: str, tool: str, put: dict[str, Any], told: str) -> Call:
    """A tool of an MCP server: its rich copy is a list of blocks."""
    blocks: list[Block] = [{"type": "text", "text": told}]
    return Call(f"mcp__{server}__{tool}", put, blocks, blocks)


def patch(before: str, after: str) -> list[dict[str, Any]]:
    """The difference of two texts as ``structuredPatch`` tells it, with three lines of context."""
    old, new = before.split("\n"), after.split("\n")
    out: list[dict[str, Any]] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        lines: list[str] = []
        for kind, a, b, c, d in group:
            if kind == "equal":
                lines += [f" {line}" for line in old[a:b]]
                continue
            lines += [f"-{line}" for line in old[a:b]] + [f"+{line}" for line in new[c:d]]
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        out.append(
            {"oldStart": a + 1, "oldLines": b - a, "newStart": c + 1, "newLines": d - c, "lines": lines}
        )
    return out


def _todos(items: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"content": what, "status": status, "activeForm": f"Doing: {what}"} for what, status in items]
