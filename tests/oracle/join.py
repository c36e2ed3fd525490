"""What only several units together can tell.

A title may be written into another session's file, a resumed session repeats
another's messages, a subagent's file does not know who started it, and one
session can lie in several stores. Nothing here depends on the order in which the
units were read.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model import (
    STORES,
    Closing,
    Message,
    Opening,
    SubagentLink,
    TokenUsage,
    is_uuid,
    record_id_of,
)
from backscroll.model.merge_messages import merge_messages
from backscroll.model.session import OWN_TITLES, title_rank
from tests.oracle.fold import ParsedSession, UnitContent

__all__ = ["Key", "Session", "join"]

Key = tuple[str, str, str | None]  # platform, id, and for a subagent the session that started it

_LATEST = datetime.max.replace(tzinfo=UTC)
_PROMPT, _TIME = 5, 6  # strengths of what is concluded here; sources tell stronger signs


class Session(Struct, frozen=True):
    """One session, whichever and however many stores told of it."""

    opening: Opening
    closing: Closing
    messages: tuple[Message, ...]
    stores: tuple[
        tuple[str, str], ...
    ]  # source and store of every account of it, the one it was taken from first
    link: SubagentLink | None = None  # for a subagent: the call that started it
    tokens: int | None = None  # of the responses first made here; None when nobody counted


def join(told: Iterable[tuple[str, UnitContent]]) -> dict[Key, Session]:
    """All sessions that units of a platform tell of together: ``(platform, what one unit told)``."""
    found = list(told)
    sessions = _by_precedence(found)
    owners = _owners(sessions)
    sessions = _with_answers({key: _with_copies(key, one, owners) for key, one in sessions.items()})
    sessions = _with_titles(sessions, found, owners)
    sessions = _with_links(sessions, [link for _, one in found for link in one.links])
    return _with_tokens(sessions)


def _by_precedence(found: Iterable[tuple[str, UnitContent]]) -> dict[Key, Session]:
    """One session per id: content of the fullest store, what that leaves open from the others."""
    accounts: dict[Key, list[ParsedSession]] = {}
    for platform, told in found:
        for reading in told.sessions:
            opening = reading.opening
            key = (platform, opening.id, opening.parent_id if opening.agent_id is not None else None)
            accounts.setdefault(key, []).append(reading)
    return {key: _settled(readings) for key, readings in accounts.items()}


def _settled(readings: list[ParsedSession]) -> Session:
    ordered = sorted(readings, key=_rank)
    best = ordered[0]
    messages = best.messages
    closing = best.closing
    for other in ordered[1:]:
        if other.opening.store == best.opening.store:
            messages = tuple(merge_messages(messages, other.messages))
        closing = _completed(closing, other.closing)
    stores = tuple(dict.fromkeys((one.opening.source, one.opening.store) for one in ordered))
    return Session(best.opening, closing, messages, stores)


def _rank(reading: ParsedSession) -> tuple[bool, int, int, str]:
    updated = reading.closing.updated_at
    newest = -int(updated.timestamp() * 1000) if updated is not None else 0
    place = reading.messages[0].origin.path if reading.messages else ""
    return not reading.messages, STORES.index(reading.opening.store), newest, place


def _completed(closing: Closing, other: Closing) -> Closing:
    """A closing with what it leaves open taken from another account of the same session."""
    named = min(closing, other, key=title_rank)
    return replace(
        closing,
        title=named.title,
        title_source=named.title_source,
        workspace=closing.workspace or other.workspace,
        created_at=closing.created_at or other.created_at,
        updated_at=closing.updated_at or other.updated_at,
        git_branch=closing.git_branch or other.git_branch,
        version=closing.version or other.version,
        metadata={**other.metadata, **closing.metadata},
    )


def _record(key: Key, message: Message) -> str:
    """The record a message is from, by a name that is the same in every session that holds it."""
    record = record_id_of(message.id)
    return f"{key[0]} {record}" if is_uuid(record) else f"{key} {record}"


def _owners(sessions: dict[Key, Session]) -> dict[str, Key]:
    """For every record that lies in several sessions, the one that first held it.

    Copies are stamped anew, so the earliest time decides; then a file that calls the line another session's
    own; then the session that began first.
    """
    holders: dict[str, dict[Key, tuple[bool, datetime]]] = {}
    for key, session in sessions.items():
        for message in session.messages:
            rank = (message.copied_from is not None, message.timestamp or _LATEST)
            held = holders.setdefault(_record(key, message), {})
            held[key] = min(rank, held.get(key, rank))
    owners: dict[str, Key] = {}
    for record, held in holders.items():
        if len(held) > 1:
            owners[record] = min(held, key=lambda key: (*held[key], *_seniority(key, held, sessions)))
    return owners


def _seniority(
    key: Key, held: dict[Key, tuple[bool, datetime]], sessions: dict[Key, Session]
) -> tuple[bool, bool, datetime, str]:
    foreign = sessions[key].closing.metadata.get("other_session_ids", ())
    names_another = any(other[1] in foreign for other in held if other != key)
    return key[2] is not None, names_another, sessions[key].closing.created_at or _LATEST, key[1]


def _with_copies(key: Key, session: Session, owners: dict[str, Key]) -> Session:
    if not owners:
        return session
    messages = []
    for message in session.messages:
        owner = owners.get(_record(key, message), key)
        copied = owner[1] if owner != key else None
        messages.append(message if copied is None else replace(message, copied_from=copied))
    return replace(session, messages=tuple(messages))


def _with_answers(sessions: dict[Key, Session]) -> dict[Key, Session]:
    """What only a copy of a call was answered with is told nowhere else, and so the copy's own."""
    answered: dict[tuple[str, str | None, str], bool] = {}
    for (platform, id_, parent), session in sessions.items():
        for message in session.messages:
            if message.tool is not None and message.tool.id is not None:
                call = platform, parent or id_, message.tool.id
                answered[call] = answered.get(call, False) or message.tool.status != "pending"

    def own(platform: str, message: Message) -> Message:
        tool = message.tool
        if message.copied_from is None or tool is None or tool.id is None or tool.status == "pending":
            return message
        is_answered = answered.get((platform, message.copied_from, tool.id), True)
        return message if is_answered else replace(message, copied_from=None)

    return {
        key: replace(session, messages=tuple(own(key[0], message) for message in session.messages))
        for key, session in sessions.items()
    }


def _with_titles(
    sessions: dict[Key, Session], found: Iterable[tuple[str, UnitContent]], owners: dict[str, Key]
) -> dict[Key, Session]:
    """Titles that name a message go to the session that first held it; the latest message's wins."""
    homes: dict[str, tuple[Key, datetime]] = {}
    for key, session in sessions.items():
        for message in session.messages:
            record = _record(key, message)
            if owners.get(record, key) == key:
                homes[record] = (key, message.timestamp or _LATEST)
    best: dict[Key, tuple[datetime, str]] = {}
    for platform, told in found:
        for naming in told.title_hints:
            home = homes.get(f"{platform} {naming.message_id}")
            if home is not None:
                key, at = home
                best[key] = max(best.get(key, (at, naming.title)), (at, naming.title))
    return {
        key: _named(session, best[key][1]) if key in best else session for key, session in sessions.items()
    }


def _named(session: Session, title: str) -> Session:
    if session.closing.title and session.closing.title_source in OWN_TITLES:
        return session
    return replace(session, closing=replace(session.closing, title=title, title_source="summary"))


def _with_links(sessions: dict[Key, Session], links: list[SubagentLink]) -> dict[Key, Session]:
    """Each subagent with the call that started it, by the best sign there is."""
    told: dict[str, SubagentLink] = {}
    for link in sorted(links, key=lambda link: (-link.strength, link.tool_call_id)):
        told[link.agent_id] = link
    taken = {link.tool_call_id for link in told.values()}
    out = dict(sessions)
    for key, session in sorted(sessions.items(), key=lambda item: _begun(item[1])):
        agent_id = session.opening.agent_id
        if agent_id is None:
            continue
        parent = sessions.get((key[0], key[2] or "", None))
        found = told.get(agent_id)
        if found is None and parent is not None:
            found = _concluded(session, parent, taken)
        if found is not None:
            taken.add(found.tool_call_id)
            out[key] = _linked(session, found)
    return out


def _begun(session: Session) -> datetime:
    return session.closing.created_at or _LATEST


def _concluded(session: Session, parent: Session, taken: set[str]) -> SubagentLink | None:
    """A call of the parent's that asked with the same words, else the last one before the agent began."""
    prompt = next((agent.prompt for agent in session.closing.agents if agent.prompt), None)
    free = [
        message
        for message in parent.messages
        if message.tool is not None
        and message.tool.id is not None
        and message.tool.id not in taken
        and isinstance(message.tool.params.get("prompt"), str)
    ]
    same = [
        m for m in free if prompt is not None and m.tool and m.tool.params["prompt"].strip() == prompt.strip()
    ]
    began = session.closing.created_at
    earlier = [m for m in free if m.timestamp is not None and began is not None and m.timestamp <= began]
    for messages, evidence, strength in ((same, "same prompt", _PROMPT), (earlier[-1:], "time", _TIME)):
        for message in messages:
            if message.tool is not None and message.tool.id is not None:
                return SubagentLink(
                    agent_id=session.opening.agent_id or "",
                    tool_call_id=message.tool.id,
                    evidence=evidence,
                    strength=strength,
                )
    return None


def _linked(session: Session, link: SubagentLink) -> Session:
    """A linked agent is work somebody asked for, unless it only warmed up or replayed its parent."""
    closing = session.closing
    if closing.is_unlinked:
        closing = replace(closing, visibility="listed", is_unlinked=False, reasons=())
    return replace(session, closing=closing, link=link)


def _with_tokens(sessions: dict[Key, Session]) -> dict[Key, Session]:
    """Each response counted once, where it was first made; a subagent's copy of it does not count."""
    makers: dict[str, tuple[tuple[bool, datetime, bool, str], Key]] = {}
    usage: dict[str, TokenUsage] = {}
    for key, session in sessions.items():
        for response, message in _responses(session):
            if message.usage is None:
                continue
            usage[response] = usage[response].merged(message.usage) if response in usage else message.usage
            is_copy = message.copied_from is not None
            rank = (is_copy, message.timestamp or _LATEST, message.is_sidechain, key[1])
            if response not in makers or rank < makers[response][0]:
                makers[response] = (rank, key)
    totals: dict[Key, int] = {}
    for response, (_, key) in makers.items():
        totals[key] = totals.get(key, 0) + usage[response].total
    return {key: replace(session, tokens=totals.get(key)) for key, session in sessions.items()}


def _responses(session: Session) -> Iterator[tuple[str, Message]]:
    """Messages that carry a cost, by response; one of no response stands for itself."""
    for message in session.messages:
        if message.usage is not None:
            yield message.response_id or f"{session.opening.ref} {message.id}", message
