"""What to show of a session that bears on a task, as much as there is room for."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from backscroll.archive import Archive, Passage
from backscroll.index.query import Query
from backscroll.index.snippet import snippet
from backscroll.index.spans import spans_of
from backscroll.ingest.finding import Clean
from backscroll.ingest.notes import texts
from backscroll.ingest.recalling import Lead
from backscroll.model import Message, Role, SessionSummary
from backscroll.model.note import NOTES
from backscroll.model.recollection import Excerpt, Recalled
from backscroll.render.tokens import cut_to, tokens_of

__all__ = ["recalled"]

_MOST = 2  # excerpts of one session
_LONGEST = 6000  # characters around a find that are looked at
_AROUND = 12  # lines
_LAST = 40  # messages before the next prompt among which the last words are looked for
_FRAME = 45  # tokens that an excerpt costs beside its words
_TITLE = 25
_LEAST = 25  # tokens; less is not worth reading
_SPOKEN: tuple[Role, ...] = ("user", "assistant")


def recalled(
    archive: Archive, summary: SessionSummary, group: Sequence[Lead], *, tokens: int, clean: Clean
) -> Recalled:
    """A session's best excerpts within so many tokens; of a session and its subagents as one."""
    excerpts: list[Excerpt] = []
    turns: set[tuple[str, int]] = set()
    said: set[str] = set()
    for passage, position, text, query in _places(archive, group):
        turn = _Turn(archive, passage.summary, position)
        if (passage.summary.ref, turn.start) in turns or tokens < _FRAME + _LEAST:
            continue
        turns.add((passage.summary.ref, turn.start))
        one = _excerpt(passage, position, text, query, turn=turn, tokens=tokens - _FRAME, clean=clean)
        if one.text in said:
            continue  # a resumed session says it again
        said.add(one.text)
        excerpts.append(one)
        tokens -= _FRAME + sum(tokens_of(part) for part in (one.asked, one.text, one.outcome) if part)
        if len(excerpts) == _MOST:
            break
    return Recalled(
        session_ref=summary.ref,
        session_id=summary.id,
        title=cut_to(clean(summary.title, summary.ref, 0), _TITLE) if summary.title else None,
        workspace_name=clean(summary.workspace_name, summary.ref, 0) if summary.workspace_name else None,
        updated_at=summary.updated_at,
        excerpts=tuple(excerpts),
    )


def _places(archive: Archive, group: Iterable[Lead]) -> list[tuple[Passage, int, str, Query]]:
    """What stands at the leads' positions; what people and assistants said first."""
    found = []
    for lead in group:
        told = texts(archive, ((lead.session, position) for position in lead.positions))
        for position in lead.positions:
            if (lead.session, position) in told:
                passage, text = told[lead.session, position]
                found.append((passage, 0 if position == NOTES else position, text, lead.query))
    return sorted(found, key=lambda one: one[0].message.role not in _SPOKEN)


class _Turn:
    """The turn that a message is in: what was asked at its beginning, and the last words in it."""

    def __init__(self, archive: Archive, summary: SessionSummary, position: int) -> None:
        prompts = archive.prompts_of(summary)
        place = bisect_right(prompts, position)
        self.start = prompts[place - 1] if place else 0
        end = prompts[place] if place < len(prompts) else archive.extent(summary)[1]
        self.prompt = next(archive.talk_of(summary, self.start), None)
        self.last: tuple[int, Message] | None = None
        first = max(self.start + 1, end - _LAST)
        for at, message in zip(range(first, end), archive.talk_of(summary, first), strict=False):
            if message.role == "assistant" and message.is_active and message.content.strip():
                self.last = (at, message)


def _excerpt(
    passage: Passage,
    position: int,
    text: str,
    query: Query,
    *,
    turn: _Turn,
    tokens: int,
    clean: Clean,
) -> Excerpt:
    message, ref = passage.message, passage.summary.ref
    asked = outcome = None
    if turn.prompt is not None and turn.start != position and turn.prompt.role == "user":
        asked = _plain(clean(turn.prompt.content, ref, turn.start)[:_LONGEST])
    if turn.last is not None and turn.last[0] != position:
        outcome = _plain(clean(turn.last[1].content, ref, turn.last[0])[:_LONGEST])
    # Cleaned before it is cut: half a secret is not known for one.
    shown = _plain(_around(clean(text, ref, position), query))
    asked = cut_to(asked, max(tokens // 5, _LEAST)) if asked else None
    left = tokens - (tokens_of(asked) if asked else 0)
    # Neither takes more than half unless the other leaves it.
    shown = cut_to(shown, max(left - tokens_of(outcome or ""), left // 2))
    left -= tokens_of(shown)
    outcome = cut_to(outcome, left) if outcome and left >= _LEAST else None
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
    if len(text) <= _LONGEST // 4:
        return text
    shown = snippet(text, spans_of(text, query, is_varied=True), context=_AROUND)
    return "\n".join(shown.context)[:_LONGEST]


def _plain(text: str) -> str:
    """White space at the ends and empty lines tell nothing, and cost."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines() if line.strip())
