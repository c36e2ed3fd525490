"""Decisions, results, explanations and open items from what was said.

The order of messages decides first: an answer that the user accepts is a decision in any language. Phrases
decide within a message.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal

from backscroll.journal.extract.choices import choice_points
from backscroll.journal.extract.exchanges import Exchange, Statement, joined
from backscroll.journal.extract.phrases import (
    is_acknowledgement,
    is_continuation,
    is_correction,
    is_dropped,
    is_open,
    is_perhaps_open,
    is_proposal,
    is_rationale_question,
    is_reasoned,
    is_report_of_result,
    starts_with_agreement,
)
from backscroll.journal.extract.points import Point
from backscroll.model.code.journal import Quote, SectionName
from backscroll.render.handoff.sentences import information_score, is_question

__all__ = ["conversation_points", "is_choice", "outcome", "shortened"]

_MIN_OUTCOME_SCORE = -1.0  # a reason is better than nothing; a remark at the end is not
_SHORT_ANSWER_SENTENCES = 5  # all are part of a decision; of a longer one only some
_SHORT_ANSWER_CHARS = 700
_MAX_CHOSEN = 4  # sentences of a longer answer
_MAX_CHAIN = 3  # exchanges before a decision
_MAX_QUOTE_CHARS = 500
_MAX_REPORT_SENTENCES = 2
_Kind = Literal["reply", "note", "diagnosis"]  # closing text of a turn, text before it, text before all edits
_SAME_PROMPT_RATIO = 0.6  # an abandoned prompt this similar to the next one was only rephrased


def conversation_points(exchanges: Sequence[Exchange], used: set[str]) -> Iterator[Point]:
    """Yield the points of a conversation. ``used`` are sentences that other sections quote already."""
    chain: list[Exchange] = []  # talk without edits, until the user decides
    for number, exchange in enumerate(exchanges):
        if chain and chain[-1].session_ref != exchange.session_ref:
            yield from _undecided(chain, number - 1, used)
            chain = []
        yield from _abandoned(exchange, number)
        yield from choice_points(exchange, number)
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
            kind: _Kind = "diagnosis" if index == 0 and _is_before_edits(note, exchange) else "note"
            yield from _classified(note, number, used, kind, is_last=False, is_explaining=is_explaining)
        for reply in exchange.closing:
            yield from _classified(
                reply, number, used, "reply", is_last=exchange.is_last, is_explaining=is_explaining
            )
    yield from _undecided(chain, len(exchanges), used)


def outcome(exchanges: Sequence[Exchange]) -> Quote | None:
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


def is_choice(sentence: str) -> bool:
    """Return whether a sentence states a choice: a proposal, a reason or a dropped alternative."""
    return is_reasoned(sentence) or is_proposal(sentence) or is_dropped(sentence)


def shortened(text: str, max_chars: int = 400) -> str:
    """Return a text, or its first sentences if it is long."""
    text = text.strip()
    if len(text) <= max_chars:
        return text
    end = max(text.rfind(mark, 0, max_chars) for mark in (". ", "! ", "? ", "\n", "。"))
    return text[: end + 1].strip() if end > 0 else text[:max_chars].rsplit(" ", 1)[0]


def _outcome_score(sentence: str, index: int, section: SectionName | None) -> float:
    is_result = is_report_of_result(sentence)
    is_remark = index > 0 and not is_result
    informative = min(information_score(sentence), 2) * 0.4
    return is_result + informative - (section == "decisions") - 2 * is_remark - 0.1 * index


def _is_open_to_decision(exchange: Exchange, exchanges: Sequence[Exchange], number: int) -> bool:
    """Return whether an exchange changed nothing and the user goes on in the same session."""
    following = exchanges[number + 1 : number + 2]
    return (
        exchange.reply is not None
        and not exchange.has_edits
        and bool(following)
        and following[0].session_ref == exchange.session_ref
    )


def _decision(chain: Sequence[Exchange], exchange: Exchange, number: int, used: set[str]) -> Iterator[Point]:
    """Yield a decision: what was proposed, questions about it, and what the user said in the end."""
    quotes: list[Quote] = []
    score = 0.0
    for index, talk in enumerate(chain):
        assert talk.reply is not None
        if talk.prompt is not None and not talk.is_first and (index or talk.prompt.is_question):
            quotes.append(talk.prompt.quote(shortened(talk.prompt.text)))
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
            quotes.append(response.quote(shortened(response.text)))
        else:
            quotes += joined(response, said, _MAX_QUOTE_CHARS)
        label = "Rejected" if is_correcting and said else ""
        used.update(said)
    if any(quote.speaker == "assistant" for quote in quotes):
        yield Point(
            "decisions", label, tuple(quotes), 6 + 0.1 * score, quotes[0].at, number, is_dialogue=True
        )
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


def _rationale(exchange: Exchange, number: int, used: set[str]) -> Iterator[Point]:
    """Yield the answer to a question about a choice that was made before."""
    prompt = exchange.prompt
    answers = exchange.notes if exchange.has_edits else filter(None, [exchange.reply])
    answer = next(iter(answers), None)
    if prompt is None or answer is None or exchange.is_first or not prompt.is_question:
        return
    if not is_rationale_question(prompt.sentences[-1]):
        return
    chosen = [sentence for sentence in _chosen(answer) if sentence not in used and not is_open(sentence)]
    quotes = (prompt.quote(shortened(prompt.text)), *joined(answer, chosen, _MAX_QUOTE_CHARS))
    used.update(chosen)
    if chosen:
        yield Point("decisions", "", quotes, 5, prompt.at, number, is_dialogue=True)


def _request(exchange: Exchange, number: int, used: set[str]) -> Iterator[Point]:
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
        yield Point("decisions", "", quotes, weight, prompt.at, number)


def _correction(exchange: Exchange, number: int) -> Point:
    prompt = exchange.prompt
    assert prompt is not None
    quotes = (prompt.quote(shortened(prompt.text)),)
    if not exchange.follows_rejection:
        return Point("frustrations", "Corrected by the user", quotes, 4, prompt.at, number)
    label = f"The user stopped {exchange.rejected_call}" if exchange.rejected_call else "The user intervened"
    return Point("frustrations", label, quotes, 5, prompt.at, number)


def _abandoned(exchange: Exchange, number: int) -> Iterator[Point]:
    """Yield prompts that the user took back, with their answers."""
    for prompt, answer in exchange.abandoned:
        similar = SequenceMatcher(None, prompt.text, exchange.prompt.text if exchange.prompt else "")
        if similar.ratio() > _SAME_PROMPT_RATIO or not prompt.sentences:
            continue
        quotes = [prompt.quote(shortened(prompt.text))]
        if answer is not None:
            quotes += joined(answer, _chosen(answer), _MAX_QUOTE_CHARS)
        yield Point("decisions", "Taken back", tuple(quotes), 3, prompt.at, number, is_dialogue=True)


def _report(report: Statement, number: int, used: set[str]) -> Iterator[Point]:
    """Yield the most informative sentences of a subagent's result."""
    scores = {sentence: information_score(sentence) for sentence in report.sentences}
    best = sorted(report.sentences, key=lambda sentence: -scores[sentence])[:_MAX_REPORT_SENTENCES]
    chosen = [sentence for sentence in best if scores[sentence] and sentence not in used]
    quotes = tuple(joined(report, chosen, _MAX_QUOTE_CHARS))
    used.update(chosen)
    if quotes:
        yield Point("synopsis", "A subagent found", quotes, 2, report.at, number)


def _undecided(chain: Sequence[Exchange], number: int, used: set[str]) -> Iterator[Point]:
    """Yield the points of talk that led to no decision."""
    for exchange in chain:
        if exchange.reply is not None:
            yield from _classified(exchange.reply, number, used, "diagnosis", is_last=exchange.is_last)


def _is_before_edits(note: Statement, exchange: Exchange) -> bool:
    edited = (part.position for part in exchange.parts if part.message.tool and part.message.tool.edits)
    return note.position < next(edited, note.position)


def _classified(
    statement: Statement,
    number: int,
    used: set[str],
    kind: _Kind,
    *,
    is_last: bool,
    is_explaining: bool = False,
) -> Iterator[Point]:
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
            yield Point(section, "", (quote,), weight, statement.at, number)


def _section(sentence: str, kind: _Kind, *, is_last: bool) -> SectionName | None:
    if kind != "reply":
        is_worth = kind == "diagnosis" or information_score(sentence) > 0
        return "decisions" if is_choice(sentence) else "synopsis" if is_worth else None
    has_number = any(map(str.isdigit, sentence))
    if is_report_of_result(sentence) and has_number and not is_reasoned(sentence) and not is_open(sentence):
        return "accomplishments"
    if is_open(sentence) and not is_dropped(sentence):
        return "open"
    if is_choice(sentence):
        return "decisions"
    if is_last and is_perhaps_open(sentence):
        return "open"
    if is_report_of_result(sentence):
        return "accomplishments"
    return "synopsis" if information_score(sentence) else None
