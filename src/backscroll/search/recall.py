"""Sessions that are relevant to a task, in the order of `search`, with the messages to quote.

A task is a sentence or a page of text, not a query; it has no syntax. Its words are searched like those of
a query. Excerpts are taken from what was said in a session, wherever the words were found, within a token
budget. A question rarely uses the words of the answer: ``synonyms.txt`` lists groups of words with a similar
meaning among software developers.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.query.messages import MessageInSession
from backscroll.documents import to_document
from backscroll.errors import UsageError
from backscroll.index.highlights import find_spans, make_snippet
from backscroll.index.languages import detect_language, inflections
from backscroll.index.query import Clause, MessageFilter, Query, Word
from backscroll.index.store import Index
from backscroll.model.message import ANNOTATIONS_POSITION, Message, Role
from backscroll.model.search import Excerpt, RecalledSession, RecallResult
from backscroll.model.session import SessionSummary
from backscroll.model.sync import Progress
from backscroll.model.text import sanitize
from backscroll.redact import Redactor
from backscroll.render.token_estimate import estimate_tokens, truncate_to_tokens
from backscroll.search.matches import Redaction, RedactText, load_hit_texts
from backscroll.search.search import resolve_filters
from backscroll.stores.lookup import find_session
from backscroll.stores.stores import Stores

_MAX_RECALLED_SESSIONS = 8
_MIN_TOKEN_BUDGET = 200
_MIN_SESSION_TOKENS = 200  # of every session but the first
_SESSION_SHARE = 0.4  # of the remaining budget
_MAX_ATTEMPTS = 3  # to shorten the excerpts of a session until it fits
_MAX_TASK_WORDS = 32  # the first lines of a long task usually name its subject
_MAX_CANDIDATE_SESSIONS = 30
_STEPS = 2  # of the progress report
_MAX_PROSE_HITS = 200  # messages from which the best positions are taken
_PROSE_POSITIONS = 4  # per session
_MIN_RELATIVE_SCORE = 0.1  # of the best session
_MIN_SIGNIFICANT_WORDS = 3  # words that do not occur together by chance
_PUNCTUATION = "¿?¡!.,;:'\"`()[]{}<>*“”„‘’«»"
_PROSE = Clause((MessageFilter("role", "user"), MessageFilter("role", "assistant")))
_MAX_EXCERPTS = 2  # per session
_MAX_TEXT_CHARS = 6000  # before truncation to the token budget
_MAX_WHOLE_CHARS = 1500  # longer texts are reduced to the lines around the match
_CONTEXT_LINES = 12
_OUTCOME_LOOKBACK = 40  # messages before the next prompt that may contain the outcome
_MAX_TITLE_TOKENS = 25
_MIN_TEXT_TOKENS = 25
_PROSE_ROLES: tuple[Role, ...] = ("user", "assistant")


class _Candidate(Struct, frozen=True):
    """A session or subagent, and the positions of its relevant messages, prose first."""

    session: int
    positions: tuple[int, ...]
    query: Query  # for highlights
    complete_positions: frozenset[int] = frozenset()  # messages that contain the whole task


def recall(
    stores: Stores,
    task: str,
    *,
    workspace: str | None,
    token_budget: int,
    redactor: Redactor | None,
    progress: Progress | None,
    measure: Callable[[RecallResult], int] | None,
) -> RecallResult:
    """Return the sessions most useful for a task, best first."""
    if token_budget < _MIN_TOKEN_BUDGET:
        raise UsageError(f"The token budget must be at least {_MIN_TOKEN_BUDGET}, not {token_budget}.")
    archive = stores.archive
    if workspace is not None:
        archive.sessions.workspace_hashes(workspace)  # raises WorkspaceNotFoundError if it is ambiguous
    candidates = stores.index.query(
        lambda index: _find_candidates(archive, index, task, workspace=workspace, progress=progress)
    )
    groups = _by_session(archive, candidates)
    redact: RedactText = _sanitize
    if redactor is not None:
        ids = {candidate.session for _, group in groups[:_MAX_RECALLED_SESSIONS] for candidate in group}
        redaction = Redaction(archive, stores.index.index, redactor)
        redaction.learn(ids)
        redact = redaction.redact
    measure = measure or _measure_json
    result = RecallResult(task=task, sessions=(), token_budget=token_budget, left_out=len(groups))
    overhead_tokens = 0
    for summary, group in groups[:_MAX_RECALLED_SESSIONS]:
        remaining = token_budget - measure(result)
        if result.sessions and remaining < _MIN_SESSION_TOKENS:
            break
        share = max(int(remaining * _SESSION_SHARE), min(remaining, _MIN_SESSION_TOKENS))
        session = _without_excerpts(summary, redact)
        overhead_tokens = overhead_tokens or _excerpt_tokens(session, result, measure)
        tokens = share - (measure(_with_session(result, session)) - measure(result))  # for the excerpts
        for _ in range(_MAX_ATTEMPTS):
            excerpts = _add_excerpts(
                archive, session, group, tokens=tokens, overhead_tokens=overhead_tokens, redact=redact
            )
            longer = _with_session(result, excerpts)
            excess = measure(longer) - token_budget
            if excess <= 0:
                break
            tokens -= excess
        else:
            break
        result = longer
    return result


def _sanitize(text: str, _ref: str, _position: int) -> str:
    return sanitize(text)


def _measure_json(result: RecallResult) -> int:
    """Return the tokens of the sessions as JSON."""
    document = [to_document(session) for session in result.sessions]
    return estimate_tokens(msgspec.json.encode(document).decode())


def _excerpt_tokens(
    session: RecalledSession, result: RecallResult, measure: Callable[[RecallResult], int]
) -> int:
    """Return the tokens of an excerpt without its texts."""
    excerpt = Excerpt(
        agent_ref=None,
        message_index=1000,
        role="assistant",
        timestamp=session.updated_at,
        asked=".",
        text=".",
        outcome=".",
    )
    with_excerpt = _with_session(result, replace(session, excerpts=(excerpt,)))
    return measure(with_excerpt) - measure(_with_session(result, session))


def _with_session(result: RecallResult, session: RecalledSession) -> RecallResult:
    return replace(result, sessions=(*result.sessions, session), left_out=result.left_out - 1)


def _by_session(
    archive: Archive, candidates: list[_Candidate]
) -> list[tuple[SessionSummary, list[_Candidate]]]:
    """Group candidates by session. A subagent belongs to the session that started it."""
    summaries = archive.sessions.by_ids({candidate.session for candidate in candidates})
    groups: dict[str, tuple[SessionSummary, list[_Candidate]]] = {}
    for candidate in candidates:
        summary = summaries.get(candidate.session)
        if summary is None:
            continue
        if summary.parent_ref is not None:
            summary = find_session(archive, summary.parent_ref)
        groups.setdefault(summary.ref, (summary, []))[1].append(candidate)
    return list(groups.values())


def _find_candidates(
    archive: Archive,
    index: Index,
    task: str,
    *,
    workspace: str | None = None,
    progress: Progress | None = None,
) -> list[_Candidate]:
    """Return the sessions that are relevant to a task, best first. ``progress`` can cancel between steps."""
    words = list(dict.fromkeys(_split_words(task)))[:_MAX_TASK_WORDS]
    if not words:
        return []
    all_clauses = tuple(Clause((Word(word),)) for word in words)
    query = index.with_language(Query(all_clauses, language=detect_language(list(map(str.lower, words)))))
    clauses = query.content_words
    filters = [MessageFilter("workspace", workspace)] if workspace else []
    query = resolve_filters(archive, query.with_filters(*filters))
    report = progress or (lambda done, total: None)
    report(0, _STEPS)
    hits = index.search(query, limit=_MAX_CANDIDATE_SESSIONS, with_counts=False, synonyms=synonyms).hits
    min_score = max((hit.score for hit in hits), default=0.0) * _MIN_RELATIVE_SCORE
    relevant = [hit for hit in hits if hit.score >= min_score]
    report(1, _STEPS)
    prose_positions = _find_prose(index, clauses, frozenset(hit.session for hit in relevant))
    report(2, _STEPS)
    is_significant = len(clauses) >= _MIN_SIGNIFICANT_WORDS
    return [
        _Candidate(
            hit.session,
            tuple(dict.fromkeys([*prose_positions.get(hit.session, [])[:_PROSE_POSITIONS], hit.position])),
            Query(clauses, language=query.language),
            frozenset([hit.position] if is_significant and hit.is_strict else []),
        )
        for hit in relevant
    ]


def _find_prose(index: Index, clauses: tuple[Clause, ...], sessions: frozenset[int]) -> dict[int, list[int]]:
    """Return the positions of prose with some of the words in each session, best first."""
    query = Query((*clauses, _PROSE)).within(sessions)
    result = index.search(query, limit=_MAX_PROSE_HITS, by="message", match_any=True, with_counts=False)
    positions: defaultdict[int, list[int]] = defaultdict(list)
    for hit in result.hits:
        positions[hit.session].append(hit.position)
    return positions


def _split_words(task: str) -> Iterator[str]:
    for word in task.split():
        stripped = word.strip(_PUNCTUATION)
        if any(map(str.isalnum, stripped)):
            yield stripped


def _without_excerpts(summary: SessionSummary, redact: RedactText) -> RecalledSession:
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


def _add_excerpts(
    archive: Archive,
    session: RecalledSession,
    candidates: Sequence[_Candidate],
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


def _load_messages(archive: Archive, candidates: Iterable[_Candidate]) -> list[_RelevantMessage]:
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


@cache
def _synonym_table() -> dict[str, tuple[str, ...]]:
    """Return the base forms of the synonyms of each word in ``synonyms.txt``."""
    table: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for line in files("backscroll.search").joinpath("synonyms.txt").read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        words = line.split()
        for word in words:
            table[word].update(dict.fromkeys(other for other in words if other != word))
    return {word: tuple(others) for word, others in table.items()}


def synonyms(word: str) -> tuple[str, ...]:
    """Return the synonyms of a lower-case word in all their forms, without the word itself."""
    forms = inflections(word)
    table = _synonym_table()
    bases = dict.fromkeys(base for form in forms for base in table.get(form, ()))
    return tuple(dict.fromkeys(form for base in bases for form in inflections(base) if form not in forms))
