"""What there is, and whether all of it was understood.

Every unit of every root is read and every record counted once: understood, known
to carry no message, or a problem. Nothing is kept but the numbers.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from backscroll.model import STORES, Closing, Message, Opening, Problem, RecordCounts, Unit
from backscroll.model.audit import Audit, AuditedRoot
from backscroll.sources import Source
from backscroll.sources.protocols import close

__all__ = ["Progress", "audit"]

Progress = Callable[[int, int], None]  # bytes or rows read, and how many there are


_NOTES = "notes"


class _Session(Struct):
    """A session as one store tells it."""

    store: str
    messages: int
    is_agent: bool
    visibility: str
    completeness: str


def audit(roots: Iterable[tuple[Source, Path]], progress: Progress | None = None) -> Audit:
    """Read everything below the roots and account for it."""
    places: list[AuditedRoot] = []
    problems: list[Problem] = []
    plan: list[tuple[Source, AuditedRoot, list[Unit]]] = []
    for source, root in roots:
        place = AuditedRoot(source=source.name, path=str(root), exists=root.is_dir())
        places.append(place)
        plan.append((source, place, list(source.units(root)) if place.exists else []))
    total = sum(unit.size for _, _, units in plan for unit in units)
    done = 0
    found: list[tuple[str, AuditedRoot, dict[tuple[str, str | None], _Session]]] = []
    for source, place, units in plan:
        sessions: dict[tuple[str, str | None], _Session] = {}
        for unit in units:
            place.units[unit.kind] = place.units.get(unit.kind, 0) + 1
            for key, session in _sessions(source, unit, place, problems):
                known = sessions.get(key)
                if known is None or _is_better(session, known):
                    sessions[key] = session
            done += unit.size
            if progress is not None:
                progress(done, total)
        close(source)
        found.append((source.platform, place, sessions))
    told = {
        (platform, key)
        for platform, _, sessions in found
        for key, one in sessions.items()
        if one.store != _NOTES
    }
    for platform, place, sessions in found:
        # A note of a session that lies elsewhere makes it no other one.
        own = [one for key, one in sessions.items() if one.store != _NOTES or (platform, key) not in told]
        _sum_up(place, own)
    return Audit(places=places, problems=problems)


def _is_better(session: _Session, known: _Session) -> bool:
    return (STORES.index(session.store), -session.messages) < (STORES.index(known.store), -known.messages)


def _sessions(
    source: Source, unit: Unit, place: AuditedRoot, problems: list[Problem]
) -> Iterator[tuple[tuple[str, str | None], _Session]]:
    """The sessions of one unit; its records are added to the place's account on the way."""
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
                _add(item, place)


def _add(tally: RecordCounts, place: AuditedRoot) -> None:
    place.records += tally.records
    place.parsed += tally.parsed
    place.ignored += tally.ignored
    place.problems += tally.problems
    for name, number in tally.kinds.items():
        place.kinds[name] = place.kinds.get(name, 0) + number
    for name, number in tally.unknown.items():
        place.unknown[name] = place.unknown.get(name, 0) + number


def _sum_up(place: AuditedRoot, sessions: Iterable[_Session]) -> None:
    for session in sessions:
        if session.visibility not in ("listed", "archived"):
            place.unlisted[session.visibility] = place.unlisted.get(session.visibility, 0) + 1
            continue
        if session.is_agent:
            place.subagents += 1
        else:
            place.sessions += 1
            known = place.completeness.get(session.completeness, 0)
            place.completeness[session.completeness] = known + 1
        place.messages += session.messages
