"""MCP prompts: recall a task, continue a session, review a year, write the story of a commit.

Also completes the arguments of prompts and resources.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import mcp_types as types
from msgspec import Struct

from backscroll.errors import UsageError
from backscroll.history import CompletionNames
from backscroll.mcp.call import Call
from backscroll.mcp.tools.arguments import absolute_path
from backscroll.mcp.tools.journal import material_text
from backscroll.mcp.tools.results import quote_history
from backscroll.render.handoff import handoff_text

HANDOFF_TOKENS = 2000
MAX_COMPLETIONS = 100  # limit of the protocol


class Prompt(Struct, frozen=True):
    """A prompt and the function that writes it."""

    name: str
    title: str
    description: str
    arguments: tuple[tuple[str, str, bool], ...]  # name, description, is required
    write: Callable[[Call, Mapping[str, str]], str]  # given the values of the arguments


def _recall(call: Call, values: Mapping[str, str]) -> str:
    # No argument is declared: Claude Code splits arguments at spaces and drops the rest. It passes all words
    # as <command-args>. If the first prompt is a slash command, no list of tools precedes it: hence the full
    # name of the tool.
    return (
        "My task is the text that I wrote after this command (in Claude Code: the content of <command-args>)."
        " If there is none, it is the current task of this conversation. Call the tool recall of the server"
        " backscroll (mcp__backscroll__recall) with the complete task. Then say in a few sentences what was"
        " already tried, decided or found out, with the refs of the sessions, and continue with the task."
    )


def _handoff(call: Call, values: Mapping[str, str]) -> str:
    handoff = call.history.resume.handoff(values["ref"], tokens=HANDOFF_TOKENS, redactor=call.redactor)
    return "\n".join(
        [
            "Continue this earlier session. First say what you understand to be open, then go on with it."
            " To read more, call get_session of the server backscroll (mcp__backscroll__get_session) with its"
            " ref.",
            "",
            quote_history(handoff_text(handoff)),
        ]
    )


def _year_in_review(call: Call, values: Mapping[str, str]) -> str:
    from backscroll.render.year_review import year_markdown

    year = values["year"]
    if not (year.isascii() and year.isdigit() and len(year) == 4):
        raise UsageError(f"{year!r} is not a year. Example: 2026")
    # Redact before rendering: Markdown escapes would hide parts of a secret.
    review = call.redact_value(call.history.statistics.year_in_review(int(year)), f"year {year}")
    page = "\n".join(year_markdown(review))
    return "\n".join(
        [
            f"Write a one-page review of my {year} with coding assistants: what I worked on, what changed"
            " over the year, what was hard and what stands out. For details that the figures below do not"
            " contain, use recall and search_sessions of the server backscroll (mcp__backscroll__recall,"
            " mcp__backscroll__search_sessions).",
            "",
            quote_history(page),
        ]
    )


def _commit_story(call: Call, values: Mapping[str, str]) -> str:
    named = values.get("repository")
    repository = absolute_path("repository", named) if named else Path.cwd()
    context = call.history.journal.context(values.get("commit") or "HEAD", repository)
    if call.options.allow_writes:
        end = (
            "Then save it with journal_write_entry of the server backscroll"
            f" (mcp__backscroll__journal_write_entry), revision={context.entry.sha}, repository={repository}."
        )
    else:
        end = "Print the entry. The server runs without --allow-writes, so it cannot be saved."
    return "\n".join([context.instructions, end, "", quote_history(material_text(context))])


_PROMPTS = (
    Prompt(
        "recall",
        "What do I know about this already?",
        "Look up earlier work on a task before starting it. Write the task after the command.",
        (),
        _recall,
    ),
    Prompt(
        "handoff",
        "Continue an earlier session",
        "The state of a session: goal, decisions, files, commands, open items.",
        (("ref", "Ref of the session, such as claude-code:0f3c9a12", True),),
        _handoff,
    ),
    Prompt(
        "year-in-review",
        "My year with assistants",
        "Figures, topics and projects of a year, as material for a review.",
        (("year", "The year, such as 2026", True),),
        _year_in_review,
    ),
    Prompt(
        "commit-story",
        "Write the journal entry of a commit",
        "The commit, its conversations, errors and decisions, as material for a journal entry.",
        (
            ("commit", "Hash of the commit, or a name that git knows. Default: HEAD", False),
            ("repository", "Absolute path of the repository. Default: the folder of the server", False),
        ),
        _commit_story,
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


def complete(call: Call, name: str, typed: str) -> list[str]:
    """Return completions of refs and years."""
    match name:
        case "ref":
            return _complete_ref(call, typed)
        case "year":
            rows = call.history.statistics.report(by="month").rows
            years = sorted({row.key[:4] for row in rows if row.key}, reverse=True)
            return [year for year in years if year.startswith(typed)]
    return []


def _complete_ref(call: Call, typed: str) -> list[str]:
    source, colon, id_prefix = typed.rpartition(":")
    with CompletionNames(call.history.archive_path) as names:
        sessions = names.sessions(id_prefix, source=source if colon else None, limit=MAX_COMPLETIONS)
    refs = [f"{session.source}:{session.id}" for session in sessions]
    if refs or colon:
        return refs
    # The input may be a prefix of a source name.
    newest = call.history.list_sessions(limit=10 * MAX_COMPLETIONS).data
    return [summary.ref for summary in newest if summary.ref.startswith(typed)][:MAX_COMPLETIONS]
