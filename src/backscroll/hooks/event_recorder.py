"""Append an event of a hook to the spool. `backscroll_hook.py` is the program that runs this.

    python -I -S backscroll_hook.py SPOOL < event
    python -I -S backscroll_hook.py SPOOL EVENT FOLDER HEAD [SOURCE=DIR...]
    python -I -S backscroll_hook.py SPOOL --work [SOURCE=DIR...]

The second form records a commit. Then it becomes the process that links commits, as the third form does,
unless one is running already.

Uses the standard library only, and little of it. It takes 16 ms of CPU time, and 32 ms with an event of
6 MB. It prints nothing and sends nothing. Contents of files, outputs of tools, the environment and e-mail
addresses are not recorded. The command line that runs it ignores its exit code; see `shell_command`.

Any number of processes append to ``events.jsonl``, each with one write per record. A sync renames the file
before it reads it. After the write, a record is repeated if the file was renamed in the meantime, because the
sync may have read it already. The id of the record identifies the repetition.
"""

from __future__ import annotations

import os
import sys
import time
from _json import encode_basestring_ascii, make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:  # `json`, `re` and `typing` would double the time of a start
    from typing import Any


ACTIVE_FILE = "events.jsonl"
MAX_FILE_BYTES = 4 * 1024 * 1024  # then the file is renamed and a new one begins
MAX_PAYLOAD_BYTES = 64 * 1024 * 1024
MAX_RECORD_BYTES = 64 * 1024
MAX_STRING_CHARS = 1000  # of a field
MAX_TEXT_CHARS = 16_000  # of a prompt, and of an answer that is in no transcript
MAX_DEPTH = 6
MAX_MEMBERS = 60  # of an object or a list
LONG_BYTES = 256 * 1024  # of a string that is not decoded
_MAX_QUOTES = 4_000
_MAX_BACKSLASHES = 64  # before a quote
_ATTEMPTS = 5
WORK = "--work"
LOCK_FILE = "hooks.lock"  # beside the spool; held by the process that processes commits
_SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"  # set by Claude Code 2.1.325 for the commands that it runs

_PROMPT = "prompt"
# Kept of a record that is too large.
_ESSENTIAL = {
    *("session_id", "conversation_id", "hook_event_name", "cursor_version", "tool_name", "tool_use_id"),
    *("cwd", "prompt"),
}
_ANSWERS = ("last_assistant_message", "text")
# Contents of files, outputs of tools and the environment. Only their length is recorded.
_BODIES = {
    *("content", "contents", "originalFile", "file_text", "structuredPatch", "edits", "old_line", "new_line"),
    *("old_string", "new_string", "oldString", "newString", "old_source", "new_source", "gitDiff", "patch"),
    *("stdout", "stderr", "output", "tool_output", "result_json", "compact_summary", "base64", "data"),
    *("env", "environment"),
}


def main() -> None:
    """Append an event from standard input, or a commit from the arguments, to the spool."""
    spool, *commit = sys.argv[1:]
    if not commit:
        append(spool, make_record(sys.stdin.buffer.read(MAX_PAYLOAD_BYTES)))
        return
    if commit[0] == WORK:
        start_worker(spool, commit[1:])
        return
    event, folder, head, *roots = commit
    if hasattr(os, "setsid") and os.getpid() != os.getpgrp():
        os.setsid()  # the end of the terminal does not end this process
    if append(spool, commit_record(event, folder, head)):
        start_worker(spool, roots)


def make_record(data: bytes) -> dict[str, Any]:
    """Return the record of an event. Data that is not a JSON object is recorded by its size."""
    record: dict[str, Any] = {"id": os.urandom(12).hex(), "at": time.time_ns() // 1_000_000}
    try:
        payload = decode(data)
    except (ValueError, RecursionError, StopIteration):
        payload = None
    if isinstance(payload, dict):
        return record | _reduce(payload)
    return record | {"unreadable": len(data)}


def commit_record(event: str, folder: str, head: str) -> dict[str, Any]:
    """Return the record of a commit. ``head`` is the output of ``git rev-parse HEAD --git-common-dir``."""
    sha, _, git_folder = head.strip("\n").partition("\n")
    commit = {
        "event": "post-rewrite" if event in ("amend", "rebase") else event,
        "folder": folder,
        "sha": sha,
        "git_folder": os.path.realpath(os.path.join(folder, git_folder)),
    }
    if session := os.environ.get(_SESSION_VARIABLE):
        commit["session_id"] = session
    return {"id": os.urandom(12).hex(), "at": time.time_ns() // 1_000_000, "commit": commit}


def start_worker(spool: str, roots: list[str]) -> None:
    """Replace this process by the one that processes commits; return if it is running already."""
    try:
        import fcntl  # not on Windows, where the next sync processes the commits
    except ImportError:
        return
    home = os.path.dirname(spool)
    lock = os.open(os.path.join(home, LOCK_FILE), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return  # the running process reads the record
    os.set_inheritable(lock, True)  # the lock is held until that process exits
    os.nice(19)
    os.chdir(home)
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    run = "from backscroll.history.commit_worker import main; main()"
    code = f"import sys; sys.path[0] = {package!r}; {run}"
    os.execv(sys.executable, [sys.executable, "-c", code, home, str(lock), *roots])


def _reduce(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a record that describe an event: its small fields, and its edits in lines."""
    reduced: dict[str, Any] = {"payload": {}}
    omitted: dict[str, int] = {}
    transcript = payload.get("transcript_path")
    is_in_transcript = isinstance(transcript, str) and bool(transcript) and os.path.exists(transcript)
    for name, value in payload.items():
        if name == _PROMPT or name in _ANSWERS:
            value = _text(value)
        if name == _PROMPT or (name in _ANSWERS and not is_in_transcript):
            if isinstance(value, str):
                reduced["payload"][name] = value[:MAX_TEXT_CHARS]
                if len(value) > MAX_TEXT_CHARS:
                    omitted[name] = len(value) - MAX_TEXT_CHARS
                continue
        elif name in _ANSWERS:
            omitted[name] = _length(value)
            continue
        kept = _small(name, value, name, 0, omitted)
        if kept is not None:
            reduced["payload"][name] = kept
    if edits := _edits(payload):
        reduced["edits"] = edits
    if omitted:
        reduced["omitted"] = omitted
    return reduced


def _small(name: str, value: Any, path: str, depth: int, omitted: dict[str, int]) -> Any:
    """Return a value without large and private parts; None if nothing is left."""
    if "email" in name.lower():
        return None
    if name in _BODIES and value is not None and not isinstance(value, bool | int | float):
        omitted[path] = _length(value)
        return None
    if isinstance(value, str | LongText):
        if isinstance(value, LongText) or len(value) > MAX_STRING_CHARS:
            omitted[path] = len(value)
            return None
        return None if _is_email(value) else value
    if isinstance(value, dict | list):
        if depth >= MAX_DEPTH or len(value) > MAX_MEMBERS:
            omitted[path] = _length(value)
            return None
        if isinstance(value, list):
            kept = [_small(name, item, f"{path}[]", depth + 1, omitted) for item in value]
            return [item for item in kept if item is not None]
        members = {
            str(key)[:MAX_STRING_CHARS]: _small(str(key), item, f"{path}.{key}"[:200], depth + 1, omitted)
            for key, item in value.items()
        }
        return {key: item for key, item in members.items() if item is not None}
    return value


def _is_email(value: str) -> bool:
    name, at, host = value.strip(" <>").partition("@")
    return bool(name and at) and "." in host and not (set(name) | set(host)) & set(" \t\n/@:")


def _length(value: Any) -> int:
    """Return the characters of a text, the bytes of a long one, or the number of elements."""
    return len(value) if isinstance(value, str | LongText | list | dict) else 1


def _text(value: Any) -> Any:
    """Return the text of a long string; other values as they are."""
    return value.text() if isinstance(value, LongText) else value


# Lines of edits -----------------------------------------------------------------------------------


def _edits(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Return path, added and removed lines of each edit that a payload reports as done."""
    response = payload.get("tool_response")
    if isinstance(response, dict) and isinstance(response.get("filePath"), str):
        return _patched(response)
    edits, path = payload.get("edits"), payload.get("file_path")
    if isinstance(edits, list) and isinstance(path, str):
        changes = [_changed_lines(edit.get("old_string"), edit.get("new_string")) for edit in _objects(edits)]
        counts = {"added": sum(added for added, _ in changes), "removed": sum(gone for _, gone in changes)}
        return [{"path": path, **counts}]
    return []


def _patched(response: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the edit in the result of a tool that writes a file."""
    patch = response.get("structuredPatch")
    added = removed = 0
    if isinstance(patch, list) and patch:
        for hunk in _objects(patch):
            lines = hunk.get("lines")
            marks = [line[:1] for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
            added += marks.count("+")
            removed += marks.count("-")
    elif isinstance(response.get("content"), str | LongText) and response.get("type") == "create":
        added = _count_lines(response["content"])
    else:
        return []
    kind = "create" if response.get("type") == "create" else "update"
    return [{"path": response["filePath"], "kind": kind, "added": added, "removed": removed}]


def _count_lines(text: str | LongText) -> int:
    if isinstance(text, LongText):
        return text.count_lines()
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def _objects(values: list[Any]) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)]


def _changed_lines(old: Any, new: Any) -> tuple[int, int]:
    """Return added and removed lines: all lines between the common start and the common end."""
    old, new = _text(old), _text(new)
    before = old.split("\n") if isinstance(old, str) and old else []
    after = new.split("\n") if isinstance(new, str) and new else []
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and before[start] == after[start]:
        start += 1
    end = 0
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return len(after) - start - end, len(before) - start - end


# The spool file -----------------------------------------------------------------------------------


def append(folder: str, record: dict[str, Any]) -> bool:
    """Append a record to the spool. Return False if it could not be written.

    The folder is created if its parent exists: after the archive was deleted, nothing is written any more.
    """
    line = _encode_line(record)
    path = os.path.join(folder, ACTIVE_FILE)
    for _ in range(_ATTEMPTS):
        try:
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except FileNotFoundError:
            _create(folder)
            continue
        try:
            if os.fstat(file).st_size >= MAX_FILE_BYTES:
                _seal(folder, path, record["id"])
                continue
            # A full disk can cut a record off. Every record starts with a line break, so that the next one
            # is complete.
            if os.write(file, line) == len(line) and _is_current(file, path):
                return True
        finally:
            os.close(file)
    return False


def _create(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:  # another process was faster
        return


def _seal(folder: str, path: str, record_id: str) -> None:
    try:
        os.rename(path, os.path.join(folder, sealed_name(record_id)))
    except FileNotFoundError:  # another process was faster
        return


def sealed_name(record_id: str) -> str:
    """Return a name for a file to which nothing more is added. Names sort by time."""
    return f"sealed-{time.time_ns():020d}-{record_id[:8]}.jsonl"


def _is_current(file: int, path: str) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _encode_line(record: dict[str, Any]) -> bytes:
    line = f"\n{encode(record)}\n".encode()
    if len(line) <= MAX_RECORD_BYTES or "payload" not in record:
        return line
    payload = {name: value for name, value in record["payload"].items() if name in _ESSENTIAL}
    rest = {"id": record["id"], "at": record["at"], "payload": payload, "omitted": {"": len(line)}}
    return f"\n{encode(rest)}\n".encode()


# JSON ---------------------------------------------------------------------------------------------


class LongText:
    """A long string, such as the content of a file. It is decoded only if its text is needed."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self._data = data
        self._start = start
        self._end = end

    def __len__(self) -> int:
        """Return the size as it was sent: bytes, with escape sequences."""
        return self._end - self._start

    def text(self) -> str:
        """Return the decoded text."""
        text: str = _scan(self._data[self._start - 1 : self._end + 1].decode("utf-8", "replace"))
        return text

    def count_lines(self) -> int:
        """Return the number of lines."""
        data, start, end = self._data, self._start, self._end
        # An escaped backslash before an "n", and unusual ways to write a newline.
        if any(data.find(part, start, end) >= 0 for part in (b"\\\\n", b"\\u000", b"\n")):
            text = self.text()
            return text.count("\n") + (not text.endswith("\n"))
        return data.count(b"\\n", start, end) + (not data.endswith(b"\\n", start, end))


class _ScannerOptions:
    """What the JSON scanner of the standard library asks of a decoder."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def decode(data: bytes) -> Any:
    """Decode a JSON document, with a `LongText` for a long string in an object.

    Raises `ValueError`, `RecursionError` or `StopIteration` if it is not JSON.
    """
    long = _find_long(data) if len(data) > LONG_BYTES else []
    key = os.urandom(12).hex()
    parts: list[bytes] = []
    end = 0
    for number, (start, following) in enumerate(long):
        parts += [data[end:start], f"{key}{number}".encode()]
        end = following
    if long:
        texts = {f"{key}{number}": LongText(data, *place) for number, place in enumerate(long)}
        value = _scan(_to_text(b"".join([*parts, data[end:]])))
        _replace(value, texts)
        return value
    return _scan(_to_text(data))


def _to_text(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")  # Cursor writes a byte order mark on Windows


def _scan(text: str) -> Any:
    text = text.strip()
    value, end = make_scanner(_ScannerOptions)(text, 0)  # type: ignore[arg-type]
    if end != len(text):
        raise ValueError(end)
    return value


def _find_long(data: bytes) -> list[tuple[int, int]]:
    """Return start and end of the long strings that are members of an object.

    The search stops after many quotes. The rest is decoded faster than searched.
    """
    found: list[tuple[int, int]] = []
    start, at = -1, -1  # of the open string, of the quote
    for _ in range(_MAX_QUOTES):
        at = data.find(b'"', at + 1)
        if at < 0:
            break
        if start < 0:
            start = at + 1
            continue
        before = data[max(start, at - _MAX_BACKSLASHES) : at]
        backslashes = len(before) - len(before.rstrip(b"\\"))
        if backslashes == _MAX_BACKSLASHES:
            break
        if backslashes % 2 == 0:
            if at - start > LONG_BYTES and data[start - 3 : start - 1].rstrip(b" ").endswith(b":"):
                found.append((start, at))
            start = -1
    return found


def _replace(value: Any, texts: dict[str, LongText]) -> None:
    """Replace the members of objects that stand for a long string."""
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, str):
                value[name] = texts.get(item, item)
            else:
                _replace(item, texts)
    elif isinstance(value, list):
        for item in value:
            if type(item) is not str:  # most are lines of a patch
                _replace(item, texts)


def encode(value: Any) -> str:
    """Encode a value as JSON in ASCII."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        members = ",".join([f"{encode(str(name))}:{encode(item)}" for name, item in value.items()])
        return f"{{{members}}}"
    if isinstance(value, list):
        return f"[{','.join(map(encode, value))}]"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "null"
    return repr(value)
