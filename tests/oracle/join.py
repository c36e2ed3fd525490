"""Assemble the sessions of several units in memory.

A session may be in several stores, and its title in the file of another session. A resumed session repeats
messages of another one. The file of a subagent does not name the call that started it. The result does not
depend on the order of the units.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model.message import Message, TokenUsage, is_uuid, merge_messages, record_id_of
from backscroll.model.store import store_rank
from backscroll.model.stream import (
    OWN_TITLES,
    Closing,
    CopiedLines,
    Opening,
    SubagentLink,
    title_rank,
)
from tests.oracle.fold import ParsedSession, UnitContent

Key = tuple[str, str, str | None]  # platform, id, and for a subagent the session that started it

_UNKNOWN_TIME = datetime.max.replace(tzinfo=UTC)
_FIRST_TIME = datetime.min.replace(tzinfo=UTC)
_PROMPT_STRENGTH, _TIME_STRENGTH = 5, 6  # weaker than the links that sources find; lower is stronger


class Session(Struct, frozen=True):
    """One session, assembled from its fragments in all stores."""

    opening: Opening
    closing: Closing
    messages: tuple[Message, ...]
    stores: tuple[tuple[str, str], ...]  # source and store of each fragment, the main one first
    link: SubagentLink | None = None  # for a subagent: the call that started it
    tokens: int | None = None  # of the responses that belong to this session; None if unknown


def join(contents: Iterable[tuple[str, UnitContent]]) -> dict[Key, Session]:
    """Return the sessions of these units, given with their platforms."""
    units = list(contents)
    sessions = _merge_fragments(units)
    owners = _find_owners(sessions)
    sessions = {key: _mark_copies(key, session, owners) for key, session in sessions.items()}
    sessions = _unmark_calls_with_own_result(sessions)
    sessions = _mark_copies_with_new_ids(sessions)
    sessions = _add_titles(sessions, units, owners)
    sessions = _add_links(sessions, [link for _, content in units for link in content.links])
    return _add_tokens(sessions)


def _merge_fragments(units: Iterable[tuple[str, UnitContent]]) -> dict[Key, Session]:
    """Return one session per id: messages of the most complete store, missing facts from the others."""
    fragments: dict[Key, list[ParsedSession]] = {}
    for platform, content in units:
        for fragment in content.sessions:
            opening = fragment.opening
            key = (platform, opening.id, opening.parent_id if opening.agent_id is not None else None)
            fragments.setdefault(key, []).append(fragment)
    return {key: _merge(parts) for key, parts in fragments.items()}


def _merge(fragments: list[ParsedSession]) -> Session:
    ordered = sorted(fragments, key=_fragment_rank)
    best = ordered[0]
    messages = best.messages
    closing = best.closing
    for other in ordered[1:]:
        if other.opening.store == best.opening.store:
            messages = tuple(merge_messages(messages, other.messages))
        closing = _fill_closing(closing, other.closing)
    stores = tuple(dict.fromkeys((each.opening.source, each.opening.store) for each in ordered))
    return Session(best.opening, closing, messages, stores)


def _fragment_rank(fragment: ParsedSession) -> tuple[bool, int, int, str]:
    updated = fragment.closing.updated_at
    newest = -int(updated.timestamp() * 1000) if updated is not None else 0
    path = fragment.messages[0].origin.path if fragment.messages else ""
    return not fragment.messages, store_rank(fragment.opening.store), newest, path


def _fill_closing(closing: Closing, other: Closing) -> Closing:
    """Fill missing facts from another fragment of the same session."""
    titled = min(closing, other, key=title_rank)
    return replace(
        closing,
        title=titled.title,
        title_source=titled.title_source,
        workspace=closing.workspace or other.workspace,
        created_at=closing.created_at or other.created_at,
        updated_at=closing.updated_at or other.updated_at,
        git_branch=closing.git_branch or other.git_branch,
        version=closing.version or other.version,
        metadata={**other.metadata, **closing.metadata},
    )


def _record_key(key: Key, message: Message) -> str:
    """Return a key of the record that is the same in every session that contains it."""
    record = record_id_of(message.id)
    return f"{key[0]} {record}" if is_uuid(record) else f"{key} {record}"


def _find_owners(sessions: dict[Key, Session]) -> dict[str, Key]:
    """Return the original session of every record that is in several sessions.

    Most copies have a later time, so the earliest time decides. Then a session loses if its file shows that
    it copied the message, then the one that copied it later. Then a session that names another one as the
    owner of lines loses. Then the session that started first wins.
    """
    ranks: dict[str, dict[Key, tuple[bool, datetime]]] = {}
    for key, session in sessions.items():
        for message in session.messages:
            rank = (message.copied_from is not None, message.timestamp or _UNKNOWN_TIME)
            session_ranks = ranks.setdefault(_record_key(key, message), {})
            session_ranks[key] = min(rank, session_ranks.get(key, rank))
    owners: dict[str, Key] = {}
    for record, session_ranks in ranks.items():
        if len(session_ranks) > 1:
            owners[record] = min(
                session_ranks,
                key=lambda key: (
                    *session_ranks[key],
                    key[2] is not None,
                    *_copy_rank(key, session_ranks, sessions),
                    *_session_rank(key, session_ranks, sessions),
                ),
            )
    return owners


def _copy_rank(
    key: Key, candidates: dict[Key, tuple[bool, datetime]], sessions: dict[Key, Session]
) -> tuple[bool, datetime]:
    at, others = candidates[key][1], {other[1] for other in candidates if other != key}
    copied = (span for span in sessions[key].closing.copied if not span.has_new_ids)
    spans = [span for span in copied if span.first_at <= at <= span.last_at]
    written = [span.written_at for span in spans if span.written_at is not None]
    is_copied = any(
        span.written_at is None and (span.session_id is None or span.session_id in others) for span in spans
    )
    return is_copied, max(written, default=_FIRST_TIME)


def _session_rank(
    key: Key, candidates: dict[Key, tuple[bool, datetime]], sessions: dict[Key, Session]
) -> tuple[bool, datetime, str]:
    foreign = sessions[key].closing.metadata.get("other_session_ids", ())
    names_another = any(other[1] in foreign for other in candidates if other != key)
    return names_another, sessions[key].closing.created_at or _UNKNOWN_TIME, key[1]


def _mark_copies(key: Key, session: Session, owners: dict[str, Key]) -> Session:
    if not owners:
        return session
    messages = []
    for message in session.messages:
        owner = owners.get(_record_key(key, message), key)
        copied = owner[1] if owner != key else None
        messages.append(message if copied is None else replace(message, copied_from=copied))
    return replace(session, messages=tuple(messages))


def _unmark_calls_with_own_result(sessions: dict[Key, Session]) -> dict[Key, Session]:
    """Treat a copied call as original if only the copy has a result."""
    completed: dict[tuple[str, str | None, str], bool] = {}
    for (platform, id_, parent), session in sessions.items():
        for message in session.messages:
            if message.tool is not None and message.tool.id is not None:
                call = platform, parent or id_, message.tool.id
                completed[call] = completed.get(call, False) or message.tool.status != "pending"

    def unmark(platform: str, message: Message) -> Message:
        tool = message.tool
        if message.copied_from is None or tool is None or tool.id is None or tool.status == "pending":
            return message
        is_completed = completed.get((platform, message.copied_from, tool.id), True)
        return message if is_completed else replace(message, copied_from=None)

    return {
        key: replace(session, messages=tuple(unmark(key[0], message) for message in session.messages))
        for key, session in sessions.items()
    }


def _mark_copies_with_new_ids(sessions: dict[Key, Session]) -> dict[Key, Session]:
    """Mark messages that share only the ids of responses with an earlier session.

    A prompt belongs to the response after it. The prompt after the last copied response is new.
    """
    originals = _original_responses(sessions)
    marked = dict(sessions)
    for key, session in sessions.items():
        for span in session.closing.copied:
            if not span.has_new_ids:
                continue
            messages = list(session.messages)
            owners = [
                originals[message.response_id][1][1]
                if message.response_id in originals
                and message.timestamp is not None
                and span.first_at <= message.timestamp <= span.last_at
                else None
                for message in messages
            ]
            copied = [owner for owner in owners if owner not in (None, key[1])]
            last = max((index for index, m in enumerate(messages) if _is_answer(m, span)), default=-1)
            following = copied[-1] if copied else None
            if following is None:
                continue
            for index in range(last, -1, -1):
                following = owners[index] or following
                if messages[index].copied_from is None and following != key[1]:
                    messages[index] = replace(messages[index], copied_from=following)
            marked[key] = replace(session, messages=tuple(messages))
    return marked


def _is_answer(message: Message, span: CopiedLines) -> bool:
    at = message.timestamp
    return message.role not in ("user", "system") and at is not None and span.first_at <= at <= span.last_at


def _add_titles(
    sessions: dict[Key, Session], units: Iterable[tuple[str, UnitContent]], owners: dict[str, Key]
) -> dict[Key, Session]:
    """Assign each title to the original session of its message. The title of the latest message wins."""
    locations: dict[str, tuple[Key, datetime]] = {}
    for key, session in sessions.items():
        for message in session.messages:
            record = _record_key(key, message)
            if owners.get(record, key) == key:
                locations[record] = (key, message.timestamp or _UNKNOWN_TIME)
        if session.closing.last_record_id is not None:
            locations.setdefault(f"{key[0]} {session.closing.last_record_id}", (key, _UNKNOWN_TIME))
    best: dict[Key, tuple[datetime, str]] = {}
    for platform, content in units:
        for hint in content.title_hints:
            location = locations.get(f"{platform} {hint.message_id}")
            if location is not None:
                key, at = location
                best[key] = max(best.get(key, (at, hint.title)), (at, hint.title))
    return {
        key: _set_title(session, best[key][1]) if key in best else session
        for key, session in sessions.items()
    }


def _set_title(session: Session, title: str) -> Session:
    if session.closing.title and session.closing.title_source in OWN_TITLES:
        return session
    return replace(session, closing=replace(session.closing, title=title, title_source="summary"))


def _add_links(sessions: dict[Key, Session], links: list[SubagentLink]) -> dict[Key, Session]:
    """Link each subagent to the call that started it, by the strongest evidence."""
    strongest: dict[str, SubagentLink] = {}
    for link in sorted(links, key=lambda link: (-link.strength, link.tool_call_id)):
        strongest[link.agent_id] = link
    linked_calls = {link.tool_call_id for link in strongest.values()}
    result = dict(sessions)
    for key, session in sorted(sessions.items(), key=lambda item: _start_time(item[1])):
        agent_id = session.opening.agent_id
        if agent_id is None:
            continue
        parent = sessions.get((key[0], key[2] or "", None))
        found = strongest.get(agent_id)
        if found is None and parent is not None:
            found = _infer_link(session, parent, linked_calls)
        if found is not None:
            linked_calls.add(found.tool_call_id)
            result[key] = _set_link(session, found)
    return result


def _start_time(session: Session) -> datetime:
    return session.closing.created_at or _UNKNOWN_TIME


def _infer_link(session: Session, parent: Session, linked_calls: set[str]) -> SubagentLink | None:
    """Return a call of the parent with the same prompt, else the last call before the subagent started."""
    prompt = next((agent.prompt for agent in session.closing.agents if agent.prompt), None)
    unlinked = [
        message
        for message in parent.messages
        if message.tool is not None
        and message.tool.id is not None
        and message.tool.id not in linked_calls
        and isinstance(message.tool.params.get("prompt"), str)
    ]
    same_prompt = [
        m
        for m in unlinked
        if prompt is not None and m.tool and m.tool.params["prompt"].strip() == prompt.strip()
    ]
    start = session.closing.created_at
    earlier = [m for m in unlinked if m.timestamp is not None and start is not None and m.timestamp <= start]
    for messages, evidence, strength in (
        (same_prompt, "same prompt", _PROMPT_STRENGTH),
        (earlier[-1:], "time", _TIME_STRENGTH),
    ):
        for message in messages:
            if message.tool is not None and message.tool.id is not None:
                return SubagentLink(
                    agent_id=session.opening.agent_id or "",
                    tool_call_id=message.tool.id,
                    evidence=evidence,
                    strength=strength,
                )
    return None


def _set_link(session: Session, link: SubagentLink) -> Session:
    """Set the link. A subagent that was unlisted only because it had no link becomes listed."""
    closing = session.closing
    if closing.is_unlinked:
        closing = replace(closing, visibility="listed", is_unlinked=False, reasons=())
    return replace(session, closing=closing, link=link)


_Original = tuple[tuple[bool, datetime, bool, str], Key]


def _original_responses(sessions: dict[Key, Session]) -> dict[str, _Original]:
    """Return the session that first contained each response, with its rank."""
    originals: dict[str, _Original] = {}
    for key, session in sessions.items():
        for response, message in _responses(session):
            is_copy = message.copied_from is not None
            rank = (is_copy, message.timestamp or _UNKNOWN_TIME, message.is_sidechain, key[1])
            if response not in originals or rank < originals[response][0]:
                originals[response] = (rank, key)
    return originals


def _add_tokens(sessions: dict[Key, Session]) -> dict[Key, Session]:
    """Count each response once, in its original session. Copies in subagents do not count."""
    usage: dict[str, TokenUsage] = {}
    for session in sessions.values():
        for response, message in _responses(session):
            if message.usage is not None:
                known = usage.get(response, message.usage)
                usage[response] = known.merged(message.usage)
    totals: dict[Key, int] = {}
    for response, (_, key) in _original_responses(sessions).items():
        totals[key] = totals.get(key, 0) + usage[response].total
    return {key: replace(session, tokens=totals.get(key)) for key, session in sessions.items()}


def _responses(session: Session) -> Iterator[tuple[str, Message]]:
    """Yield the messages with usage by response id; a message without one has its own key."""
    for message in session.messages:
        if message.usage is not None:
            yield message.response_id or f"{session.opening.ref} {message.id}", message
