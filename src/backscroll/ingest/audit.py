"""Count every record of every root once: parsed, ignored or a problem. Nothing is stored."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from backscroll.model import STORES, Closing, Message, Opening, Problem, RecordCounts, Unit
from backscroll.model.audit import Audit, AuditedRoot
from backscroll.sources import Source
from backscroll.sources.protocols import close

__all__ = ["Progress", "audit"]

Progress = Callable[[int, int], None]  # bytes or rows read, and in total

_NOTES = "notes"  # the store with notes about sessions of other stores


class _Session(Struct):
    """A session in one store."""

    store: str
    messages: int
    is_agent: bool
    visibility: str
    completeness: str


def audit(roots: Iterable[tuple[Source, Path]], progress: Progress | None = None) -> Audit:
    """Parse everything below the roots and return the counts and problems."""
    audited_roots: list[AuditedRoot] = []
    problems: list[Problem] = []
    plan: list[tuple[Source, AuditedRoot, list[Unit]]] = []
    for source, root in roots:
        audited = AuditedRoot(source=source.name, path=str(root), exists=root.is_dir())
        audited_roots.append(audited)
        plan.append((source, audited, list(source.units(root)) if audited.exists else []))
    total = sum(unit.size for _, _, units in plan for unit in units)
    done = 0
    found: list[tuple[str, AuditedRoot, dict[tuple[str, str | None], _Session]]] = []
    for source, audited, units in plan:
        sessions: dict[tuple[str, str | None], _Session] = {}
        for unit in units:
            audited.units[unit.kind] = audited.units.get(unit.kind, 0) + 1
            for key, session in _sessions(source, unit, audited, problems):
                known = sessions.get(key)
                if known is None or _is_better(session, known):
                    sessions[key] = session
            done += unit.size
            if progress is not None:
                progress(done, total)
        close(source)
        found.append((source.platform, audited, sessions))
    with_content = {
        (platform, key)
        for platform, _, sessions in found
        for key, session in sessions.items()
        if session.store != _NOTES
    }
    for platform, audited, sessions in found:
        # A note about a session in another store is not a session of its own.
        own = [
            session
            for key, session in sessions.items()
            if session.store != _NOTES or (platform, key) not in with_content
        ]
        _sum_up(audited, own)
    return Audit(places=audited_roots, problems=problems)


def _is_better(session: _Session, known: _Session) -> bool:
    return (STORES.index(session.store), -session.messages) < (STORES.index(known.store), -known.messages)


def _sessions(
    source: Source, unit: Unit, root: AuditedRoot, problems: list[Problem]
) -> Iterator[tuple[tuple[str, str | None], _Session]]:
    """Yield the sessions of one unit. Its record counts are added to the root."""
    opening: Opening | None = None
    ids: set[str] = set()
    calls: set[str] = set()
    for item in source.read(unit):
        match item:
            case Opening():
                opening, ids, calls = item, set(), set()
            case Message():
                call = item.tool.id if item.tool is not None else None
                if call is None or call not in calls:
                    ids.add(item.id)
                if call is not None:
                    calls.add(call)
            case Closing() if opening is not None:
                store = opening.store
                is_agent = opening.agent_id is not None
                key = (opening.id, opening.parent_id if is_agent else None)
                yield key, _Session(store, len(ids), is_agent, item.visibility, item.completeness)
                for agent in item.agents:
                    if agent.agent_id.startswith("inline-"):
                        yield (agent.agent_id, opening.id), _Session(store, 0, True, "listed", "complete")
                opening = None
            case Problem():
                problems.append(item)
            case RecordCounts():
                _add(item, root)


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
        if session.is_agent:
            root.subagents += 1
        else:
            root.sessions += 1
            known = root.completeness.get(session.completeness, 0)
            root.completeness[session.completeness] = known + 1
        root.messages += session.messages
