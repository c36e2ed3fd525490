"""Scan the messages of a fragment for edits, added lines and calls of `git commit`."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.commits import shell
from backscroll.commits.lines import LINE_FORMAT, hash_lines
from backscroll.model import Hunk, Message, ToolCall

__all__ = [
    "SCAN_VERSION",
    "CommitCall",
    "FragmentScan",
    "ScannedEdit",
    "commit_call",
    "edit_texts",
    "message_edits",
    "scan_messages",
]

SCAN_VERSION = 4  # raise it if the result of a scan changes
_INFERRED_TIME_MS = 60_000  # an inferred time is that much earlier than stated, to come before the commit
_MAX_MESSAGE_BYTES = 10_000  # of a file that contains the message of a commit
_SUBAGENT_TOOLS = ("task", "agent")
_MAX_SUBAGENT_MS = 24 * 3600 * 1000  # of a call: the time of its result is not known
_MAX_IDLE_MS = 10 * 60 * 1000  # longer pauses divide the activity of a session


class ScannedEdit(Struct, frozen=True, array_like=True, gc=False):
    """A file that was changed by one call."""

    position: int
    at: int | None  # milliseconds since 1970
    path: str  # empty if it is not known
    line_count: int  # distinct added lines
    is_shell: bool  # the content of the change is not known


class CommitCall(Struct, frozen=True, array_like=True, gc=False):
    """A call that creates commits."""

    position: int
    at: int | None  # milliseconds since 1970
    until: int | None  # time of the next message
    subjects: tuple[str, ...]
    hashes: tuple[str, ...]  # as git printed them
    is_report: bool = False  # of a subagent: the hashes are those that it names


class FragmentScan(Struct, array_like=True):
    """Edits and commits of a fragment. The hashes of added lines are stored apart."""

    edits: list[ScannedEdit] = msgspec.field(default_factory=list)
    calls: list[CommitCall] = msgspec.field(default_factory=list)
    folders: list[str] = msgspec.field(default_factory=list)
    branches: list[str] = msgspec.field(default_factory=list)
    activity: list[tuple[int, int]] = msgspec.field(default_factory=list)  # start and end, milliseconds

    @property
    def first_at(self) -> int | None:
        """Return the time of the first edit or commit; 0 if one has no time, None if there is none."""
        times = [edit.at or 0 for edit in self.edits] + [call.at or 0 for call in self.calls]
        return min(times, default=None)


def scan_messages(
    messages: Iterable[tuple[int, Message]], times: Sequence[tuple[int, int]]
) -> tuple[FragmentScan, bytes]:
    """Return the scan of tool calls, and the hashes of the added lines.

    ``times`` are position and time of all messages.
    """
    scan = FragmentScan(activity=_intervals(times))
    hashes = array(LINE_FORMAT)
    folders: dict[str, None] = {}
    branches: dict[str, None] = {}
    positions = [position for position, _ in times]
    files: dict[str, bytes] = {}  # that may be messages of commits
    for position, message in messages:
        tool = message.tool
        at = _milliseconds(message)
        if message.kind == "report" and times and (named := shell.named_hashes(message.content)):
            scan.calls.append(CommitCall(position, times[0][1], at, (), named, is_report=True))
        if tool is None:
            continue
        if message.cwd:
            folders[message.cwd] = None
        if message.git_branch:
            branches[message.git_branch] = None
        if (
            tool.name.lower() in _SUBAGENT_TOOLS
            and at is not None
            and (named := shell.named_hashes(tool.result or ""))
        ):
            scan.calls.append(CommitCall(position, at, at + _MAX_SUBAGENT_MS, (), named, is_report=True))
        for path, text, is_shell in edit_texts(tool):
            lines = hash_lines([text])
            scan.edits.append(ScannedEdit(position, at, path, len(lines), is_shell))
            hashes.extend(lines)
            if lines and len(text) <= _MAX_MESSAGE_BYTES:
                files[path] = text
        call = commit_call(tool, files)
        if call is not None:
            following = bisect_right(positions, position)
            until = times[following][1] if following < len(times) else None
            scan.calls.append(CommitCall(position, at, until, *call))
    scan.folders, scan.branches = list(folders), list(branches)
    return scan, hashes.tobytes()


def message_edits(tool: ToolCall) -> Iterator[tuple[str, "array[int]", bool]]:
    """Yield path, hashes of added lines and whether only the path is known, of the changes of a call."""
    for path, text, is_shell in edit_texts(tool):
        yield path, hash_lines([text]), is_shell


def edit_texts(tool: ToolCall) -> Iterator[tuple[str, bytes, bool]]:
    """Yield path, added text and whether only the path is known, of the changes of a call."""
    if tool.status in ("failed", "cancelled") or tool.decision == "rejected":
        return
    for edit in tool.edits:
        text = "\n".join(line for hunk in edit.hunks for line in _added(hunk)).encode("utf-8", "replace")
        yield edit.path, text, not text.strip() and not any(hunk.removed for hunk in edit.hunks)
    command = "" if tool.edits else _command(tool)
    if not command:
        return
    written = set()
    for path, content in shell.written_texts(command):
        written.add(path)
        yield path, content.encode("utf-8", "replace"), False
    for path in shell.changed_paths(command):
        if path not in written:
            yield path, b"", True


def _added(hunk: Hunk) -> Iterable[str]:
    """Return the new lines. A replacement of text, without line numbers, can contain unchanged lines."""
    if not hunk.removed or hunk.old_start is not None:
        return hunk.added
    removed = set(hunk.removed)
    return (line for line in hunk.added if line not in removed)


def _milliseconds(message: Message) -> int | None:
    if message.timestamp is None:
        return None
    at = int(message.timestamp.timestamp() * 1000)
    return at if message.timestamp_source == "stored" else at - _INFERRED_TIME_MS


def _command(tool: ToolCall) -> str:
    command: Any = tool.params.get("command")
    if isinstance(command, list):
        return " ".join(part for part in command if isinstance(part, str))
    return command if isinstance(command, str) else ""


def commit_call(
    tool: ToolCall, files: Mapping[str, bytes] | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the subjects and printed hashes of a call that creates commits.

    ``files`` are texts that the session wrote before, by path: one can be the message.
    """
    if tool.status in ("failed", "cancelled") and "] " not in (tool.result or ""):
        return None
    command = _command(tool)
    if command:
        if not shell.is_commit(command):
            return None
        subjects = shell.commit_subjects(command)
        if not subjects and files:
            texts = (files.get(path, b"") for path in shell.message_files(command))
            subjects = [
                subject for text in texts if (subject := shell.first_line(text.decode("utf-8", "replace")))
            ]
    else:
        message = tool.params.get("message")  # of a git server
        if "commit" not in tool.name.lower() or not isinstance(message, str):
            return None
        subjects = [message.strip().partition("\n")[0].strip()]
    return tuple(subjects), tuple(shell.printed_hashes(tool.result or ""))


def _intervals(times: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    intervals: list[tuple[int, int]] = []
    for at in sorted(at for _, at in times):
        if intervals and at - intervals[-1][1] <= _MAX_IDLE_MS:
            intervals[-1] = (intervals[-1][0], at)
        else:
            intervals.append((at, at))
    return intervals
