"""Prompts that a person picks: recall a task, take over a session, look back on a year."""

from collections.abc import Callable, Mapping

import mcp_types as types
from msgspec import Struct

from backscroll.errors import UsageError
from backscroll.mcp.call import Call
from backscroll.mcp.quoting import framed
from backscroll.model.sanitize import sanitize
from backscroll.render.handoff.output import handoff_text
from backscroll.render.recall import recall_lines

__all__ = ["PROMPTS", "Prompt", "told_prompts"]

_HANDOFF = 2000  # tokens
_RECALL = 2000


class Prompt(Struct, frozen=True):
    """A prompt, and who writes it."""

    name: str
    title: str
    description: str
    arguments: tuple[tuple[str, str, bool], ...]  # name, description, whether it is needed
    write: Callable[[Call, Mapping[str, str]], str]


def _recall(call: Call, asked: Mapping[str, str]) -> str:
    call.check_workspace(asked.get("workspace") or None)
    found = call.history.recall(
        asked["task"],
        workspace=asked.get("workspace") or None,
        token_budget=_RECALL,
        redactor=call.redactor,
        progress=call.step,
    )
    none = () if found.sessions else ("No earlier session has to do with it.",)
    return "\n".join(
        [
            f"My task: {sanitize(asked['task'])}",
            "",
            "Before you start, this is what earlier sessions have to say about it. Tell me in a few sentences"
            " what was already tried, decided or found out, with the refs, and then go on with the task.",
            "",
            framed("\n".join(recall_lines(found)), *none),
        ]
    )


def _handoff(call: Call, asked: Mapping[str, str]) -> str:
    briefing = call.history.resume.handoff(asked["ref"], tokens=_HANDOFF, redactor=call.redactor)
    return "\n".join(
        [
            "Take over where this earlier session stands. Say first what you understand to be open, then go"
            " on with it. get_session reads more of it by its ref.",
            "",
            framed(handoff_text(briefing)),
        ]
    )


def _year(call: Call, asked: Mapping[str, str]) -> str:
    from backscroll.render.statistics.year import year_markdown  # with a parser of Markdown

    year = asked["year"]
    if not (year.isascii() and year.isdigit() and len(year) == 4):
        raise UsageError(f"{year!r} is no year; write it like 2026")
    # Cleaned before it is written: as Markdown, a secret may have backslashes in it.
    page = "\n".join(
        year_markdown(call.value(call.history.statistics.year_in_review(int(year)), f"year {year}"))
    )
    return "\n".join(
        [
            f"Tell me the story of my {year} with coding assistants in one page: what I worked on, what"
            " changed over the year, what was hard, and what stands out. Use recall and search_sessions for"
            " what the figures below do not say.",
            "",
            framed(page),
        ]
    )


_EVERY = (
    Prompt(
        "recall",
        "What do I know about this already?",
        "What earlier sessions have to say about a task, before starting on it.",
        (("task", "The task, in plain words.", True), ("workspace", "Only of this workspace.", False)),
        _recall,
    ),
    Prompt(
        "handoff",
        "Take over an earlier session",
        "Where a session stands: goal, decisions, files, commands, open ends.",
        (("ref", "The session's ref.", True),),
        _handoff,
    ),
    Prompt(
        "year-in-review",
        "My year with assistants",
        "A year's figures, topics and projects, to be told as a story.",
        (("year", "The year, such as 2026.", True),),
        _year,
    ),
)

PROMPTS = {prompt.name: prompt for prompt in _EVERY}


def told_prompts() -> list[types.Prompt]:
    """Every prompt as a client is told of it."""
    return [
        types.Prompt(
            name=one.name,
            title=one.title,
            description=one.description,
            arguments=[
                types.PromptArgument(name=name, description=description, required=is_needed)
                for name, description, is_needed in one.arguments
            ],
        )
        for one in _EVERY
    ]
