"""Edits, added lines and calls of `git commit` of all sessions, scanned once and kept in the archive."""

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from os.path import normpath
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from backscroll.archive.archive import Archive
from backscroll.archive.commits import NewScan, StoredScan
from backscroll.commits import shell
from backscroll.commits.lines import LINE_FORMAT, hash_lines, hash_text
from backscroll.commits.paths import normalize
from backscroll.commits.shell import (
    created_hashes,
    first_line,
    is_nothing_committed,
    named_hashes,
    parse_commit,
    shown_hashes,
)
from backscroll.model.dates import iso
from backscroll.model.message import Hunk, Message, ToolCall
from backscroll.model.sync import Progress

SCAN_VERSION = 8  # raise it if the result of a scan changes
_INFERRED_TIME_MS = 60_000  # an inferred time is that much earlier than stated, to come before the commit
_MAX_MESSAGE_BYTES = 10_000  # of a file that contains the message of a commit
_SUBAGENT_TOOLS = ("task", "agent")
_MAX_SUBAGENT_MS = 24 * 3600 * 1000  # of a call: the time of its result is not known
_MAX_IDLE_MS = 10 * 60 * 1000  # longer pauses divide the activity of a session
_BATCH_FRAGMENTS = 200  # fragments per transaction
_encoder = msgspec.msgpack.Encoder()
_NO_CALLS = _encoder.encode([])


class ScannedEdit(Struct, frozen=True, array_like=True, gc=False):
    """A file that was changed by one call."""

    position: int
    at: int | None  # milliseconds since 1970
    path: str  # empty if it is not known
    line_count: int  # added lines with a hash, also repeated ones
    is_shell: bool  # the content of the change is not known
    is_script: bool = False  # only some of the lines are those of the file


class CommitCall(Struct, frozen=True, array_like=True, gc=False):
    """A call that creates commits."""

    position: int
    at: int | None  # milliseconds since 1970
    until: int | None  # time of the next message
    subjects: tuple[str, ...]
    hashes: tuple[str, ...]  # of the commits that git reports as created
    is_report: bool = False  # of a subagent: the hashes are those that it names
    shown: tuple[str, ...] = ()  # hashes that git printed after the commit; some can be of older commits
    folder: str = ""  # in which git ran; empty if it is not known
    is_merge: bool = False  # it ran only `git merge`


class CommitResult(NamedTuple):
    """Message and result of a call that creates commits. See `CommitCall`."""

    subjects: tuple[str, ...]
    hashes: tuple[str, ...]
    shown: tuple[str, ...] = ()
    folder: str = ""  # that the command names; it can be relative
    is_merge: bool = False


class FragmentScan(Struct, array_like=True):
    """Edits and commits of a fragment. The hashes of added lines are stored apart."""

    edits: list[ScannedEdit] = msgspec.field(default_factory=list)
    calls: list[CommitCall] = msgspec.field(default_factory=list)
    folders: list[str] = msgspec.field(default_factory=list)
    branches: list[str] = msgspec.field(default_factory=list)
    activity: list[tuple[int, int]] = msgspec.field(default_factory=list)  # start and end, milliseconds
    has_inferred_times: bool = False  # of calls

    @property
    def first_at(self) -> int | None:
        """Return the time of the first edit or commit; 0 if one has no time, None if there is none."""
        times = [edit.at or 0 for edit in self.edits] + [call.at or 0 for call in self.calls]
        return min(times, default=None)


class _StoredScan(msgspec.Struct, array_like=True):
    """A `FragmentScan` whose edits are decoded on first use: most do not concern a new commit."""

    edits: msgspec.Raw
    calls: list[CommitCall]
    folders: list[str]
    branches: list[str]
    activity: list[tuple[int, int]]
    has_inferred_times: bool = False


_decoder = msgspec.msgpack.Decoder(_StoredScan)


_edits_decoder = msgspec.msgpack.Decoder(list[ScannedEdit])


class FragmentWork:
    """Edits of one fragment and the hashes of the lines that they add."""

    def __init__(self, id_: int, scan: _StoredScan, line_hashes: bytes, *, agent_id: str | None) -> None:
        self.id = id_
        self.agent_id = agent_id  # of a subagent
        self._encoded_edits = scan.edits
        self._first_at = scan.activity[0][0] if scan.activity else 0
        self._last_at = scan.activity[-1][1] if scan.activity else 0
        self._line_hashes = line_hashes

    @cached_property
    def edits(self) -> list[ScannedEdit]:
        return _edits_decoder.decode(self._encoded_edits)

    def is_active(self, since: int, until: int) -> bool:
        """Return False if no message, and so no edit, is from this period, in milliseconds."""
        return self._first_at <= until and since <= self._last_at

    def names(self, name: str) -> bool:
        """Return False if no edit has a path with this name."""
        return name.encode() in bytes(self._encoded_edits)

    def lines(self) -> "array[int]":
        """Return the hashes of all edits, in order."""
        return array(LINE_FORMAT, self._line_hashes)


class SessionWork:
    """Edits, commits, folders and times of a session, with those of its subagents."""

    def __init__(self, number: int, ref: str, session_id: str, workspace_path: str | None) -> None:
        self.number = number
        self.ref = ref
        self.id = session_id
        self.folders: set[str] = {normalize(workspace_path)} if workspace_path else set()
        self.branches: set[str] = set()
        self.activity: list[tuple[int, int]] = []
        self.has_inferred_times = False
        self.calls: list[CommitCall] = []
        self.fragments: list[FragmentWork] = []

    @property
    def edited_paths(self) -> Iterator[str]:
        """Yield the paths of all edits, also repeatedly."""
        return (normalize(edit.path) for fragment in self.fragments for edit in fragment.edits if edit.path)


def update_scans(archive: Archive, progress: Progress | None = None) -> None:
    """Scan the fragments that have changed since the last scan."""
    outdated = archive.edit_scans.outdated(SCAN_VERSION)
    batch: list[NewScan] = []
    for done, state in enumerate(outdated, start=1):
        scan, hashes = _scan_messages(
            archive.edit_scans.tool_messages(state.fragment_id),
            archive.edit_scans.message_times(state.fragment_id),
        )
        batch.append(NewScan(state, scan.first_at, _encoder.encode(scan), hashes))
        if len(batch) == _BATCH_FRAGMENTS or done == len(outdated):
            archive.edit_scans.put(batch, SCAN_VERSION)
            batch = []
            if progress is not None:
                progress(done, len(outdated))


def load_sessions(
    archive: Archive, fragment_ids: Collection[int] | None = None, session_ids: Collection[str] = ()
) -> list[SessionWork]:
    """Return all sessions with edits or commits, in order.

    With ``fragment_ids``, only those that have one of the fragments, and those in ``session_ids``.
    """
    return _group_scans(archive.edit_scans.load(fragment_ids, session_ids))


def active_sessions(archive: Archive, since: datetime, until: datetime) -> list[SessionWork]:
    """Return the sessions that were active in a period, also those without edits."""
    return _group_scans(archive.edit_scans.active_between(iso(since) or "", iso(until) or ""))


def _group_scans(scans: Iterable[StoredScan]) -> list[SessionWork]:
    sessions: dict[tuple[str, str], SessionWork] = {}
    for stored in scans:
        key = stored.platform, stored.session_id
        session = sessions.get(key)
        if session is None:
            ref = f"{stored.source}:{stored.session_id}"
            session = sessions[key] = SessionWork(
                stored.number, ref, stored.session_id, stored.workspace_path
            )
        scan = _decoder.decode(stored.body)
        session.fragments.append(
            FragmentWork(stored.fragment_id, scan, stored.line_hashes, agent_id=stored.agent_id)
        )
        session.folders.update(map(normalize, scan.folders))
        session.branches.update(scan.branches)
        session.activity += scan.activity
        session.has_inferred_times = session.has_inferred_times or scan.has_inferred_times
        session.calls += scan.calls
    for session in sessions.values():
        session.activity.sort()
    return list(sessions.values())


def calls_with_hashes(archive: Archive) -> dict[str, list[CommitCall]]:
    """Return the calls of which git printed the new commits, by folder."""
    found: dict[str, list[CommitCall]] = defaultdict(list)
    without_folder: dict[int, list[CommitCall]] = {}
    for fragment_id, body, _ in archive.edit_scans.contents():
        if not scan_times(body)[2]:
            continue
        for call in _decoder.decode(body).calls:
            if call.hashes and not call.is_report:
                if call.folder:
                    found[normalize(call.folder)].append(call)
                else:
                    without_folder.setdefault(fragment_id, []).append(call)
    if without_folder:
        for scan in archive.edit_scans.load([*without_folder]):
            if scan.workspace_path:
                found[normalize(scan.workspace_path)] += without_folder.get(scan.fragment_id, [])
    return found


class _ScanTimes(msgspec.Struct, array_like=True):
    """A `FragmentScan` of which only the times are decoded."""

    edits: msgspec.Raw
    calls: msgspec.Raw
    folders: msgspec.Raw
    branches: msgspec.Raw
    activity: list[tuple[int, int]]


_times_decoder = msgspec.msgpack.Decoder(_ScanTimes)


def scan_times(body: bytes) -> tuple[int, int, bool]:
    """Return the first and last activity of a scan in milliseconds, 0 if unknown, and if it has commits."""
    scan = _times_decoder.decode(body)
    has_calls = bytes(scan.calls) != _NO_CALLS
    return (scan.activity[0][0], scan.activity[-1][1], has_calls) if scan.activity else (0, 0, has_calls)


def _scan_messages(
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
        if message.kind == "report" and times and (named := named_hashes(message.content)):
            scan.calls.append(CommitCall(position, times[0][1], at, (), named, is_report=True))
        if tool is None:
            continue
        scan.has_inferred_times = scan.has_inferred_times or message.has_inferred_time
        if message.cwd:
            folders[message.cwd] = None
        if message.git_branch:
            branches[message.git_branch] = None
        if (
            tool.name.lower() in _SUBAGENT_TOOLS
            and at is not None
            and (named := named_hashes(tool.result or ""))
        ):
            scan.calls.append(CommitCall(position, at, at + _MAX_SUBAGENT_MS, (), named, is_report=True))
        for path, text, is_shell, is_script in edit_texts(tool):
            lines = hash_text(text)
            scan.edits.append(ScannedEdit(position, at, path, len(lines), is_shell, is_script))
            hashes.extend(lines)
            if lines and len(text) <= _MAX_MESSAGE_BYTES:
                files[path] = text
        call = commit_call(tool, files)
        if call is not None:
            following = bisect_right(positions, position)
            until = times[following][1] if following < len(times) else None
            scan.calls.append(
                CommitCall(
                    *(position, at, until, call.subjects, call.hashes),
                    shown=call.shown,
                    folder=_folder(message.cwd, call.folder),
                    is_merge=call.is_merge,
                )
            )
    scan.folders, scan.branches = list(folders), list(branches)
    return scan, hashes.tobytes()


def message_edits(tool: ToolCall) -> Iterator[tuple[str, "array[int]", bool]]:
    """Yield path, hashes of added lines and whether only the path is known, of the changes of a call."""
    for path, text, is_shell, _ in edit_texts(tool):
        yield path, hash_lines([text]), is_shell


class EditedFile(NamedTuple):
    """A change of a file by a call."""

    path: str
    text: bytes  # that it adds
    is_shell: bool  # only the path is known
    is_script: bool = False  # only some of the lines are those of the file


def edit_texts(tool: ToolCall) -> Iterator[EditedFile]:
    """Yield the changes of a call."""
    if tool.status in ("failed", "cancelled") or tool.decision == "rejected":
        return
    for edit in tool.edits:
        text = "\n".join(line for hunk in edit.hunks for line in _added(hunk)).encode("utf-8", "replace")
        is_unknown = not text.strip() and not any(hunk.removed for hunk in edit.hunks)
        yield EditedFile(edit.path, text, is_unknown)
    command = "" if tool.edits else _command(tool)
    if not command:
        return
    written = set()
    for path, content, is_script in shell.written_texts(command):
        written.add(path)
        yield EditedFile(path, content.encode("utf-8", "replace"), False, is_script)
    for path in shell.changed_paths(command):
        if path not in written:
            yield EditedFile(path, b"", True)


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


def _folder(cwd: str | None, folder: str) -> str:
    """Return the folder of a command that names one, empty if it is not known."""
    folder = str(Path(folder).expanduser()) if folder.startswith("~") else folder
    is_absolute = folder.startswith("/") or folder[1:2] == ":"
    if not folder or is_absolute:
        return folder or cwd or ""
    return normpath(f"{cwd}/{folder}") if cwd else ""


def commit_call(tool: ToolCall, files: Mapping[str, bytes] | None = None) -> CommitResult | None:
    """Return the message and the result of a call that creates commits, None for other calls.

    ``files`` are texts that the session wrote before, by path: one can be the message.
    """
    output = tool.result or ""
    hashes = tuple(created_hashes(output))
    if not hashes and (tool.status in ("failed", "cancelled") or is_nothing_committed(output)):
        return None
    command = _command(tool)
    if not command:
        message = tool.params.get("message")  # of a git server
        if "commit" not in tool.name.lower() or not isinstance(message, str):
            return None
        return CommitResult((first_line(message),), hashes, named_hashes(output)[:1])
    parsed = parse_commit(command)
    if parsed is None:
        return None
    subjects = parsed.subjects
    if not subjects and files:
        texts = (files.get(path, b"") for path in parsed.message_files)
        subjects = [subject for text in texts if (subject := first_line(text.decode("utf-8", "replace")))]
    shown = tuple(shown_hashes(output)) if parsed.shows_head else ()
    return CommitResult(tuple(subjects), hashes, shown, parsed.folder, parsed.is_merge)


def _intervals(times: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    intervals: list[tuple[int, int]] = []
    for at in sorted(at for _, at in times):
        if intervals and at - intervals[-1][1] <= _MAX_IDLE_MS:
            intervals[-1] = (intervals[-1][0], at)
        else:
            intervals.append((at, at))
    return intervals
