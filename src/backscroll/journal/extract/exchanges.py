"""The conversation behind a commit as exchanges: a prompt, notes while working, and the closing reply."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from backscroll.journal.material import Part, Turn, is_spoken
from backscroll.model.code.journal import Quote, Speaker
from backscroll.model.text import one_line
from backscroll.render.handoff.sentences import is_question, verbatim_sentences
from backscroll.render.markdown_escape import code_span
from backscroll.render.tool_calls import describe_call

__all__ = ["Exchange", "Statement", "exchanges", "joined"]

_MAX_CALL_CHARS = 100
_MAX_SENTENCES = 60  # of one message


class Statement(Struct, frozen=True):
    """A message of the user or the assistant, split into sentences."""

    speaker: Speaker
    text: str
    at: datetime | None
    session_ref: str
    position: int
    sentences: tuple[str, ...]

    def quote(self, text: str | None = None) -> Quote:
        """Return a part of the message as a quote, by default all of it."""
        part = self.text.strip() if text is None else text
        return Quote(self.speaker, part, self.at, self.session_ref, self.position)

    @property
    def is_question(self) -> bool:
        """Whether the message ends with a question."""
        return bool(self.sentences) and is_question(self.sentences[-1])


class Exchange(Struct, frozen=True, kw_only=True):
    """One turn: what the user wrote, what the assistant wrote, and whether files were changed."""

    session_ref: str
    prompt: Statement | None
    notes: tuple[Statement, ...]  # texts of the assistant before its last one
    reply: Statement | None
    reports: tuple[Statement, ...]  # results of subagents
    abandoned: tuple[tuple[Statement, Statement | None], ...]  # prompts that the user took back, with answers
    has_edits: bool
    is_first: bool  # of its session
    is_last: bool  # of its session
    follows_rejection: bool  # the user rejected a call or interrupted the assistant before the prompt
    rejected_call: str  # Markdown; empty if unknown
    parts: tuple[Part, ...]

    @property
    def closing(self) -> tuple[Statement, ...]:
        """The reply, and notes after the last edit: a report may precede the commit."""
        edited = [part.position for part in self.parts if part.message.tool and part.message.tool.edits]
        after = [note for note in self.notes if edited and note.position > edited[-1]]
        return (*after, *([self.reply] if self.reply is not None else []))


def exchanges(turns: Sequence[Turn]) -> list[Exchange]:
    """Return the turns as exchanges, in the same order."""
    refs = [turn.session.ref for turn in turns]
    found: list[Exchange] = []
    for index, turn in enumerate(turns):
        before = turns[index - 1] if index and refs[index - 1] == turn.session.ref else None
        spoken = [part for part in turn.parts if is_spoken(part.message) and part.message.is_active]
        prompts = [part for part in spoken if part.message.role == "user"]
        answers = [_statement(turn, part) for part in spoken if part.message.role == "assistant"]
        found.append(
            Exchange(
                session_ref=turn.session.ref,
                prompt=_statement(turn, prompts[0]) if prompts else None,
                notes=tuple(answers[:-1]),
                reply=answers[-1] if answers else None,
                reports=tuple(_reports(turn)),
                abandoned=tuple(_abandoned(before)) if before is not None else (),
                has_edits=turn.has_edits,
                is_first=not any(
                    one.session_ref == turn.session.ref and one.prompt is not None for one in found
                ),
                is_last=turn.session.ref not in refs[index + 1 :],
                follows_rejection=before is not None and _ends_with_rejection(before),
                rejected_call=_rejected_call(before) if before is not None else "",
                parts=turn.parts,
            )
        )
    return found


def joined(statement: Statement, chosen: Sequence[str], max_chars: int) -> Iterator[Quote]:
    """Yield sentences of a message as quotes. Sentences that follow each other become one quote."""
    runs: list[list[str]] = []
    previous = -2
    for index, sentence in enumerate(statement.sentences):
        if sentence not in chosen:
            continue
        if index == previous + 1 and len(" ".join([*runs[-1], sentence])) <= max_chars:
            runs[-1].append(sentence)
        else:
            runs.append([sentence])
        previous = index
    for run in runs:
        yield statement.quote(_span(statement.text, run[0], run[-1]) or " ".join(run))


def _span(text: str, first: str, last: str) -> str | None:
    """Return the text from one sentence to another, if they are in the same paragraph."""
    start = text.find(first)
    end = text.find(last, start)
    if start < 0 or end < 0:
        return None
    found = text[start : end + len(last)]
    return found if "\n\n" not in found else None


def _statement(turn: Turn, part: Part) -> Statement:
    message = part.message
    text = message.tool.result or "" if message.tool is not None else message.content
    speaker: Speaker = "user" if message.role == "user" else "assistant"
    sentences = tuple(verbatim_sentences(text))[:_MAX_SENTENCES]
    return Statement(speaker, text, message.timestamp, turn.session.ref, part.position, sentences)


def _reports(turn: Turn) -> Iterator[Statement]:
    for part in turn.parts:
        tool = part.message.tool
        if part.is_report and tool is not None and tool.status == "completed" and tool.result:
            yield _statement(turn, part)


def _abandoned(turn: Turn) -> Iterator[tuple[Statement, Statement | None]]:
    """Yield the prompts at the end of a turn that are on no branch that the tool shows."""
    parts = [part for part in turn.parts if is_spoken(part.message) and not part.message.is_active]
    for index, part in enumerate(parts):
        if part.message.role == "user":
            answer = next((later for later in parts[index + 1 :] if later.message.role == "assistant"), None)
            yield _statement(turn, part), _statement(turn, answer) if answer is not None else None


def _rejected_call(turn: Turn) -> str:
    """Return the last call of a turn that the user rejected or interrupted."""
    for part in reversed(turn.parts):
        tool = part.message.tool
        if tool is not None:
            if tool.edits:
                return f"an edit of {code_span(tool.edits[-1].path.rpartition('/')[2])}"
            return code_span(one_line(describe_call(tool), _MAX_CALL_CHARS))
        if is_spoken(part.message):
            break
    return ""


def _ends_with_rejection(turn: Turn) -> bool:
    for part in reversed(turn.parts):
        message = part.message
        if message.kind == "interruption":
            return True
        if message.tool is not None:
            return message.tool.decision == "rejected"
        if is_spoken(message) and message.role == "assistant":
            return False
    return False
