"""Tool calls with their results.

``content`` is the result as the model receives it. ``tool_use_result`` is the structured
copy in the record's field ``toolUseResult``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from backscroll.testing.claude_code.blocks import Block, image


@dataclass(frozen=True)
class Call:
    """Tool name, input and result of a call."""

    name: str
    input: Any
    content: str | list[Block] = ""
    tool_use_result: Any = None
    is_error: bool = False
    id: str | None = None  # None: generated when the call is written

    def failed(self, reason: str) -> "Call":
        """Return the same call with an error as its result. ``tool_use_result`` is then a string."""
        return replace(
            self,
            content=f"<tool_use_error>{reason}</tool_use_error>",
            tool_use_result=f"Error: {reason}",
            is_error=True,
        )


def bash(
    command: str,
    stdout: str = "",
    *,
    stderr: str = "",
    description: str = "",
    edits: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None,
    changed: Sequence[str] = (),
) -> Call:
    """Return a shell command. 2.1.269 and later can add the files that it changed.

    ``edits`` are removed and added lines by path: a file has only one of them if it was deleted or created.
    ``changed`` are other paths.
    """
    structured: dict[str, Any] = {"stdout": stdout, "stderr": stderr, "interrupted": False, "isImage": False}
    if edits is not None:
        structured["bashEditDiff"] = {
            "files": [_shell_edit(path, *lines) for path, lines in edits.items()],
            "moreFiles": len(changed),
            "changedFiles": [*edits, *changed],
        }
    arguments = {"command": command} | ({"description": description} if description else {})
    return Call("Bash", arguments, "\n".join(filter(None, (stdout, stderr))), structured)


def _shell_edit(path: str, removed: Sequence[str], added: Sequence[str]) -> dict[str, Any]:
    lines = [f"-{line}" for line in removed] + [f"+{line}" for line in added]
    hunk = {"oldStart": 1, "oldLines": len(removed), "newStart": 1, "newLines": len(added), "lines": lines}
    state = {"created": True} if not removed else {"deleted": True} if not added else {}
    return {"filePath": path, "hunks": [hunk]} | state


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
    """Return a call that reads an image. The base64 data is stored twice."""
    block = image(data)
    file = {"base64": block["source"]["data"], "type": "image/png", "originalSize": len(data)}
    return Call("Read", {"file_path": path}, [block], {"type": "image", "file": file})


def write(path: str, content: str, *, original: str | None = None) -> Call:
    structured: dict[str, Any] = {
        "type": "create",
        "filePath": path,
        "content": content,
        "structuredPatch": [],
    }
    if original is None:
        return Call(
            "Write",
            {"file_path": path, "content": content},
            f"File created successfully at: {path}",
            structured,
        )
    structured |= {
        "type": "update",
        "structuredPatch": structured_patch(original, content),
        "originalFile": original,
    }
    return Call(
        "Write", {"file_path": path, "content": content}, f"The file {path} has been updated.", structured
    )


def edit(
    path: str, old: str, new: str, *, original: str, replace_all: bool = False, user_modified: bool = False
) -> Call:
    after = original.replace(old, new) if replace_all else original.replace(old, new, 1)
    structured = {
        "filePath": path,
        "oldString": old,
        "newString": new,
        "originalFile": original,
        "structuredPatch": structured_patch(original, after),
        "userModified": user_modified,
        "replaceAll": replace_all,
    }
    arguments: dict[str, Any] = {"file_path": path, "old_string": old, "new_string": new}
    if replace_all:
        arguments["replace_all"] = True
    return Call("Edit", arguments, f"The file {path} has been updated.", structured)


def multi_edit(path: str, edits: Sequence[tuple[str, str]], *, original: str) -> Call:
    after = original
    for old, new in edits:
        after = after.replace(old, new, 1)
    replacements = [{"old_string": old, "new_string": new} for old, new in edits]
    structured = {
        "filePath": path,
        "edits": [{**replacement, "replace_all": False} for replacement in replacements],
        "originalFileContents": original,
        "structuredPatch": structured_patch(original, after),
        "userModified": False,
    }
    text = f"Applied {len(edits)} edits to {path}"
    return Call("MultiEdit", {"file_path": path, "edits": replacements}, text, structured)


def glob(pattern: str, found: Sequence[str]) -> Call:
    structured = {"filenames": list(found), "durationMs": 12, "numFiles": len(found), "truncated": False}
    return Call("Glob", {"pattern": pattern}, "\n".join(found) or "No files found", structured)


def grep(pattern: str, found: Sequence[str], *, content: str = "") -> Call:
    structured = {
        "mode": "content" if content else "files_with_matches",
        "numFiles": len(found),
        "filenames": list(found),
        "content": content,
        "numLines": content.count("\n") + 1 if content else 0,
    }
    text = content or f"Found {len(found)} files\n" + "\n".join(found)
    return Call("Grep", {"pattern": pattern, "output_mode": structured["mode"]}, text, structured)


def ls(path: str, names: Sequence[str]) -> Call:
    text = f"- {path}/\n" + "\n".join(f"  - {name}" for name in names)
    return Call("LS", {"path": path}, text, text)


def todos(new: Sequence[tuple[str, str]], *, old: Sequence[tuple[str, str]] = ()) -> Call:
    """Return a call that writes a todo list. Each item is a pair of content and status."""
    structured = {"oldTodos": _todo_items(old), "newTodos": _todo_items(new)}
    return Call(
        "TodoWrite", {"todos": _todo_items(new)}, "Todos have been modified successfully.", structured
    )


def fetch(url: str, result: str) -> Call:
    structured = {
        "bytes": len(result),
        "code": 200,
        "codeText": "OK",
        "result": result,
        "durationMs": 840,
        "url": url,
    }
    return Call("WebFetch", {"url": url, "prompt": "What does it say?"}, result, structured)


def web_search(query: str, titles: Sequence[str]) -> Call:
    """Return a web search. Its results contain a null, as some builds write it."""
    found = [{"title": title, "url": f"https://example.invalid/{n}"} for n, title in enumerate(titles)]
    structured = {
        "query": query,
        "results": [{"tool_use_id": "srvtoolu_demo", "content": found}, None],
        "durationSeconds": 2.5,
    }
    return Call("WebSearch", {"query": query}, "\n".join(titles), structured)


def bash_output(shell: str, stdout: str) -> Call:
    structured = {
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
    text = f"<status>running</status>\n<stdout>\n{stdout}\n</stdout>"
    return Call("BashOutput", {"bash_id": shell}, text, structured)


def kill_bash(shell: str) -> Call:
    text = f"Successfully killed shell: {shell}"
    return Call("KillBash", {"shell_id": shell}, text, {"message": text, "shell_id": shell, "success": True})


def ask(question: str, options: Sequence[str], answer: str) -> Call:
    questions = [{"question": question, "header": "Choice", "options": [{"label": name} for name in options]}]
    text = f'User has answered your questions: "{question}"="{answer}".'
    return Call(
        "AskUserQuestion",
        {"questions": questions},
        text,
        {"questions": questions, "answers": {question: answer}},
    )


def exit_plan(plan: str) -> Call:
    text = "User has approved your plan. You can now start coding."
    return Call("ExitPlanMode", {"plan": plan}, text, {"plan": plan, "isAgent": False})


def tool_search(query: str, names: Sequence[str]) -> Call:
    found: list[Block] = [{"type": "tool_reference", "tool_name": name} for name in names]
    structured = {"query": query, "matches": list(names), "total_deferred_tools": 40}
    return Call("ToolSearch", {"query": query}, found, structured)


def mcp(server: str, tool: str, arguments: dict[str, Any], text: str) -> Call:
    """Return a call of an MCP tool. Its ``tool_use_result`` is a list of blocks."""
    blocks: list[Block] = [{"type": "text", "text": text}]
    return Call(f"mcp__{server}__{tool}", arguments, blocks, blocks)


def structured_patch(before: str, after: str) -> list[dict[str, Any]]:
    """Return the difference of two texts in the form of ``structuredPatch``, with three context lines."""
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


def _todo_items(items: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [
        {"content": content, "status": status, "activeForm": f"Doing: {content}"} for content, status in items
    ]
