"""MCP prompts: recall a task, continue a session, review a year."""

from collections.abc import Callable, Mapping

import mcp_types as types
from msgspec import Struct

from backscroll.errors import UsageError
from backscroll.mcp.call import Call
from backscroll.mcp.quoting import quote_history
from backscroll.model.text import sanitize
from backscroll.render.handoff.output import handoff_text
from backscroll.render.recall import recall_lines

__all__ = ["PROMPTS", "Prompt", "prompt_list"]

HANDOFF_TOKENS = 2000
RECALL_TOKENS = 2000


class Prompt(Struct, frozen=True):
    """A prompt and the function that writes it."""

    name: str
    title: str
    description: str
    arguments: tuple[tuple[str, str, bool], ...]  # name, description, is required
    write: Callable[[Call, Mapping[str, str]], str]  # given the values of the arguments


def _recall(call: Call, values: Mapping[str, str]) -> str:
    call.check_workspace(values.get("workspace") or None)
    found = call.history.recall(
        values["task"],
        workspace=values.get("workspace") or None,
        token_budget=RECALL_TOKENS,
        redactor=call.redactor,
        progress=call.report_progress,
    )
    notes = () if found.sessions else ("No relevant session found.",)
    return "\n".join(
        [
            f"My task: {sanitize(values['task'])}",
            "",
            "Below are relevant earlier sessions. Before you start, tell me in a few sentences what was"
            " already tried, decided or found out, with the refs. Then continue with the task.",
            "",
            quote_history("\n".join(recall_lines(found)), *notes),
        ]
    )


def _handoff(call: Call, values: Mapping[str, str]) -> str:
    handoff = call.history.resume.handoff(values["ref"], tokens=HANDOFF_TOKENS, redactor=call.redactor)
    return "\n".join(
        [
            "Continue this earlier session. First say what you understand to be open, then go on with it."
            " Use get_session with its ref to read more.",
            "",
            quote_history(handoff_text(handoff)),
        ]
    )


def _year_in_review(call: Call, values: Mapping[str, str]) -> str:
    from backscroll.render.statistics.year import year_markdown  # imports a Markdown parser

    year = values["year"]
    if not (year.isascii() and year.isdigit() and len(year) == 4):
        raise UsageError(f"{year!r} is not a year. Example: 2026")
    # Redact before rendering: Markdown escapes would hide parts of a secret.
    review = call.redact_value(call.history.statistics.year_in_review(int(year)), f"year {year}")
    page = "\n".join(year_markdown(review))
    return "\n".join(
        [
            f"Write a one-page review of my {year} with coding assistants: what I worked on, what changed"
            " over the year, what was hard and what stands out. Use recall and search_sessions for details"
            " that the figures below do not contain.",
            "",
            quote_history(page),
        ]
    )


_PROMPTS = (
    Prompt(
        "recall",
        "What do I know about this already?",
        "Relevant earlier sessions for a task, before you start on it.",
        (("task", "The task, in plain words.", True), ("workspace", "Only this workspace.", False)),
        _recall,
    ),
    Prompt(
        "handoff",
        "Continue an earlier session",
        "The state of a session: goal, decisions, files, commands, open tasks.",
        (("ref", "The session's ref.", True),),
        _handoff,
    ),
    Prompt(
        "year-in-review",
        "My year with assistants",
        "Figures, topics and projects of a year, as material for a review.",
        (("year", "The year, such as 2026.", True),),
        _year_in_review,
    ),
)

PROMPTS = {prompt.name: prompt for prompt in _PROMPTS}


def prompt_list() -> list[types.Prompt]:
    """Return the prompts in the protocol's format."""
    return [
        types.Prompt(
            name=prompt.name,
            title=prompt.title,
            description=prompt.description,
            arguments=[
                types.PromptArgument(name=name, description=description, required=is_required)
                for name, description, is_required in prompt.arguments
            ],
        )
        for prompt in _PROMPTS
    ]
