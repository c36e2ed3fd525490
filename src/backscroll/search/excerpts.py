"""Excerpts of a recalled session within a token budget."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

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
from backscroll.search.matches import RedactText
from backscroll.search.recall import RecallCandidate

__all__ = ["add_excerpts", "session_without_excerpts"]

_MAX_EXCERPTS = 2  # per session
_MAX_TEXT_CHARS = 6000  # before truncation to the token budget
_MAX_WHOLE_CHARS = 1500  # longer texts are reduced to the lines around the match
_CONTEXT_LINES = 12
_OUTCOME_LOOKBACK = 40  # messages before the next prompt that may contain the outcome
_MAX_TITLE_TOKENS = 25
_MIN_TEXT_TOKENS = 25
_PROSE_ROLES: tuple[Role, ...] = ("user", "assistant")


def session_without_excerpts(summary: SessionSummary, redact: RedactText) -> RecalledSession:
    """Return title, workspace and time of a recalled session."""
    title, name = summary.title, summary.workspace_name
    return RecalledSession(
        session_ref=summary.ref,
        session_id=summary.id,
        title=truncate_to_tokens(redact(title, summary.ref, 0), _MAX_TITLE_TOKENS) if title else None,
        workspace_name=redact(name, summary.ref, 0) if name else None,
        updated_at=summary.updated_at,
        excerpts=(),
    )


def add_excerpts(
    archive: Archive,
    session: RecalledSession,
    candidates: Sequence[RecallCandidate],
    *,
    tokens: int,
    overhead_tokens: int,
    redact: RedactText,
) -> RecalledSession:
    """Return the session with the best excerpts of it and its subagents within a token budget.

    ``overhead_tokens`` is the cost of an excerpt without its texts.
    """
    excerpts: list[Excerpt] = []
    texts: set[str] = set()
    for prompts, messages in _group_by_turn(archive, _load_messages(archive, candidates)):
        if tokens < overhead_tokens + _MIN_TEXT_TOKENS:
            break
        turn = _Turn(archive, messages[0].found.summary, prompts, messages[0].position)
        excerpt = _build_excerpt(
            turn.best_message(messages), turn=turn, tokens=tokens - overhead_tokens, redact=redact
        )
        if excerpt.text in texts:
            continue  # a resumed session repeats it
        texts.add(excerpt.text)
        excerpts.append(excerpt)
        parts = (excerpt.asked, excerpt.text, excerpt.outcome)
        tokens -= overhead_tokens + sum(estimate_tokens(part) for part in parts if part)
        if len(excerpts) == _MAX_EXCERPTS:
            break
    return replace(session, excerpts=tuple(excerpts))


class _RelevantMessage(Struct, frozen=True):
    """A message that matches the task, with its searchable text."""

    found: MessageInSession
    position: int
    text: str
    query: Query
    is_complete: bool = False  # contains the whole task


def _load_messages(archive: Archive, candidates: Iterable[RecallCandidate]) -> list[_RelevantMessage]:
    """Return the messages of the candidates: first those with the whole task, then prose."""
    messages = []
    for candidate in candidates:
        texts = load_hit_texts(archive, ((candidate.session, position) for position in candidate.positions))
        for position in candidate.positions:
            if (candidate.session, position) in texts:
                found, text = texts[candidate.session, position]
                # A long tool result contains any words by chance.
                is_complete = position in candidate.complete_positions and len(text) <= _MAX_WHOLE_CHARS
                shown_at = 0 if position == ANNOTATIONS_POSITION else position
                messages.append(_RelevantMessage(found, shown_at, text, candidate.query, is_complete))
    return sorted(
        messages, key=lambda each: (not each.is_complete, each.found.message.role not in _PROSE_ROLES)
    )


def _group_by_turn(
    archive: Archive, messages: Iterable[_RelevantMessage]
) -> list[tuple[Sequence[int], list[_RelevantMessage]]]:
    """Group messages by turn, in order of relevance. Each group has the prompt positions of its session."""
    turns: dict[tuple[str, int], list[_RelevantMessage]] = {}
    prompts: dict[str, Sequence[int]] = {}
    for message in messages:
        ref = message.found.summary.ref
        if ref not in prompts:
            prompts[ref] = archive.messages.turn_starts(message.found.summary)
        turns.setdefault((ref, bisect_right(prompts[ref], message.position)), []).append(message)
    return [(prompts[ref], group) for (ref, _), group in turns.items()]


class _Turn:
    """The turn that contains a message: its prompt, its answers and the last one of them."""

    def __init__(
        self, archive: Archive, summary: SessionSummary, prompts: Sequence[int], position: int
    ) -> None:
        number = bisect_right(prompts, position)
        self.start = prompts[number - 1] if number else 0
        end = prompts[number] if number < len(prompts) else archive.messages.extent(summary)[1]
        self.prompt = next(archive.messages.without_usage(summary, self.start), None)
        self.answers: list[tuple[int, Message]] = []
        first = max(self.start + 1, end - _OUTCOME_LOOKBACK)
        for at, message in zip(
            range(first, end), archive.messages.without_usage(summary, first), strict=False
        ):
            if message.role == "assistant" and message.is_active and message.content.strip():
                self.answers.append((at, message))
        self.outcome = self.answers[-1] if self.answers else None

    def best_message(self, messages: Sequence[_RelevantMessage]) -> _RelevantMessage:
        """Return the message to show between the prompt and the outcome, which are always shown.

        This is one of the relevant messages if it is neither of these two, else the longest answer.
        """
        shown = {self.start, self.outcome[0] if self.outcome is not None else -1}
        between = [each for each in messages if each.position not in shown]
        preferred = [each for each in between if each.is_complete or each.found.message.role == "assistant"]
        if preferred or messages[0].position not in shown:
            return (preferred or between)[0]
        others = [answer for answer in self.answers if answer[0] not in shown]
        if not others:
            return messages[0]
        at, message = max(others, key=lambda answer: len(answer[1].content))
        found = MessageInSession(messages[0].found.summary, message)
        return _RelevantMessage(found, at, message.content, messages[0].query)


def _build_excerpt(message: _RelevantMessage, *, turn: _Turn, tokens: int, redact: RedactText) -> Excerpt:
    summary, position = message.found.summary, message.position
    asked = outcome = None
    if turn.prompt is not None and turn.start != position and turn.prompt.role == "user":
        asked = _compact(redact(turn.prompt.content, summary.ref, turn.start)[:_MAX_TEXT_CHARS])
    if turn.outcome is not None and turn.outcome[0] != position:
        outcome = _compact(redact(turn.outcome[1].content, summary.ref, turn.outcome[0])[:_MAX_TEXT_CHARS])
    # Redacted before it is cut: half a secret is not recognizable.
    text = _compact(_around_match(redact(message.text, summary.ref, position), message.query))
    asked = truncate_to_tokens(asked, max(tokens // 5, _MIN_TEXT_TOKENS)) if asked else None
    remaining = tokens - (estimate_tokens(asked) if asked else 0)
    # Text and outcome get half each, or more if the other needs less.
    text = truncate_to_tokens(text, max(remaining - estimate_tokens(outcome or ""), remaining // 2))
    remaining -= estimate_tokens(text)
    outcome = truncate_to_tokens(outcome, remaining) if outcome and remaining >= _MIN_TEXT_TOKENS else None
    return Excerpt(
        agent_ref=summary.ref if summary.parent_ref is not None else None,
        message_index=position,
        role=message.found.message.role,
        timestamp=message.found.message.timestamp,
        asked=asked,
        text=text,
        outcome=outcome,
    )


def _around_match(text: str, query: Query) -> str:
    """Return a short text as it is, or the lines of a long one around the most query words."""
    if len(text) <= _MAX_WHOLE_CHARS:
        return text
    snippet = make_snippet(text, find_spans(text, query, with_inflections=True), context=_CONTEXT_LINES)
    return "\n".join(snippet.context)[:_MAX_TEXT_CHARS]


def _compact(text: str) -> str:
    """Remove empty lines and trailing white space, which cost tokens."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines() if line.strip())
