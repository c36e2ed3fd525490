"""A session read once, and told in as few words as are asked for."""

from collections.abc import Callable, Iterable, Iterator

from backscroll.model import Message, SessionSummary
from backscroll.render.handoff.budget import CHARACTERS, fit
from backscroll.render.handoff.conversation import Conversation
from backscroll.render.handoff.file_changes import FileChanges
from backscroll.render.handoff.output import handoff_text, header_lines
from backscroll.render.handoff.tasks import TaskList
from backscroll.render.handoff.types import Candidate, Handoff

__all__ = ["build_handoff"]


def build_handoff(
    summary: SessionSummary,
    messages: Iterable[Message],
    *,
    tokens: int,
    clean: Callable[[str], str] = str,
) -> Handoff:
    """What somebody needs who goes on with a session, within so many tokens, by estimate.

    ``clean`` is given every text before any of it is chosen, and takes out what is not to be shown.
    """
    own = summary.id if summary.parent_ref is not None else None  # a subagent's messages bear its id
    talk, work, tasks = Conversation(clean), FileChanges(summary.workspace_path), TaskList()
    end, is_stopped = 0, False
    for position, message in enumerate(messages):
        end = position + 1
        if not message.is_active or message.agent_id not in (None, own) or (message.is_sidechain and not own):
            continue
        if message.role == "system" and message.kind not in ("compaction", "interruption"):
            continue
        is_stopped = message.kind == "interruption"
        talk.see(message, position)
        work.see(message, position)
        if message.tool is not None:
            tasks.see(message.tool, position)
    found = [*talk.candidates(end), *(_cleaned(one, clean) for one in work.candidates())]
    found += _unfinished(tasks, clean)
    if is_stopped:
        found.append(Candidate("open_ends", "It was interrupted, and ends there", 90, end))
    empty = Handoff(summary, (), tokens, 0)
    room = tokens * CHARACTERS - sum(len(line) + 1 for line in header_lines(empty))
    made = Handoff(summary, fit(found, room), tokens, 0)
    return Handoff(summary, made.sections, tokens, -(-len(handoff_text(made)) // CHARACTERS))


def _cleaned(one: Candidate, clean: Callable[[str], str]) -> Candidate:
    return Candidate(one.section, clean(one.text), one.weight, one.position, one.longest)


def _unfinished(tasks: TaskList, clean: Callable[[str], str]) -> Iterator[Candidate]:
    for text, status, position in tasks.unfinished():
        word = "Begun" if status == "in_progress" else "To do"
        yield Candidate("open_ends", f"{word}: {clean(text)}", 87, position)
