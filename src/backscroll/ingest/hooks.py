"""Move the records of hooks from the spool into the archive, and find commits that no hook reported.

The file that hooks append to is renamed before it is read. A record that is written at this moment is
repeated by the hook in a new file, under the same id. A file is deleted after its records are stored. So a
record can be read twice, but neither lost nor stored twice. `hook_payloads` says what is stored of an event.

Git runs no hook for merges, `git am` and `git rebase --apply`, and other programs run none at all. The reflog
changes with every commit. A repository whose reflog has not changed costs one stat per checkout.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from backscroll import sources
from backscroll.errors import RepositoryError
from backscroll.ingest.hook_payloads import parse_payload
from backscroll.model.hook import HookCommit, HookRecord
from backscroll.model.message import Message
from backscroll.model.store import HOOK_RECORDS, Unit
from backscroll.model.workspace import Workspace

if TYPE_CHECKING:
    from backscroll.archive.archive import Archive
    from backscroll.archive.session_key import SessionKey
    from backscroll.archive.write.exclusions import Exclusions
    from backscroll.sources import Source
    from backscroll.sources.capabilities import Hooks


ACTIVE_FILE = "events.jsonl"  # as in hooks/event_recorder.py
SETTLE_SECONDS = 10.0  # a file that ends with an incomplete line and is not older may still be written
BATCH_BYTES = 4 * 1024 * 1024  # read at once, plus one line; a line has up to 64 MB
UNREADABLE = "unreadable"
_EVENT = re.compile(rb'\s*\{"id":"(?P<id>[0-9a-f]{1,64})","at":(?P<at>[0-9]{1,15}),"payload":')
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OVERLAP_SECONDS = 120  # clocks may differ, and the time of a commit is set before it is made


def ingest_hook_records(archive: Archive, spool: Path) -> int:
    """Store what hooks recorded, and the commits that no hook reported. Return the number of records."""
    return _ingest_spool(archive, spool) + _find_new_commits(archive)


def _ingest_spool(archive: Archive, folder: Path) -> int:
    """Store all records of the spool, then write them to the fragments of their sessions.

    Return the number of new records, without those that cannot be parsed.
    """
    count = sum([_store(archive, file) for file in _seal(folder)])
    for source_name, session in archive.hooks.events.unread_sessions():
        _write_fragments(archive, sources.named(source_name), session, folder)
    return count


def _seal(folder: Path) -> list[Path]:
    """Rename the active file, so that nothing is added to it. Return all renamed files, oldest first."""
    names = [entry.name for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
    if ACTIVE_FILE in names:
        name = f"sealed-{time.time_ns():020d}-{os.getpid()}.jsonl"
        with suppress(FileNotFoundError):  # a hook has just renamed it; the next sync reads it
            (folder / ACTIVE_FILE).rename(folder / name)
            names.append(name)
    return [folder / name for name in sorted(names) if name.startswith("sealed-") and name.endswith(".jsonl")]


def _store(archive: Archive, file: Path) -> int:
    """Store the records of a file in batches, then delete it. Return the number of new, valid records."""
    count = 0
    exclusions = archive.units.exclusions
    excluded: set[tuple[str | None, str | None]] = set()
    is_settled = time.time() - file.stat().st_mtime > SETTLE_SECONDS
    is_stored = True
    with file.open("rb") as lines:
        while batch := lines.readlines(BATCH_BYTES):
            # An incomplete line at the end is stored in a later sync, if it is still there.
            is_stored = is_settled or batch[-1].endswith(b"\n")
            commits: list[HookCommit] = []
            events: list[tuple[HookRecord, dict[str, Any]]] = []
            for line in batch if is_stored else batch[:-1]:
                if (commit := _parse_commit(line)) is not None:
                    commits.append(commit)
                elif not line.isspace():
                    events.append(parse_event(line))
            records = _allowed(events, exclusions, excluded)
            archive.hooks.events.add(record for record in records if record.name == UNREADABLE)
            count += archive.hooks.events.add(record for record in records if record.name != UNREADABLE)
            count += archive.hooks.commits.add(
                [one for one in commits if not exclusions.is_excluded(Workspace(one.folder))]
            )
    if is_stored:
        file.unlink()
    return count


class _CommitFields(msgspec.Struct):
    event: str
    folder: str
    sha: str
    git_folder: str
    session_id: str | None = None


class _CommitRecord(msgspec.Struct):
    at: int
    commit: _CommitFields


def _parse_commit(line: bytes) -> HookCommit | None:
    """Return the commit in a line of the spool; None if it is the record of something else."""
    if _EVENT.match(line):
        return None
    try:
        record = msgspec.json.decode(line, type=_CommitRecord)
    except (msgspec.DecodeError, RecursionError):
        return None
    commit = record.commit
    if not _SHA.fullmatch(commit.sha) or not _is_time(record.at):
        return None
    return HookCommit(
        repository=commit.git_folder,
        sha=commit.sha,
        at=record.at,
        folder=commit.folder,
        event=commit.event,
        session_id=commit.session_id,
    )


def parse_event(line: bytes) -> tuple[HookRecord, dict[str, Any]]:
    """Return a line of the spool as a record, and what is kept of its payload.

    The payload is decoded on its own: one that is not JSON cannot change the rest of the record. An invalid
    line is a record of its own.
    """
    found = _EVENT.match(line)
    body = parse_payload(line[found.end() :].rstrip().removesuffix(b"}")) if found else None
    if found is None or body is None or not _is_time(at := int(found["at"])):
        return _unreadable(line), {}
    payload = body["payload"]
    name = payload.get("hook_event_name")
    owner, session_id = _session(payload)
    record = HookRecord(
        id=found["id"].decode(),
        at=at,
        name=name if isinstance(name, str) and name else "unknown",
        body=msgspec.json.encode(body),
        source=owner.name if owner else None,
        platform=owner.platform if owner else None,
        session_id=session_id,
    )
    return record, payload


def _session(payload: dict[str, Any]) -> tuple[Source, str] | tuple[None, None]:
    for source, hooks in _hook_sources():
        if (session_id := hooks.hook_session(payload)) is not None:
            return source, session_id
    return None, None


def _is_time(ms: int) -> bool:
    return 0 < ms < 1 << 48


def _unreadable(line: bytes) -> HookRecord:
    """Return a record for a line that is not valid. Its id is a hash, so that it is stored once.

    Its text is not stored: it could be private.
    """
    return HookRecord(
        id=blake2b(line, digest_size=12).hexdigest(),
        at=0,
        name=UNREADABLE,
        body=msgspec.json.encode({"payload": {"bytes": len(line)}}),
    )


def _hook_sources() -> Iterator[tuple[Source, Hooks]]:
    for source in map(sources.named, sources.names()):
        if (hooks := source.hooks()) is not None:
            yield source, hooks


def _allowed(
    records: list[tuple[HookRecord, dict[str, Any]]],
    exclusions: Exclusions,
    excluded: set[tuple[str | None, str | None]],
) -> list[HookRecord]:
    """Return the records of sessions that are neither forgotten nor in an excluded workspace.

    Sessions in an excluded workspace are added to ``excluded``.
    """
    owners = {source.name: hooks for source, hooks in _hook_sources()}
    for record, payload in records:
        if record.source is not None and exclusions.is_excluded(
            owners[record.source].hook_workspace(payload)
        ):
            excluded.add((record.platform, record.session_id))
    hidden = excluded | exclusions.forgotten
    return [record for record, _ in records if (record.platform, record.session_id) not in hidden]


def _write_fragments(archive: Archive, source: Source, session: SessionKey, folder: Path) -> None:
    """Write all events of a session as two units: messages, and token counts."""
    hooks = source.hooks()
    assert hooks is not None
    events = archive.hooks.events.of_session(session)
    fingerprint = f"{len(events)} {events[-1].id}"
    read = hooks.read_hook_events(session.id, events)
    if archive.hooks.events.has_other_content(session):
        # Only facts about the session are needed: 3,000 events would take 0.2 s with every new one.
        read = (item for item in read if not isinstance(item, Message))
    for name, items in (
        ("events", read),
        ("usage", hooks.hook_usage(session.id, events)),
    ):
        stream = list(items)
        if not stream:
            continue
        unit = Unit(
            source=source.name,
            root=str(folder),
            path=str(folder / name),
            key=session.id,
            fingerprint=fingerprint,
            size=len(events),
            kind=HOOK_RECORDS.name,
            session_id=session.id,
        )
        archive.units.put(unit, source.platform, stream, event="grew")
    archive.hooks.events.mark_read(session)


def _find_new_commits(archive: Archive) -> int:
    """Add the commits that repositories with the hook got since they were last checked."""
    count = 0
    for path, known in archive.hooks.commits.repositories().items():
        checked, _, before = known.partition(" ")
        reflogs = _reflogs(path)
        if not reflogs or reflogs == before:
            continue
        current = repository_fingerprint(Path(path))
        if checked:  # otherwise it has been known only since now
            seconds, _, head = checked.partition(":")
            commits = _commits_since(Path(path), int(seconds) - _OVERLAP_SECONDS, head)
            exclusions = archive.units.exclusions
            count += archive.hooks.commits.add(
                [one for one in commits if not exclusions.is_excluded(Workspace(one.folder))]
            )
        archive.hooks.commits.set_fingerprint(path, current)
    return count


def repository_fingerprint(git_folder: Path) -> str:
    """Return time, HEAD and reflogs: a later sync looks for commits that were made since."""
    from backscroll.git.process import decode, output_or_empty  # start-up time

    head = decode(output_or_empty(git_folder, "rev-parse", "--quiet", "--verify", "HEAD")).strip()
    return f"{int(time.time())}:{head} {_reflogs(str(git_folder))}"


def _reflogs(git_folder: str) -> str:
    """Return sizes and times of the reflogs of all checkouts; empty if there are none."""
    folders = [git_folder]
    with suppress(OSError):
        folders += [entry.path for entry in os.scandir(os.path.join(git_folder, "worktrees"))]  # noqa: PTH118
    states = []
    for folder in sorted(folders):
        try:
            state = os.stat(os.path.join(folder, "logs", "HEAD"))  # noqa: PTH116, PTH118
        except OSError:
            continue
        states.append(f"{state.st_size}:{state.st_mtime_ns}")
    return ",".join(states)


def _commits_since(git_folder: Path, seconds: int, head: str) -> list[HookCommit]:
    """Return the commits of branches and HEAD since a time, except merges and those that a head contains."""
    from backscroll.git import process, repository  # start-up time

    try:
        known = [f"^{head}"] if head and repository.known_commits(git_folder, [head]) else []
        output = process.run_git(
            git_folder,
            "log",
            "--branches",
            "HEAD",
            *known,
            "--no-merges",
            f"--since=@{seconds}",
            "--format=%H %ct",
        )
        checkout = process.decode(
            process.run_git(git_folder, "worktree", "list", "--porcelain")
        ).splitlines()[:1]
    except RepositoryError:
        return []  # it has no commit yet, or it is damaged
    folder = checkout[0].removeprefix("worktree ") if checkout else str(git_folder)
    return [
        HookCommit(repository=str(git_folder), sha=sha, at=int(at) * 1000, folder=folder, event="found")
        for sha, at in (line.split() for line in process.decode(output).splitlines())
    ]
