"""Build the entry of a commit without a language model, and print it as Markdown.

The order of messages decides first what is quoted: an answer that the user accepts is a decision in any
language. Phrases decide within a message. Questions with options and plans are decisions that a tool
recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, tzinfo
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

from msgspec import Struct

from backscroll.highlights.calls import (
    CommandRun,
    Question,
    answered_questions,
    command_run,
    error_line,
    is_fixed_by,
    is_similar,
    outcome_line,
    proposed_plan,
    reports_outcome,
)
from backscroll.highlights.sentences import (
    information_score,
    is_acknowledgement,
    is_continuation,
    is_correction,
    is_dropped,
    is_open,
    is_proposal,
    is_question,
    is_rationale_question,
    is_reasoned,
    is_report_of_result,
    sentences,
    starts_with_agreement,
)
from backscroll.journal.material import Exchange, Material, Statement, exchanges, joined
from backscroll.model.journal import SECTION_TITLES, JournalEntry, Quote, SectionName
from backscroll.model.message import ToolCall
from backscroll.model.text import one_line, pluralize
from backscroll.render.humanize import short_ref
from backscroll.render.markdown import code_span
from backscroll.render.tool_calls import path_params

_MAX_TITLE_CHARS = 120
_MAX_PROMPT_CHARS = 700
_MAX_DISCUSSION = 14  # quotes
_MAX_REMAINING_SENTENCES = 2  # of one reply, in the discussion
_MAX_FILES = 20
_MAX_READ_FILES = 8
_MAX_SYMBOLS = 8
_SYMBOL = re.compile(
    r"^\s*(?:export\s+|default\s+|pub(?:\([a-z]+\))?\s+|public\s+|private\s+|static\s+|async\s+|abstract\s+)*"
    r"(?:def|class|fn|func|function|struct|enum|trait|interface|type|create table(?: if not exists)?)\s+"
    r"(?:\([^)]*\)\s*)?([A-Za-z_]\w*)",
    re.IGNORECASE,
)
# Lines at the end of a message that name authors or the tool.
_TRAILER = re.compile(r"[A-Z][\w-]*-by: .+|\W*Generated with |Change-Id: ", re.IGNORECASE)
_TEST_NAME = re.compile(r"^test|_test$|^it_|^should_", re.IGNORECASE)
_CODE = re.compile(r"(`+)(?:(?!\1).)+\1", re.DOTALL)
_HEADING = re.compile(r"^#{1,3}(?=\s)", re.MULTILINE)
_HTML = re.compile(r"<(?=[A-Za-z/!?])")

_MAX_POINTS: dict[SectionName, int] = {
    "synopsis": 6,
    "accomplishments": 6,
    "frustrations": 6,
    "decisions": 8,
    "open": 5,
}
_MIN_OUTCOME_SCORE = -1.0  # a reason is better than nothing; a remark at the end is not
_SHORT_ANSWER_SENTENCES = 5  # all are part of a decision; of a longer one only some
_SHORT_ANSWER_CHARS = 700
_MAX_CHOSEN = 4  # sentences of a longer answer
_MAX_CHAIN = 3  # exchanges before a decision
_MAX_QUOTE_CHARS = 500
_MAX_REPORT_SENTENCES = 2
_SAME_PROMPT_RATIO = 0.6  # an abandoned prompt this similar to the next one was only rephrased
_MAX_ANSWER_CHARS = 300
_MAX_PLAN_SENTENCES = 5
_LIST_NUMBER = re.compile(r"^\d{1,2}[.)]\s*")
_REPORTED_ERROR = re.compile(
    r"(?:^|(?<=[\s(:\"']))((?:[A-Z]\w*\.)*[A-Z]\w*(?:Error|Exception): .+|error(?:\[\w+\])?: .+|"
    r"(?:thread '\w+' )?panicked.*|Traceback .*|fatal: .+)"
)
# A wrong path or a missing program says nothing about the work, unless the assistant comments on it.
_TRIVIAL = re.compile(
    r"command not found|No such file or directory|file or directory not found|unknown option|usage:", re.I
)
_MAX_ERROR_CHARS = 240
_MAX_COMMAND_CHARS = 100
_MAX_NOTE_SENTENCES = 3
_Kind = Literal["reply", "note", "diagnosis"]  # closing text of a turn, text before it, text before all edits


def build_entry(material: Material, zone: tzinfo | None = None) -> JournalEntry:
    """Return the entry of a commit. Every statement is a quote, or a fact of the commit or of a command."""
    at = datetime.fromtimestamp(material.commit.authored_at, UTC)
    day = at.astimezone(zone).date()
    talk = exchanges(material.turns)
    used: set[str] = set()
    result = _outcome(talk)
    if result is not None and not is_reasoned(result.text) and not is_dropped(result.text):
        used.add(result.text)  # a decision is quoted again, with what belongs to it
    points = [*_failure_points(talk, used), *_conversation_points(talk, used)]
    quotes: list[Quote] = []
    sections: dict[SectionName, str] = {}

    def put(name: SectionName, text: str) -> None:
        if text.strip():
            sections[name] = text

    put("summary", "\n\n".join(_summary(material, talk, result, quotes, day, zone)))
    for name in ("synopsis", "accomplishments", "frustrations", "decisions", "open"):
        chosen = _select(points, name)
        quotes += [quote for point in chosen for quote in point.quotes]
        items = [_item(point, day, zone) for point in chosen]
        if name == "synopsis":
            items += _symbols(material)
        if name == "accomplishments":
            items += [
                f"Passed: {code_span(one_line(run.command, 100))}, {text}"
                for run, text in _passed_checks(talk)
            ]
        put(name, bullet_list(items))
    own = "\n>\n".join(_discussion(talk, quotes, used, day, zone))
    put("discussion", "\n\n".join(filter(None, [own, *_context(material, quotes, day, zone)])))
    put("files", _files_section(material))
    put("commit", _commit_section(material, zone))
    return JournalEntry(
        sha=material.commit.sha,
        patch_id=material.patch_id,
        subject=material.commit.subject,
        at=at,
        sections={name: sections[name] for name in SECTION_TITLES if name in sections},
        quotes=tuple(dict.fromkeys(quotes)),
    )


def _item(point: _Point, day: date, zone: tzinfo | None) -> str:
    if point.is_dialogue:
        first, *rest = _by_message(point.quotes)
        label = f"{point.label}: " if point.label else ""
        lines = [f"{label}{inline_quotes(first, day, zone)}"]
        return "\n".join([*lines, *(f"  - {inline_quotes(group, day, zone)}" for group in rest)])
    said = inline_quotes(point.quotes, day, zone)
    label = f"{point.label}: " if point.label and said and not point.label.endswith(".") else point.label
    if point.details and point.section == "frustrations":
        label = label.removesuffix(": ")
        return ". ".join(filter(None, (label, said.removesuffix("."), *point.details)))
    return " ".join(filter(None, (label.strip(), said, *point.details)))


def _by_message(quotes: Sequence[Quote]) -> list[list[Quote]]:
    grouped = groupby(quotes, key=lambda quote: (quote.session_ref, quote.position))
    return [list(group) for _, group in grouped]


def _summary(
    material: Material,
    talk: Sequence[Exchange],
    result: Quote | None,
    quotes: list[Quote],
    day: date,
    zone: tzinfo | None,
) -> Iterator[str]:
    """Yield the body of the commit message, the topics of the sessions, and what came out."""
    lines = material.commit.message.strip().splitlines()[1:]
    body = "\n".join(line for line in lines if not _TRAILER.match(line)).strip()
    if body:
        yield escape_html(body)
    # The title of a session describes its start; a later commit may be about something else.
    started = {turn.session.ref for turn in material.turns if turn.is_start}
    titles = dict.fromkeys(
        one_line(session.title, _MAX_TITLE_CHARS)
        for session in material.sessions
        if session.title and session.ref in started
    )
    topics = [title for title in titles if title.casefold() != material.commit.subject.casefold()]
    if topics:
        yield escape_html(f"{'Topics' if len(topics) > 1 else 'Topic'}: {'; '.join(topics)}")
    if result is not None:
        quotes.append(result)
        yield f"Outcome: {inline_quotes([result], day, zone)}"


def _symbols(material: Material) -> list[str]:
    """Return what the commit defines, by file."""
    items = []
    for change in material.changes:
        names = [
            found[1]
            for line in change.added
            if (found := _SYMBOL.match(line.decode("utf-8", "replace"))) is not None
        ]
        tests = [name for name in names if _TEST_NAME.search(name)]
        others = list(dict.fromkeys(name for name in names if name not in tests))
        parts = [code_span(name) for name in others[:_MAX_SYMBOLS]]
        if len(others) > _MAX_SYMBOLS:
            parts.append(f"{len(others) - _MAX_SYMBOLS} more")
        if tests:
            parts.append(pluralize(len(tests), "test"))
        if parts:
            items.append(f"{code_span(change.path)} defines {', '.join(parts)}")
    return items[:_MAX_FILES]


def _discussion(
    talk: Sequence[Exchange], quotes: list[Quote], used: set[str], day: date, zone: tzinfo | None
) -> Iterator[str]:
    """Yield the prompts and replies that no other section quotes."""
    found: list[tuple[float, Quote]] = []
    quoted = {(quote.session_ref, quote.position): quote.text for quote in quotes if quote.speaker == "user"}
    for exchange in talk:
        rest = list(_remaining(exchange, used))
        prompt = exchange.prompt
        if prompt is not None:
            quote = prompt.quote(_shortened(prompt.text, _MAX_PROMPT_CHARS))
            is_known = quoted.get((quote.session_ref, quote.position)) == quote.text
            if not is_known or rest:
                found.append((3.0 if exchange.is_first else 2.0, quote))
        found += rest
    limit = sorted((weight for weight, _ in found), reverse=True)[:_MAX_DISCUSSION]
    count = 0
    for weight, quote in found:
        if weight >= limit[-1] and count < _MAX_DISCUSSION:
            count += 1
            quotes.append(quote)
            yield quote_block(quote, day, zone)


def _context(material: Material, quotes: list[Quote], day: date, zone: tzinfo | None) -> Iterator[str]:
    """Yield the discussion of each session that was open at the time of the commit."""
    for _, group in groupby(material.context, key=lambda turn: turn.session.ref):
        turns = list(group)
        title = turns[0].session.title or turns[0].session.first_message_preview or ""
        name = (
            f"{code_span(short_ref(turns[0].session.ref))} {escape_html(one_line(title, _MAX_TITLE_CHARS))}"
        )
        said = "\n>\n".join(_discussion(exchanges(turns), quotes, set(), day, zone))
        yield "\n\n".join(filter(None, [f"Also open at the time: {name.strip()}", said]))


def _remaining(exchange: Exchange, used: set[str]) -> Iterator[tuple[float, Quote]]:
    """Yield informative sentences of the assistant that no section quotes, with their weight."""
    for statement in exchange.answers:
        rest = [
            s
            for s in statement.sentences
            if s not in used and information_score(s) and not is_acknowledgement(s)
        ]
        best = sorted(rest, key=lambda s: -information_score(s))[:_MAX_REMAINING_SENTENCES]
        for sentence in (s for s in rest if s in best):
            yield 1 + 0.2 * information_score(sentence), statement.quote(sentence)


def _files_section(material: Material) -> str:
    """Return the files of the commit, and those that the conversation read besides."""
    changed = {size.path for size in material.sizes}
    items = []
    for size in material.sizes[:_MAX_FILES]:
        counts = (
            f"+{size.added:,} −{size.removed:,}"
            if size.added is not None and size.removed is not None
            else "binary"
        )
        items.append(f"{code_span(size.path)} ({counts})")
    if len(material.sizes) > _MAX_FILES:
        items.append(f"{len(material.sizes) - _MAX_FILES:,} more")
    read = _read_files(material, changed)
    if read:
        items.append(f"Read: {', '.join(code_span(path) for path in read)}")
    return bullet_list(items)


def _read_files(material: Material, changed: set[str]) -> list[str]:
    """Return files in the workspaces that calls name and the commit does not change."""
    found: dict[str, None] = {}
    for turn in material.turns:
        root = (turn.session.workspace_path or "").rstrip("/")
        for part in turn.parts:
            tool = part.message.tool
            if tool is None or tool.edits or not root:
                continue
            for path in path_params(tool):
                if path.startswith(f"{root}/"):
                    found[path.removeprefix(f"{root}/")] = None
    return [path for path in found if path not in changed][:_MAX_READ_FILES]


def _commit_section(material: Material, zone: tzinfo | None) -> str:
    """Return hash, author, time, size and sessions."""
    commit = material.commit
    at = datetime.fromtimestamp(commit.authored_at, UTC).astimezone(zone)
    added = sum(size.added or 0 for size in material.sizes)
    removed = sum(size.removed or 0 for size in material.sizes)
    branch = f" on {code_span(material.branch)}" if material.branch else ""
    items = [
        f"{code_span(commit.sha)} by {escape_html(commit.author)}, {at:%Y-%m-%d %H:%M}{branch}",
        f"{pluralize(len(material.sizes), 'file')} changed, +{added:,} −{removed:,}",
    ]
    for session in material.sessions:
        title = escape_html(one_line(session.title or session.first_message_preview or "", 80))
        models = ", ".join(session.models)
        start = short_time(session.created_at, at.date(), zone)
        facts = ", ".join(filter(None, (models, start)))
        items.append(
            f"Session {code_span(short_ref(session.ref))} {title}" + (f" ({facts})" if facts else "")
        )
    return bullet_list(items)


# Markdown


def entry_text(entry: JournalEntry, zone: tzinfo | None) -> str:
    """Return an entry with its headings."""
    heading = f"## {entry.at.astimezone(zone):%H:%M} {escape_html(' '.join(entry.subject.split()))}"
    parts = [f"### {SECTION_TITLES[name]}\n\n{_contained(text)}" for name, text in entry.sections.items()]
    if entry.model is not None:
        parts.append(f"Written by {escape_html(entry.model)}; every quote was checked.")
    return "\n\n".join([heading, *parts]) + "\n"


def _contained(text: str) -> str:
    """Return the text of a section without headings of its level and without markers."""
    text = _HEADING.sub("####", text.strip())
    return text.replace("<!-- backscroll:", "<\\!-- backscroll:")


def short_time(at: datetime | None, day: date, zone: tzinfo | None, *, is_inferred: bool = False) -> str:
    """Return the time of day, with the date if it is another day; empty if the time is unknown.

    An inferred time has a ``~`` before it.
    """
    if at is None:
        return ""
    local = at.astimezone(zone)
    mark = "~" if is_inferred else ""
    return f"{mark}{local:%H:%M}" if local.date() == day else f"{mark}{local:%Y-%m-%d %H:%M}"


def escape_html(text: str) -> str:
    """Escape HTML tags and comments outside of code, so that a quote cannot change the page around it."""
    parts: list[str] = []
    end = 0
    for code in _CODE.finditer(text):
        parts += [_HTML.sub(r"\\<", text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, _HTML.sub(r"\\<", text[end:])]).replace("<!--", "<\\!--")


def inline_quotes(quotes: Sequence[Quote], day: date, zone: tzinfo | None) -> str:
    """Return quotes in one line, each group with its speaker and time."""
    parts: list[str] = []
    for group in _by_message(quotes):
        texts = [f"“{escape_html(' '.join(quote.text.split()))}”" for quote in group]
        by = ", ".join(filter(None, (group[0].speaker, _quote_time(group[0], day, zone))))
        parts.append(f"{' … '.join(texts)} ({by})")
    return " ".join(parts)


def _quote_time(quote: Quote, day: date, zone: tzinfo | None) -> str:
    return short_time(quote.at, day, zone, is_inferred=quote.has_inferred_time)


def quote_block(quote: Quote, day: date, zone: tzinfo | None) -> str:
    """Return a quote as a block with its speaker and time."""
    by = ", ".join(filter(None, (f"**{quote.speaker.capitalize()}**", _quote_time(quote, day, zone))))
    lines = escape_html(f"{by}: {quote.text}").splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def bullet_list(items: Iterable[str]) -> str:
    """Return a Markdown list."""
    return "\n".join(f"- {item}" for item in items)


# What is quoted


class _Point(Struct, frozen=True):
    """One item of a section. The text before and after the quotes is added when it is rendered."""

    section: SectionName
    label: str  # such as "Agreed"; may be empty
    quotes: tuple[Quote, ...]
    weight: float
    order: int  # position in the material
    details: tuple[str, ...] = ()  # Markdown, after the quotes
    is_dialogue: bool = False  # each message is shown on its own line


def _select(points: Iterable[_Point], section: SectionName) -> list[_Point]:
    """Return the points of a section with the highest weight, in the order of the material."""
    candidates = [point for point in points if point.section == section]
    candidates.sort(key=lambda point: (-point.weight, point.order))
    chosen = candidates[: _MAX_POINTS.get(section, len(candidates))]
    return sorted(chosen, key=lambda point: (point.order, point.quotes[0].position if point.quotes else 0))


def _conversation_points(exchanges: Sequence[Exchange], used: set[str]) -> Iterator[_Point]:
    """Yield the points of a conversation. ``used`` are sentences that other sections quote already."""
    chain: list[Exchange] = []  # talk without edits, until the user decides
    for number, exchange in enumerate(exchanges):
        if chain and chain[-1].session_ref != exchange.session_ref:
            yield from _undecided(chain, number - 1, used)
            chain = []
        yield from _abandoned(exchange, number)
        yield from _choice_points(exchange, number)
        prompt = exchange.prompt
        is_settled = prompt is not None and (not prompt.is_question or starts_with_agreement(prompt.text))
        if chain and (is_settled or exchange.has_edits):
            yield from _decision(chain[-_MAX_CHAIN:], exchange, number, used)
            chain = []
        elif not exchange.is_first:
            yield from _request(exchange, number, used)
        for report in exchange.reports:
            yield from _report(report, number, used)
        if _is_open_to_decision(exchange, exchanges, number):
            chain.append(exchange)
            continue
        yield from _rationale(exchange, number, used)
        is_explaining = prompt is not None and exchange.is_first and is_rationale_question(prompt.text)
        for index, note in enumerate(note for note in exchange.notes if note not in exchange.closing):
            is_before_edits = bool(exchange.edits) and note.position < exchange.edits[0]
            kind: _Kind = "diagnosis" if index == 0 and is_before_edits else "note"
            yield from _classified(note, number, used, kind, is_last=False, is_explaining=is_explaining)
        for reply in exchange.closing:
            yield from _classified(
                reply, number, used, "reply", is_last=exchange.is_last, is_explaining=is_explaining
            )
    yield from _undecided(chain, len(exchanges), used)


def _outcome(exchanges: Sequence[Exchange]) -> Quote | None:
    """Return the sentence that says best what came out: of the replies after the last edits."""
    edited = [number for number, exchange in enumerate(exchanges) if exchange.has_edits]
    scores: dict[str, float] = {}
    replies: dict[str, Statement] = {}
    for exchange in exchanges[edited[-1] :] if edited else ():
        for statement in exchange.closing:
            said = [s for s in statement.sentences if not is_acknowledgement(s) and not is_question(s)]
            for index, sentence in enumerate(said):
                section = _section(sentence, "reply", is_last=True)
                if section != "open":
                    replies[sentence] = statement
                    scores[sentence] = _outcome_score(sentence, index, section)
    best = max(scores, key=scores.__getitem__, default=None)
    if best is None or scores[best] < _MIN_OUTCOME_SCORE:
        return None
    return replies[best].quote(best)


def _outcome_score(sentence: str, index: int, section: SectionName | None) -> float:
    is_result = is_report_of_result(sentence)
    is_remark = index > 0 and not is_result
    informative = min(information_score(sentence), 2) * 0.4
    return is_result + informative - (section == "decisions") - 2 * is_remark - 0.1 * index


def _is_choice(sentence: str) -> bool:
    """Return whether a sentence states a choice: a proposal, a reason or a dropped alternative."""
    return is_reasoned(sentence) or is_proposal(sentence) or is_dropped(sentence)


def _shortened(text: str, max_chars: int = 400) -> str:
    """Return a text, or its first sentences if it is long."""
    text = text.strip()
    if len(text) <= max_chars:
        return text
    end = max(text.rfind(mark, 0, max_chars) for mark in (". ", "! ", "? ", "\n", "。"))
    return text[: end + 1].strip() if end > 0 else text[:max_chars].rsplit(" ", 1)[0]


def _abandoned(exchange: Exchange, number: int) -> Iterator[_Point]:
    """Yield prompts that the user took back, with their answers."""
    for prompt, answer in exchange.abandoned:
        similar = SequenceMatcher(None, prompt.text, exchange.prompt.text if exchange.prompt else "")
        if similar.ratio() > _SAME_PROMPT_RATIO or not prompt.sentences:
            continue
        quotes = [prompt.quote(_shortened(prompt.text))]
        if answer is not None:
            quotes += joined(answer, _chosen(answer), _MAX_QUOTE_CHARS)
        yield _Point("decisions", "Taken back", tuple(quotes), 3, number, is_dialogue=True)


def _choice_points(exchange: Exchange, number: int) -> Iterator[_Point]:
    """Yield the questions that the user answered and the plans that the user accepted or rejected."""
    for part in exchange.parts:
        tool, at, inferred = part.message.tool, part.message.timestamp, part.message.has_inferred_time
        if tool is None or not part.message.is_active:
            continue
        for question in answered_questions(tool):
            quote = Quote("assistant", question.text, at, exchange.session_ref, part.position, inferred)
            details = tuple(_answer(question, tool.result or ""))
            yield _Point("decisions", "", (quote,), 7, number, details)
        plan = proposed_plan(tool)
        if plan is not None:
            said = [_LIST_NUMBER.sub("", sentence) for sentence in sentences(plan.text)]
            best = sorted(said, key=lambda sentence: -information_score(sentence))[:_MAX_PLAN_SENTENCES]
            quotes = tuple(
                Quote("assistant", s, at, exchange.session_ref, part.position, inferred)
                for s in said
                if s in best
            )
            label = "Rejected plan" if plan.is_rejected else "Plan"
            yield _Point("decisions", label, quotes, 6, number)


def _answer(question: Question, result: str) -> Iterator[str]:
    """Yield the answer to a question, and the options that were not taken."""
    answered = result.partition(question.text)[2] or result
    taken = [label for label in question.options if label in answered]
    answer = ", ".join(taken) or one_line(answered.strip(' "=\n'), _MAX_ANSWER_CHARS)
    yield f"Answer: “{answer}”."
    others = [label for label in question.options if label not in taken]
    if others:
        yield f"Not taken: {', '.join(f'“{label}”' for label in others)}."


def _is_open_to_decision(exchange: Exchange, exchanges: Sequence[Exchange], number: int) -> bool:
    """Return whether an exchange changed nothing and the user goes on in the same session."""
    following = exchanges[number + 1 : number + 2]
    return (
        exchange.reply is not None
        and not exchange.has_edits
        and bool(following)
        and following[0].session_ref == exchange.session_ref
    )


def _decision(chain: Sequence[Exchange], exchange: Exchange, number: int, used: set[str]) -> Iterator[_Point]:
    """Yield a decision: what was proposed, questions about it, and what the user said in the end."""
    quotes: list[Quote] = []
    score = 0.0
    for index, talk in enumerate(chain):
        assert talk.reply is not None
        if talk.prompt is not None and not talk.is_first and (index or talk.prompt.is_question):
            quotes.append(talk.prompt.quote(_shortened(talk.prompt.text)))
        chosen = [sentence for sentence in _chosen(talk.reply) if sentence not in used]
        quotes += joined(
            talk.reply, [sentence for sentence in chosen if sentence not in used], _MAX_QUOTE_CHARS
        )
        used.update(chosen)
        score += sum(map(information_score, chosen))
    label = ""
    response = exchange.prompt
    if response is None:  # a chain precedes an exchange of the same session, which starts with a prompt
        return
    is_correcting = is_correction(response.text) and not starts_with_agreement(response.text)
    if exchange.follows_rejection:
        yield _correction(exchange, number)
    else:
        is_plain = not response.is_question or starts_with_agreement(response.text)
        said = [s for s in response.sentences if is_plain or not is_question(s)]
        if is_plain:
            quotes.append(response.quote(_shortened(response.text)))
        else:
            quotes += joined(response, said, _MAX_QUOTE_CHARS)
        label = "Rejected" if is_correcting and said else ""
        used.update(said)
    if any(quote.speaker == "assistant" for quote in quotes):
        yield _Point("decisions", label, tuple(quotes), 6 + 0.1 * score, number, is_dialogue=True)
    elif quotes:
        yield from _request(exchange, number, set())


def _chosen(answer: Statement) -> list[str]:
    """Return the sentences of an answer that belong to the decision."""
    said = [sentence for sentence in answer.sentences if not is_acknowledgement(sentence)]
    if len(said) <= _SHORT_ANSWER_SENTENCES and len(answer.text) <= _SHORT_ANSWER_CHARS:
        return said
    scores = {sentence: _decision_score(sentence) for sentence in said}
    best = sorted(said, key=lambda sentence: -scores[sentence])[:_MAX_CHOSEN]
    return [sentence for sentence in said if sentence in best and scores[sentence] >= 1]


def _decision_score(sentence: str) -> float:
    marks = is_proposal(sentence) + is_reasoned(sentence) + is_dropped(sentence)
    return marks + 0.2 * information_score(sentence)


def _rationale(exchange: Exchange, number: int, used: set[str]) -> Iterator[_Point]:
    """Yield the answer to a question about a choice that was made before."""
    prompt = exchange.prompt
    answers = exchange.notes if exchange.has_edits else exchange.answers[-1:]
    answer = answers[0] if answers else None
    if prompt is None or answer is None or exchange.is_first or not prompt.is_question:
        return
    if not is_rationale_question(prompt.sentences[-1]):
        return
    chosen = [sentence for sentence in _chosen(answer) if sentence not in used and not is_open(sentence)]
    quotes = (prompt.quote(_shortened(prompt.text)), *joined(answer, chosen, _MAX_QUOTE_CHARS))
    used.update(chosen)
    if chosen:
        yield _Point("decisions", "", quotes, 5, number, is_dialogue=True)


def _request(exchange: Exchange, number: int, used: set[str]) -> Iterator[_Point]:
    """Yield what the user asked for after the start of a session."""
    prompt = exchange.prompt
    if prompt is None:
        return
    if exchange.follows_rejection or (is_correction(prompt.text) and not starts_with_agreement(prompt.text)):
        yield _correction(exchange, number)
        return
    wanted = [
        s for s in prompt.sentences if not is_question(s) and not is_acknowledgement(s) and s not in used
    ]
    if wanted and not prompt.is_question:
        quotes = tuple(joined(prompt, wanted, _MAX_QUOTE_CHARS))[:2]
        weight = 3 + 0.2 * sum(map(information_score, wanted)) + starts_with_agreement(prompt.text)
        yield _Point("decisions", "", quotes, weight, number)


def _correction(exchange: Exchange, number: int) -> _Point:
    prompt = exchange.prompt
    assert prompt is not None
    quotes = (prompt.quote(_shortened(prompt.text)),)
    if not exchange.follows_rejection:
        return _Point("frustrations", "Corrected by the user", quotes, 4, number)
    label = f"The user stopped {exchange.rejected_call}" if exchange.rejected_call else "The user intervened"
    return _Point("frustrations", label, quotes, 5, number)


def _report(report: Statement, number: int, used: set[str]) -> Iterator[_Point]:
    """Yield the most informative sentences of a subagent's result."""
    scores = {sentence: information_score(sentence) for sentence in report.sentences}
    best = sorted(report.sentences, key=lambda sentence: -scores[sentence])[:_MAX_REPORT_SENTENCES]
    chosen = [sentence for sentence in best if scores[sentence] and sentence not in used]
    quotes = tuple(joined(report, chosen, _MAX_QUOTE_CHARS))
    used.update(chosen)
    if quotes:
        yield _Point("synopsis", "A subagent found", quotes, 2, number)


def _undecided(chain: Sequence[Exchange], number: int, used: set[str]) -> Iterator[_Point]:
    """Yield the points of talk that led to no decision."""
    for exchange in chain:
        if exchange.reply is not None:
            yield from _classified(exchange.reply, number, used, "diagnosis", is_last=exchange.is_last)


def _classified(
    statement: Statement,
    number: int,
    used: set[str],
    kind: _Kind,
    *,
    is_last: bool,
    is_explaining: bool = False,
) -> Iterator[_Point]:
    """Yield the sentences of a message in the sections where they belong."""
    sections: dict[SectionName, list[str]] = {}
    section: SectionName | None = None
    for sentence in statement.sentences:
        if sentence in used or is_acknowledgement(sentence) or is_question(sentence):
            section = None
            continue
        before, section = section, _section(sentence, kind, is_last=is_last)
        if before is not None and section in ("synopsis", None) and is_continuation(sentence):
            section = before
        if (
            section == "decisions"
            and is_explaining
            and not is_proposal(sentence)
            and not is_dropped(sentence)
        ):
            section = "synopsis"
        if section is not None:
            sections.setdefault(section, []).append(sentence)
    for section, chosen in sections.items():
        used.update(chosen)
        for quote in joined(statement, chosen, _MAX_QUOTE_CHARS):
            weight = 2 + 0.3 * information_score(quote.text) + _decision_score(quote.text) - (kind == "note")
            yield _Point(section, "", (quote,), weight, number)


def _section(sentence: str, kind: _Kind, *, is_last: bool) -> SectionName | None:
    if kind != "reply":
        is_worth = kind == "diagnosis" or information_score(sentence) > 0
        return "decisions" if _is_choice(sentence) else "synopsis" if is_worth else None
    has_number = any(map(str.isdigit, sentence))
    if is_report_of_result(sentence) and has_number and not is_reasoned(sentence) and not is_open(sentence):
        return "accomplishments"
    if is_open(sentence) and not is_dropped(sentence):
        return "open"
    if _is_choice(sentence):
        return "decisions"
    if is_last and is_open(sentence, is_last=True):
        return "open"
    if is_report_of_result(sentence):
        return "accomplishments"
    return "synopsis" if information_score(sentence) else None


class _Step(Struct, frozen=True):
    number: int  # of the exchange
    tool: ToolCall
    run: CommandRun


def _failure_points(exchanges: Sequence[Exchange], used: set[str]) -> Iterator[_Point]:
    """Yield failed commands that later succeeded or were discussed, and errors that the user reported."""
    steps = list(_steps(exchanges))
    failed: list[CommandRun] = []
    for index, step in enumerate(steps):
        run = step.run
        if not run.is_failed or any(_is_repeated(run, earlier) for earlier in failed):
            continue
        session = exchanges[step.number].session_ref
        later = [other for other in steps[index + 1 :] if exchanges[other.number].session_ref == session]
        passed = next((other for other in later if is_fixed_by(run, other.run)), None)
        note = _note(exchanges, step, passed)
        error = error_line(step.tool)
        is_trivial = _TRIVIAL.search(error) is not None
        if not _matters(
            run, is_explained=note is not None, is_fixed=passed is not None, is_trivial=is_trivial
        ):
            continue
        failed.append(run)
        yield _failed_point(step, error, note, passed, used)
    yield from _reported(exchanges, used)


def _passed_checks(exchanges: Sequence[Exchange]) -> list[tuple[CommandRun, str]]:
    """Return the checks that passed last, each with the line of its output that says so."""
    last: dict[str, tuple[CommandRun, str]] = {}
    for step in _steps(exchanges):
        run = step.run
        if not run.is_check or run.subject is not None:
            continue
        for command, (other, _) in list(last.items()):
            if is_similar(run, other):
                del last[command]
        if run.is_failed or run.status != "completed":
            continue
        outcome = outcome_line(step.tool)
        if outcome:
            last[run.command] = (run, outcome)
    return list(last.values())


def _steps(exchanges: Sequence[Exchange]) -> Iterator[_Step]:
    """Yield the commands that ran."""
    for number, exchange in enumerate(exchanges):
        for part in exchange.parts:
            tool = part.message.tool
            if tool is None or not part.message.is_active or tool.decision == "rejected":
                continue
            run = command_run(tool, part.position)
            if run is not None:
                yield _Step(number, tool, run)


def _matters(run: CommandRun, *, is_explained: bool, is_fixed: bool, is_trivial: bool) -> bool:
    """Return whether a failure was worth a comment, or was fixed. A search that finds nothing also fails."""
    if is_fixed:
        return is_explained or not is_trivial
    is_crash = run.exit is not None and run.exit > 2
    return is_explained and (run.is_check or is_crash)


def _is_repeated(run: CommandRun, earlier: CommandRun) -> bool:
    return run.command == earlier.command and run.last_line == earlier.last_line


def _note(exchanges: Sequence[Exchange], step: _Step, passed: _Step | None) -> Statement | None:
    """Return the first text of the assistant between a failure and the success."""
    end = passed.run.position if passed is not None else None
    exchange = exchanges[step.number]
    following = [later for later in exchanges[step.number :] if later.session_ref == exchange.session_ref][:2]
    for later in following:
        for statement in later.answers:
            if statement.position > step.run.position and (end is None or statement.position < end):
                return statement
    return None


def _failed_point(
    step: _Step, error: str, note: Statement | None, passed: _Step | None, used: set[str]
) -> _Point:
    run = step.run
    command = code_span(one_line(run.command, _MAX_COMMAND_CHARS))
    counts = run.last_line if reports_outcome(run.last_line) and run.last_line not in error else ""
    exit_code = f"exit {run.exit}" if run.exit is not None and not counts else ""
    facts = ", ".join(filter(None, (code_span(one_line(error, _MAX_ERROR_CHARS)), counts, exit_code)))
    quotes: tuple[Quote, ...] = ()
    if note is not None:
        chosen = [sentence for sentence in note.sentences if sentence not in used][:_MAX_NOTE_SENTENCES]
        quotes = tuple(joined(note, chosen, 500))
        used.update(chosen)
    details = []
    if passed is not None:
        outcome = outcome_line(passed.tool)
        details.append(f"Then it passed: {outcome}." if outcome else "Then it succeeded.")
    elif run.is_check:
        details.append("It did not pass in this conversation.")
    weight = 5 if passed is not None and note is not None else 3
    label = f"{command} failed: {facts}" if facts else f"{command} failed"
    return _Point("frustrations", label, quotes, weight, step.number, tuple(details))


def _reported(exchanges: Sequence[Exchange], used: set[str]) -> Iterator[_Point]:
    """Yield errors that the user pasted into a prompt, with the first explanation."""
    for number, exchange in enumerate(exchanges):
        prompt = exchange.prompt
        found = _REPORTED_ERROR.search(prompt.text) if prompt is not None else None
        if prompt is None or found is None:
            continue
        line = found[1].splitlines()[0]
        said = exchange.answers[0].sentences[:1] if exchange.answers else ()
        quotes = tuple(exchange.answers[0].quote(sentence) for sentence in said if sentence not in used)
        used.update(said)
        label = f"Reported by the user: {code_span(one_line(line, _MAX_ERROR_CHARS))}"
        yield _Point("frustrations", label, quotes, 4, number)
