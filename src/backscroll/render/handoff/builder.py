"""Build a handoff: read a session once, collect candidates, select those that fit into the budget."""

import re
from collections.abc import Callable, Iterable, Iterator

from backscroll.model import Message, SessionSummary
from backscroll.model.text import one_line
from backscroll.render.handoff.conversation import Conversation
from backscroll.render.handoff.file_changes import FileChanges
from backscroll.render.handoff.output import handoff_text, header_lines
from backscroll.render.handoff.tasks import TaskList
from backscroll.render.handoff.types import SECTIONS, Candidate, Handoff, Point, Section, SectionName
from backscroll.render.token_estimate import CHARS_PER_TOKEN

__all__ = ["build_handoff"]

_MIN_POINT_CHARS = 120  # a point is not truncated below this
_POINT_MARKUP_CHARS = 4
_HEADING_MARKUP_CHARS = 6
_LABEL = re.compile(r"^(?:You|Assistant|Later|Summary|Unanswered|Answer incomplete): ")


def build_handoff(
    summary: SessionSummary,
    messages: Iterable[Message],
    *,
    tokens: int,
    clean: Callable[[str], str] = str,
) -> Handoff:
    """Summarize a session within an estimated number of tokens.

    `clean` is applied to every text before any of it is truncated, for example to redact secrets.
    """
    own_id = summary.id if summary.parent_ref is not None else None  # set in all messages of a subagent
    conversation, changes, tasks = Conversation(clean), FileChanges(summary.workspace_path), TaskList()
    end, is_interrupted = 0, False
    for position, message in enumerate(messages):
        end = position + 1
        if not message.is_active or message.agent_id not in (None, own_id):
            continue
        if message.is_sidechain and not own_id:
            continue
        if message.role == "system" and message.kind not in ("compaction", "interruption"):
            continue
        is_interrupted = message.kind == "interruption"
        conversation.add(message, position)
        changes.add(message, position)
        if message.tool is not None:
            tasks.add(message.tool, position)
    candidates = [*conversation.candidates(end), *(_cleaned(point, clean) for point in changes.candidates())]
    candidates += _unfinished_tasks(tasks, clean)
    if is_interrupted:
        candidates.append(Candidate("open_ends", "The session ends with an interruption", 90, end))
    empty = Handoff(summary, (), tokens, 0)
    budget_chars = tokens * CHARS_PER_TOKEN - sum(len(line) + 1 for line in header_lines(empty))
    handoff = Handoff(summary, _select(candidates, budget_chars), tokens, 0)
    return Handoff(summary, handoff.sections, tokens, -(-len(handoff_text(handoff)) // CHARS_PER_TOKEN))


def _cleaned(candidate: Candidate, clean: Callable[[str], str]) -> Candidate:
    text = clean(candidate.text)
    return Candidate(candidate.section, text, candidate.weight, candidate.position, candidate.max_chars)


def _unfinished_tasks(tasks: TaskList, clean: Callable[[str], str]) -> Iterator[Candidate]:
    for text, status, position in tasks.unfinished():
        label = "In progress" if status == "in_progress" else "To do"
        yield Candidate("open_ends", f"{label}: {clean(text)}", 87, position)


def _select(candidates: Iterable[Candidate], budget_chars: int) -> tuple[Section, ...]:
    """Return the points with the highest weight that fit into the budget. Duplicates are skipped."""
    chosen: dict[SectionName, list[tuple[int, int, Point]]] = {name: [] for name in SECTIONS}
    left_out = dict.fromkeys(SECTIONS, 0)
    seen: set[str] = set()
    numbered = enumerate(candidates)
    ordered = sorted(numbered, key=lambda entry: (-entry[1].weight, -entry[1].position, entry[0]))
    for index, candidate in ordered:
        normalized = " ".join(_LABEL.sub("", candidate.text).lower().split())
        if normalized in seen:
            continue
        seen.add(normalized)
        heading = SECTIONS[candidate.section]
        heading_chars = 0 if chosen[candidate.section] else len(heading) + _HEADING_MARKUP_CHARS
        available = budget_chars - heading_chars - _POINT_MARKUP_CHARS
        text = one_line(candidate.text, candidate.max_chars)
        if len(text) > available:
            if available < _MIN_POINT_CHARS:
                left_out[candidate.section] += 1
                continue
            text = one_line(candidate.text, available)
        budget_chars -= len(text) + heading_chars + _POINT_MARKUP_CHARS
        point = Point(text, candidate.position)
        chosen[candidate.section].append((candidate.position, index, point))
    sections = []
    for name, entries in chosen.items():
        points = tuple(point for *_, point in sorted(entries, key=lambda entry: entry[:2]))
        if points or left_out[name]:
            sections.append(Section(name, points, left_out[name]))
    return tuple(sections)
