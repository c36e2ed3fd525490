"""Valid JSON records with unexpected types, missing fields or hostile text."""

from collections.abc import Callable
from typing import Any

from backscroll.testing.claude_code.blocks import Record

_HOSTILE = (
    "</command-args></bash-stdout></persisted-output></system-reminder> "
    "\x1b[31mred\x1b[0m \x1b]8;;https://example.invalid\x07link\x1b]8;;\x07 "
    "\u200b\u202ezero width <script>alert(1)</script>"
)


def _line(number: int, session_id: str, type_: str, **fields: Any) -> Record:
    return {
        "parentUuid": None,
        "isSidechain": False,
        "type": type_,
        "uuid": f"0dd00000-0000-4000-8000-{number:012x}",
        "timestamp": f"2026-10-03T09:00:{number:02d}.000Z",
        "userType": "external",
        "cwd": "/home/zoe/ferry",
        "sessionId": session_id,
        "version": "2.1.288",
        "gitBranch": "main",
        **fields,
    }


def _user(number: int, content: Any, **fields: Any) -> Callable[[str], Record]:
    return lambda session_id: _line(
        number, session_id, "user", message={"role": "user", "content": content}, **fields
    )


def _assistant(number: int, content: Any, **message: Any) -> Callable[[str], Record]:
    defaults = {
        "id": f"msg_odd{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": content,
    }
    return lambda session_id: _line(number, session_id, "assistant", message=defaults | message)


def _result(number: int, content: Any, **fields: Any) -> Callable[[str], Record]:
    return _user(
        number, [{"type": "tool_result", "tool_use_id": f"toolu_odd{number}", "content": content}], **fields
    )


def _bare(number: int, type_: str, **fields: Any) -> Callable[[str], Record]:
    return lambda session_id: _line(number, session_id, type_, **fields)


def _call(number: int, name: Any, arguments: Any) -> Callable[[str], Record]:
    return _assistant(
        number, [{"type": "tool_use", "id": f"toolu_call{number}", "name": name, "input": arguments}]
    )


def _message_by_character(session_id: str) -> Record:
    """Return a record whose message is a string that was written as one key per character."""
    return _line(30, session_id, "user", message={str(n): letter for n, letter in enumerate("spread text")})


# Functions that return a record for a session id.
ODD_RECORDS: dict[str, Callable[[str], Record]] = {
    "plain": _user(1, "PLAIN"),
    "message missing": _bare(2, "user"),
    "message null": _bare(3, "assistant", message=None),
    "message a string": _bare(4, "user", message="just a string"),
    "content null": _user(5, None),
    "content a number": _user(6, 42),
    "content an object": _user(7, {"type": "text", "text": "not in a list"}),
    "content of bare strings": _user(8, ["a bare string in a list", None, 3]),
    "blocks without a type": _assistant(9, [{"text": "no type"}, "a bare string", None]),
    "an unknown block": _assistant(10, [{"type": "hologram", "data": 1}]),
    "usage null": _assistant(11, [{"type": "text", "text": "usage is null"}], usage=None),
    "usage of nulls": _assistant(
        12, [{"type": "text", "text": "usage of nulls"}], usage={"input_tokens": None, "output_tokens": None}
    ),
    "usage of strings": _assistant(
        13, [{"type": "text", "text": "usage of strings"}], usage={"input_tokens": "12", "output_tokens": {}}
    ),
    "no message id": _assistant(14, [{"type": "text", "text": "no id"}], id=None, model=None),
    "input a JSON string": _call(15, "Bash", '{"command":"ls"}'),
    "command not a string": _call(16, "Bash", {"command": ["ls", "-l"]}),
    "file path a number": _call(17, "Edit", {"file_path": 7, "old_string": None, "new_string": {}}),
    "glob an object": _call(18, "Glob", {"pattern": {"any": 1}}),
    "tool name null": _call(19, None, None),
    "toolUseResult a string": _result(20, "result", toolUseResult="Error: result"),
    "toolUseResult a list": _result(21, "result", toolUseResult=[{"type": "text", "text": "result"}]),
    "toolUseResult a number": _result(22, "result", toolUseResult=3),
    "result null": _result(23, None),
    "result a number": _result(24, 5),
    "uuid a number": _user(25, "uuid is a number", uuid=25),
    "parent a number": _user(26, "parent is a number", parentUuid=26),
    "cwd a list": _user(27, "cwd is a list", cwd=["/home"], gitBranch=5, version=None),
    "type missing": _bare(28, "user", type=None),
    "attachment a string": _bare(29, "attachment", attachment="file"),
    "message as one key per character": _message_by_character,
    "hostile text": _user(31, _HOSTILE),
    "persisted path with ..": _result(
        32,
        "<persisted-output>\nOutput too large (40KB). Full output saved to: "
        "/home/zoe/.claude/projects/x/tool-results/../../../../../etc/passwd\n\nPreview (first 2KB):\nroot\n",
    ),
    "title an object": lambda session_id: {
        "type": "custom-title",
        "customTitle": {},
        "sessionId": session_id,
    },
    "snapshot null": lambda session_id: {
        "type": "file-history-snapshot",
        "messageId": None,
        "snapshot": None,
    },
    "record of another tool": lambda session_id: {
        "id": "0d1e",
        "timestamp": "2026-10-03T09:01:00.000Z",
        "type": "gemini",
        "content": "a foreign log",
        "thoughts": [],
        "tokens": {"input": 1, "output": 2},
    },
}
