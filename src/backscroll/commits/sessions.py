"""The scans of all sessions, kept up to date in the archive."""

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import cached_property

import msgspec

from backscroll.archive import Archive
from backscroll.archive.commits.edit_scans import NewScan
from backscroll.commits.lines import LINE_FORMAT
from backscroll.commits.paths import normalize
from backscroll.commits.scan import SCAN_VERSION, CommitCall, ScannedEdit, scan_messages

__all__ = [
    "FragmentWork",
    "SessionWork",
    "calls_with_hashes",
    "load_sessions",
    "scan_times",
    "update_scans",
]

_BATCH = 200  # fragments per transaction
_encoder = msgspec.msgpack.Encoder()

Progress = Callable[[int, int], None]  # done, total


class _StoredScan(msgspec.Struct, array_like=True):
    """A `FragmentScan` whose edits are decoded on first use: most do not concern a new commit."""

    edits: msgspec.Raw
    calls: list[CommitCall]
    folders: list[str]
    branches: list[str]
    activity: list[tuple[int, int]]


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
        scan, hashes = scan_messages(
            archive.edit_scans.tool_messages(state.fragment_id),
            archive.edit_scans.message_times(state.fragment_id),
        )
        batch.append(NewScan(state, scan.first_at, _encoder.encode(scan), hashes))
        if len(batch) == _BATCH or done == len(outdated):
            archive.edit_scans.put(batch, SCAN_VERSION)
            batch = []
            if progress is not None:
                progress(done, len(outdated))


class _ScanTimes(msgspec.Struct, array_like=True):
    """A `FragmentScan` of which only the times are decoded."""

    edits: msgspec.Raw
    calls: msgspec.Raw
    folders: msgspec.Raw
    branches: msgspec.Raw
    activity: list[tuple[int, int]]


_times_decoder = msgspec.msgpack.Decoder(_ScanTimes)
_NO_CALLS = _encoder.encode([])


def scan_times(body: bytes) -> tuple[int, int, bool]:
    """Return the first and last activity of a scan in milliseconds, 0 if unknown, and if it has commits."""
    scan = _times_decoder.decode(body)
    has_calls = bytes(scan.calls) != _NO_CALLS
    return (scan.activity[0][0], scan.activity[-1][1], has_calls) if scan.activity else (0, 0, has_calls)


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


def load_sessions(
    archive: Archive, fragment_ids: Collection[int] | None = None, session_ids: Collection[str] = ()
) -> list[SessionWork]:
    """Return all sessions with edits or commits, in order.

    With ``fragment_ids``, only those that have one of the fragments, and those in ``session_ids``.
    """
    sessions: dict[tuple[str, str], SessionWork] = {}
    for stored in archive.edit_scans.load(fragment_ids, session_ids):
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
        session.calls += scan.calls
    for session in sessions.values():
        session.activity.sort()
    return list(sessions.values())
