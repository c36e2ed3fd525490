"""Errors that mattered: commands that failed and how it ended, and errors that the user reported."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from backscroll.journal.extract.exchanges import Exchange, Statement, joined
from backscroll.journal.extract.points import Point
from backscroll.journal.material import Part
from backscroll.model.code.journal import Quote
from backscroll.model.text import one_line
from backscroll.render.handoff.commands import CommandLog, CommandRun, is_similar
from backscroll.render.markdown_escape import code_span

__all__ = ["failure_points", "passed_checks"]

# Lines of output that name an error, the most specific first.
_ERROR_LINES = (
    re.compile(r"^E\s{2,}(\S.*)$", re.MULTILINE),  # pytest
    re.compile(
        r"^(.*\b(?:[A-Z]\w*(?:Error|Exception)|error(?: \w+\d+)?|panicked at|fatal)\b(?:\[\w+\])?:? .*)$",
        re.MULTILINE,
    ),
    re.compile(r"^(.*\b(?:Killed|FAILED|Segmentation fault|not found|denied|timed out)\b.*)$", re.MULTILINE),
)
_REPORTED_ERROR = re.compile(
    r"(?:^|(?<=[\s(:\"']))((?:[A-Z]\w*\.)*[A-Z]\w*(?:Error|Exception): .+|error(?:\[\w+\])?: .+|"
    r"(?:thread '\w+' )?panicked.*|Traceback .*|fatal: .+)",
)
# A wrong path or a missing program says nothing about the work, unless the assistant comments on it.
_TRIVIAL = re.compile(
    r"command not found|No such file or directory|file or directory not found|unknown option|usage:", re.I
)
_OUTCOME = re.compile(
    r"\b\d+ (?:passed|failed|tests?|failures?|errors?)\b|\btest result\b|\b(?:ok|OK)\b|\bpass(?:ed)?\b"
)
_MAX_ERROR_CHARS = 240
_MAX_COMMAND_CHARS = 100
_MAX_NOTE_SENTENCES = 3


class _Step(Struct, frozen=True):
    number: int  # of the exchange
    part: Part
    run: CommandRun | None


def failure_points(exchanges: Sequence[Exchange], used: set[str]) -> Iterator[Point]:
    """Yield failed commands that later succeeded or were discussed, and errors that the user reported."""
    steps = _steps(exchanges)
    failed: list[CommandRun] = []
    for index, step in enumerate(steps):
        run = step.run
        if run is None or not run.is_failed or any(_is_repeated(run, earlier) for earlier in failed):
            continue
        session = exchanges[step.number].session_ref
        later = [other for other in steps[index + 1 :] if exchanges[other.number].session_ref == session]
        passed = next(
            (
                other
                for other in later
                if other.run and not other.run.is_failed and is_similar(run, other.run)
            ),
            None,
        )
        note = _note(exchanges, step, passed)
        error = _error_line(step.part)
        is_trivial = _TRIVIAL.search(error) is not None
        if not _matters(
            run, is_explained=note is not None, is_fixed=passed is not None, is_trivial=is_trivial
        ):
            continue
        failed.append(run)
        yield _failed_point(step, run, error, note, passed, used)
    yield from _reported(exchanges, used)


def passed_checks(exchanges: Sequence[Exchange]) -> list[tuple[CommandRun, str]]:
    """Return the checks that passed last, each with the line of its output that says so."""
    last: dict[str, tuple[CommandRun, str]] = {}
    for step in _steps(exchanges):
        run = step.run
        if run is None or not run.is_check or run.subject is not None:
            continue
        for command, (other, _) in list(last.items()):
            if is_similar(run, other):
                del last[command]
        if run.is_failed or run.status != "completed":
            continue
        outcome = _outcome_line(step.part)
        if outcome:
            last[run.command] = (run, outcome)
    return list(last.values())


def _steps(exchanges: Sequence[Exchange]) -> list[_Step]:
    log = CommandLog()
    return [
        _Step(
            number, part, log.add(part.message.tool, part.position) if part.message.tool is not None else None
        )
        for number, exchange in enumerate(exchanges)
        for part in exchange.parts
        if part.message.is_active
        and not (part.message.tool is not None and part.message.tool.decision == "rejected")
    ]


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
    end = passed.part.position if passed is not None else None
    exchange = exchanges[step.number]
    following = [later for later in exchanges[step.number :] if later.session_ref == exchange.session_ref][:2]
    for later in following:
        for statement in [*later.notes, *([later.reply] if later.reply is not None else [])]:
            if statement.position > step.part.position and (end is None or statement.position < end):
                return statement
    return None


def _failed_point(
    step: _Step, run: CommandRun, error: str, note: Statement | None, passed: _Step | None, used: set[str]
) -> Point:
    command = code_span(one_line(run.command, _MAX_COMMAND_CHARS))
    counts = run.last_line if _OUTCOME.search(run.last_line) and run.last_line not in error else ""
    exit_code = f"exit {run.exit}" if run.exit is not None and not counts else ""
    facts = ", ".join(filter(None, (code_span(one_line(error, _MAX_ERROR_CHARS)), counts, exit_code)))
    quotes: tuple[Quote, ...] = ()
    if note is not None:
        chosen = [sentence for sentence in note.sentences if sentence not in used][:_MAX_NOTE_SENTENCES]
        quotes = tuple(joined(note, chosen, 500))
        used.update(chosen)
    details = []
    if passed is not None and passed.run is not None:
        outcome = _outcome_line(passed.part)
        details.append(f"Then it passed: {outcome}." if outcome else "Then it succeeded.")
    elif run.is_check:
        details.append("It did not pass in this conversation.")
    weight = 5 if passed is not None and note is not None else 3
    label = f"{command} failed: {facts}" if facts else f"{command} failed"
    at = step.part.message.timestamp
    return Point("frustrations", label, quotes, weight, at, step.number, tuple(details))


def _reported(exchanges: Sequence[Exchange], used: set[str]) -> Iterator[Point]:
    """Yield errors that the user pasted into a prompt, with the first explanation."""
    for number, exchange in enumerate(exchanges):
        prompt = exchange.prompt
        found = _REPORTED_ERROR.search(prompt.text) if prompt is not None else None
        if prompt is None or found is None:
            continue
        line = found[1].splitlines()[0]
        answers = [*exchange.notes, *([exchange.reply] if exchange.reply is not None else [])]
        quotes: tuple[Quote, ...] = ()
        if answers and answers[0].sentences and answers[0].sentences[0] not in used:
            used.add(answers[0].sentences[0])
            quotes = (answers[0].quote(answers[0].sentences[0]),)
        label = f"Reported by the user: {code_span(one_line(line, _MAX_ERROR_CHARS))}"
        yield Point("frustrations", label, quotes, 4, prompt.at, number)


def _error_line(part: Part) -> str:
    assert part.message.tool is not None
    output = part.message.tool.result or ""
    for pattern in _ERROR_LINES:
        found = pattern.search(output)
        if found is not None:
            return found[1].strip()
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _outcome_line(part: Part) -> str:
    assert part.message.tool is not None
    lines = [line.strip(" =") for line in (part.message.tool.result or "").splitlines()]
    return next((one_line(line, 120) for line in reversed(lines) if _OUTCOME.search(line)), "")
