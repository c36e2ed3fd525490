"""What to show of a session that bears on a task, as much as there is room for."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Struct

from backscroll.archive import Archive
from backscroll.archive.query.message_lookup import MessageInSession
from backscroll.index.query.parser import Query
from backscroll.index.results.highlights import find_spans
from backscroll.index.results.snippet import make_snippet
from backscroll.model import Message, Role, SessionSummary
from backscroll.model.search import Excerpt, RecalledSession
from backscroll.model.searchable_text import ANNOTATIONS_POSITION
from backscroll.render.token_estimate import estimate_tokens, truncate_to_tokens
from backscroll.search.hit_text import load_hit_texts
from backscroll.search.recall import RecallCandidate
from backscroll.search.search import RedactText

__all__ = ["build_recalled_session"]

_MOST = 2  # excerpts of one session
_LONGEST = 6000  # characters around a find that are looked at
_SHORT = 1500  # characters that are shown whole
_AROUND = 12  # lines
_LAST = 40  # messages before the next prompt among which the last words are looked for
_FRAME = 45  # tokens that an excerpt costs beside its words
_TITLE = 25
_LEAST = 25  # tokens; less is not worth reading
_SPOKEN: tuple[Role, ...] = ("user", "assistant")


def build_recalled_session(
    archive: Archive,
    summary: SessionSummary,
    group: Sequence[RecallCandidate],
    *,
    tokens: int,
    redact: RedactText,
) -> RecalledSession:
    """A session's best excerpts within so many tokens; of a session and its subagents as one."""
    excerpts: list[Excerpt] = []
    said: set[str] = set()
    for prompts, places in _by_turn(archive, _places(archive, group)):
        if tokens < _FRAME + _LEAST:
            break
        turn = _Turn(archive, places[0].passage.summary, prompts, places[0].position)
        one = _excerpt(turn.most_telling(places), turn=turn, tokens=tokens - _FRAME, redact=redact)
        if one.text in said:
            continue  # a resumed session says it again
        said.add(one.text)
        excerpts.append(one)
        tokens -= _FRAME + sum(estimate_tokens(part) for part in (one.asked, one.text, one.outcome) if part)
        if len(excerpts) == _MOST:
            break
    return RecalledSession(
        session_ref=summary.ref,
        session_id=summary.id,
        title=truncate_to_tokens(redact(summary.title, summary.ref, 0), _TITLE) if summary.title else None,
        workspace_name=redact(summary.workspace_name, summary.ref, 0) if summary.workspace_name else None,
        updated_at=summary.updated_at,
        excerpts=tuple(excerpts),
    )


class _Place(Struct, frozen=True):
    """A message that was found, with the text that it was found in."""

    passage: MessageInSession
    position: int
    text: str
    query: Query
    is_sure: bool = False  # it has all of the task in it


def _places(archive: Archive, group: Iterable[RecallCandidate]) -> list[_Place]:
    """What stands at the leads' positions: what has all of the task first, then what was said."""
    found = []
    for lead in group:
        told = load_hit_texts(archive, ((lead.session, position) for position in lead.positions))
        for position in lead.positions:
            if (lead.session, position) in told:
                passage, text = told[lead.session, position]
                # A long output has any words by chance.
                is_sure = position in lead.sure and len(text) <= _SHORT
                at = 0 if position == ANNOTATIONS_POSITION else position
                found.append(_Place(passage, at, text, lead.query, is_sure))
    return sorted(found, key=lambda one: (not one.is_sure, one.passage.message.role not in _SPOKEN))


def _by_turn(archive: Archive, places: Iterable[_Place]) -> list[tuple[Sequence[int], list[_Place]]]:
    """The places of each turn, in the order in which they were found, with where its session has prompts."""
    turns: dict[tuple[str, int], list[_Place]] = {}
    prompts: dict[str, Sequence[int]] = {}
    for place in places:
        ref = place.passage.summary.ref
        if ref not in prompts:
            prompts[ref] = archive.messages.turn_starts(place.passage.summary)
        turns.setdefault((ref, bisect_right(prompts[ref], place.position)), []).append(place)
    return [(prompts[ref], some) for (ref, _), some in turns.items()]


class _Turn:
    """The turn that a message is in: what was asked at its beginning, what was said at length, and last."""

    def __init__(
        self, archive: Archive, summary: SessionSummary, prompts: Sequence[int], position: int
    ) -> None:
        place = bisect_right(prompts, position)
        self.start = prompts[place - 1] if place else 0
        end = prompts[place] if place < len(prompts) else archive.messages.extent(summary)[1]
        self.prompt = next(archive.messages.without_usage(summary, self.start), None)
        self.said: list[tuple[int, Message]] = []
        begin = max(self.start + 1, end - _LAST)
        for at, message in zip(
            range(begin, end), archive.messages.without_usage(summary, begin), strict=False
        ):
            if message.role == "assistant" and message.is_active and message.content.strip():
                self.said.append((at, message))
        self.last = self.said[-1] if self.said else None

    def most_telling(self, places: Sequence[_Place]) -> _Place:
        """Which message to show beside the prompt and the last words, which are shown in any case.

        One of those that were found, if it is neither; else the longest answer there is.
        """
        shown = {self.start, self.last[0] if self.last is not None else -1}
        between = [one for one in places if one.position not in shown]
        spoken = [one for one in between if one.is_sure or one.passage.message.role == "assistant"]
        if spoken or places[0].position not in shown:
            return (spoken or between)[0]
        others = [one for one in self.said if one[0] not in shown]
        if not others:
            return places[0]
        at, message = max(others, key=lambda one: len(one[1].content))
        return _Place(
            MessageInSession(places[0].passage.summary, message), at, message.content, places[0].query
        )


def _excerpt(place: _Place, *, turn: _Turn, tokens: int, redact: RedactText) -> Excerpt:
    passage, position = place.passage, place.position
    message, ref = passage.message, passage.summary.ref
    asked = outcome = None
    if turn.prompt is not None and turn.start != position and turn.prompt.role == "user":
        asked = _plain(redact(turn.prompt.content, ref, turn.start)[:_LONGEST])
    if turn.last is not None and turn.last[0] != position:
        outcome = _plain(redact(turn.last[1].content, ref, turn.last[0])[:_LONGEST])
    # Cleaned before it is cut: half a secret is not known for one.
    shown = _plain(_around(redact(place.text, ref, position), place.query))
    asked = truncate_to_tokens(asked, max(tokens // 5, _LEAST)) if asked else None
    left = tokens - (estimate_tokens(asked) if asked else 0)
    # Neither takes more than half unless the other leaves it.
    shown = truncate_to_tokens(shown, max(left - estimate_tokens(outcome or ""), left // 2))
    left -= estimate_tokens(shown)
    outcome = truncate_to_tokens(outcome, left) if outcome and left >= _LEAST else None
    return Excerpt(
        agent_ref=ref if passage.summary.parent_ref is not None else None,
        message_index=position,
        role=message.role,
        timestamp=message.timestamp,
        asked=asked,
        text=shown,
        outcome=outcome,
    )


def _around(text: str, query: Query) -> str:
    """The whole of a short text; of a long one the lines around where most of the words stand."""
    if len(text) <= _SHORT:
        return text
    shown = make_snippet(text, find_spans(text, query, with_inflections=True), context=_AROUND)
    return "\n".join(shown.context)[:_LONGEST]


def _plain(text: str) -> str:
    """White space at the ends and empty lines tell nothing, and cost."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines() if line.strip())
