"""Audit of the tools' files: every record once, parsed, ignored or a problem. Nothing is stored."""

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from backscroll.model.message import Message, Origin
from backscroll.model.problem import Audit, AuditedRoot, Problem, SourceCounts
from backscroll.model.store import Unit, store_content, store_rank
from backscroll.model.stream import Closing, Opening, RecordCounts, Replacement
from backscroll.readers.files import escape_name, is_entry_denied, is_folder
from backscroll.readers.json_outline import Outline
from backscroll.readers.read_faults import read_fault
from backscroll.sources import Source
from backscroll.sources.protocols import RawRecords, Watchable, close
from backscroll.stores.stores import Stores

Progress = Callable[[int, int], None]  # estimated bytes: read, and in total

_MAX_FOLDER_DEPTH = 6  # a subagent of a workflow: project, session, subagents, workflows, name
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

_Key = tuple[str, bool]  # id, and whether it is a subagent. A resumed session repeats inlined subagents.


class SourceFiles:
    """Audit of the tools' files, and its stored counts."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def audit(self, progress: Progress | None = None) -> Audit:
        """Parse every record of every root and return the counts and problems."""
        return audit(self._stores.roots(), progress)

    def counts(self) -> list[SourceCounts]:
        """Return the counts of every root as of the last sync, existing or not. Reads no file of a tool.

        They equal those of `audit` if nothing has changed since.
        """
        stored = self._stores.archive.maintenance.source_counts()
        found: list[SourceCounts] = []
        for source, root in self._stores.roots():
            counts = stored.pop((source.name, str(root)), None)
            counts = counts or SourceCounts(source=source.name, path=str(root))
            counts.exists = is_entry_denied(root) or root.is_dir()
            found.append(counts)
        return found + list(stored.values())  # roots that are no longer read

    def problems(self, limit: int) -> tuple[int, list[Problem]]:
        """Return the number of problems as of the last sync, and the first ones."""
        return self._stores.archive.maintenance.current_problems(limit)

    def irregular_files(self) -> list[Problem]:
        """Return the folders, pipes and broken links that have the name of a session file."""
        found: list[Problem] = []
        for source, root in self._stores.roots():
            if not is_entry_denied(root):
                found += _irregular_files(source, root)
        return found

    def outlines(self) -> dict[str, dict[str, Outline]]:
        """Return keys and types of every record type, by source, without any value."""
        found: dict[str, dict[str, Outline]] = {}
        for source, root in self._stores.roots():
            kinds = found.setdefault(source.name, {})
            if not isinstance(source, RawRecords) or is_entry_denied(root) or not root.is_dir():
                continue
            for unit in source.units(root):
                for kind, document in source.raw_records(unit):
                    kinds.setdefault(kind, Outline()).add(document)
            close(source)
        return found


class _Session(Struct):
    """A session or subagent in one store."""

    store: str
    all_messages: int  # with system messages and abandoned branches
    messages: int  # as `SessionSummary.message_count`
    is_agent: bool
    visibility: str
    completeness: str
    parent_id: str | None = None  # of a subagent


class _MessageCounter:
    """Counts the messages of one session, each once."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._calls: set[str] = set()
        self._agents: dict[str, str | None] = {}  # by id of an active message that is not a system message

    def add(self, message: Message) -> None:
        call = message.tool.id if message.tool is not None else None
        if call is None or call not in self._calls:
            self._ids.add(message.id)
            if message.is_active and message.role != "system":
                self._agents[message.id] = message.agent_id
        if call is not None:
            self._calls.add(call)

    def discard(self, id_: str) -> None:
        """Remove a message that the next one replaces."""
        self._ids.discard(id_)
        self._agents.pop(id_, None)

    def count_all(self) -> int:
        return len(self._ids)

    def count_active(self, abandoned: Iterable[str]) -> Counter[str | None]:
        """Return the number of active messages, by inlined subagent. None is the session itself."""
        hidden = set(abandoned)
        return Counter(agent for id_, agent in self._agents.items() if id_ not in hidden)


def audit(roots: Iterable[tuple[Source, Path]], progress: Progress | None = None) -> Audit:
    """Parse everything below the roots and return the counts and problems."""
    audited_roots: list[AuditedRoot] = []
    problems: list[Problem] = []
    plan: list[tuple[Source, AuditedRoot, list[Unit]]] = []
    for source, root in roots:
        audited = AuditedRoot(source=source.name, path=str(root), exists=True)
        audited_roots.append(audited)
        try:
            audited.exists = is_folder(root)
        except PermissionError as error:
            problems.append(Problem(Origin(str(root), "folder"), *read_fault(error)))
            continue
        plan.append((source, audited, list(source.units(root)) if audited.exists else []))
        problems += _irregular_files(source, root) if audited.exists else []
    total = sum(unit.estimated_bytes for _, _, units in plan for unit in units)
    done = 0
    found: list[tuple[str, AuditedRoot, dict[_Key, _Session]]] = []
    for source, audited, units in plan:
        sessions: dict[_Key, _Session] = {}
        for unit in units:
            audited.units[unit.kind] = audited.units.get(unit.kind, 0) + 1
            for key, session in _sessions(source, unit, audited, problems):
                known = sessions.get(key)
                if known is None or _is_better(session, known):
                    sessions[key] = session
            done += unit.estimated_bytes
            if progress is not None:
                progress(done, total)
        close(source)
        found.append((source.platform, audited, sessions))
    with_content = {
        (platform, key)
        for platform, _, sessions in found
        for key, session in sessions.items()
        if store_content(session.store) != "notes"
    }
    _add_parents(found)
    for platform, audited, sessions in found:
        # A note about a session in another store is not a session of its own.
        own = [
            session
            for key, session in sessions.items()
            if store_content(session.store) != "notes" or (platform, key) not in with_content
        ]
        _sum_up(audited, own)
    return Audit(places=audited_roots, problems=problems)


def _add_parents(found: Iterable[tuple[str, AuditedRoot, dict[_Key, _Session]]]) -> None:
    """Add the sessions of which only subagents are left: the archive has a row for each of them."""
    found = list(found)
    known = {(platform, id_) for platform, _, sessions in found for id_, is_agent in sessions if not is_agent}
    for platform, _, sessions in found:
        for agent in list(sessions.values()):
            parent_id = agent.parent_id
            if agent.is_agent and parent_id is not None and (platform, parent_id) not in known:
                known.add((platform, parent_id))
                sessions[parent_id, False] = _Session(agent.store, 0, 0, False, "listed", "lossy")


def _is_better(session: _Session, known: _Session) -> bool:
    return (store_rank(session.store), -session.all_messages, -session.messages) < (
        store_rank(known.store),
        -known.all_messages,
        -known.messages,
    )


def _sessions(
    source: Source, unit: Unit, root: AuditedRoot, problems: list[Problem]
) -> Iterator[tuple[_Key, _Session]]:
    """Yield the sessions of one unit. Its record counts are added to the root."""
    opening: Opening | None = None
    counter = _MessageCounter()
    for item in source.read(unit):
        match item:
            case Opening():
                opening, counter = item, _MessageCounter()
            case Message():
                counter.add(item)
            case Replacement():
                counter.discard(item.message_id)
            case Closing() if opening is not None:
                yield from _closed(opening, item, counter)
                opening = None
            case Problem():
                problems.append(item)
            case RecordCounts():
                _add(item, root)


def _closed(opening: Opening, closing: Closing, counter: _MessageCounter) -> Iterator[tuple[_Key, _Session]]:
    """Yield a session and the subagents that are inlined in it. A subagent has the messages that it contains.

    Messages of an inlined subagent are included in `all_messages` of the session only.
    """
    store, all_messages = opening.store, counter.count_all()
    active = counter.count_active(closing.abandoned)
    is_agent = opening.agent_id is not None
    messages = active.total() if is_agent else active[None]
    yield (
        (opening.id, is_agent),
        _Session(
            store,
            all_messages,
            messages,
            is_agent,
            closing.visibility,
            closing.completeness,
            opening.parent_id,
        ),
    )
    for agent in () if is_agent else closing.agents:
        if agent.agent_id.startswith("inline-"):
            visibility = "hidden" if agent.is_hidden else "listed"
            inlined = _Session(store, 0, active[agent.agent_id], True, visibility, "complete")
            yield (agent.agent_id, True), inlined


def _add(counts: RecordCounts, root: AuditedRoot) -> None:
    root.records += counts.records
    root.parsed += counts.parsed
    root.ignored += counts.ignored
    root.problems += counts.problems
    for name, count in counts.kinds.items():
        root.kinds[name] = root.kinds.get(name, 0) + count
    for name, count in counts.unknown.items():
        root.unknown[name] = root.unknown.get(name, 0) + count


def _sum_up(root: AuditedRoot, sessions: Iterable[_Session]) -> None:
    for session in sessions:
        if session.visibility not in ("listed", "archived"):
            root.unlisted[session.visibility] = root.unlisted.get(session.visibility, 0) + 1
            continue
        root.messages += session.all_messages
        if session.is_agent:
            root.subagents += 1
            root.subagent_messages += session.messages
            continue
        root.sessions += 1
        root.session_messages += session.messages
        root.completeness[session.completeness] = root.completeness.get(session.completeness, 0) + 1


# Folders, pipes and broken links with the name of a session file. No source can read them.


def _irregular_files(source: Source, root: Path) -> list[Problem]:
    """Return a problem for each such entry below a root, sorted by path. Opens nothing, follows no folder."""
    paths = source.watched_paths(root) if isinstance(source, Watchable) else [root]
    found = [
        Problem(Origin(escape_name(path), "file"), "not-a-file", reason)
        for start in paths
        for path in _session_paths(str(start), source.file_ends())
        if (reason := _file_fault(path)) is not None
    ]
    return sorted(found, key=lambda problem: problem.origin.path)


def _session_paths(start: str, ends: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths with the name of a session file that are not regular files, or are links."""
    if start.endswith(ends):
        if os.path.lexists(start):
            yield start
        return
    stack = [(start, 0)]
    while stack:
        folder, depth = stack.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(ends):
                        if not entry.is_file(follow_symlinks=False):
                            yield entry.path
                    elif depth < _MAX_FOLDER_DEPTH and entry.is_dir(follow_symlinks=False):
                        stack.append((entry.path, depth + 1))
        except OSError:  # does not exist, or a problem of its own
            continue


def _file_fault(path: str) -> str | None:
    """Return why a path cannot be read as a file; None for a file or a link to one."""
    is_link = os.path.islink(path)  # noqa: PTH114 - the name may not be UTF-8
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - as above
    except FileNotFoundError:
        return "is a link to a file that does not exist" if is_link else None
    except OSError as error:
        return "is a link to itself" if error.errno == errno.ELOOP else None
    if stat.S_ISREG(mode):
        return None
    kind = _KINDS.get(stat.S_IFMT(mode), "not a regular file")
    return f"is a link to {kind}, not to a file" if is_link else f"is {kind}, not a file"
