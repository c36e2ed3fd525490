"""Tools over all sessions: search, recall, statistics."""

import math
import re
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from backscroll.documents import recall_document, search_document
from backscroll.filters import query_filters
from backscroll.mcp.call import LONGEST_NOTE, Call
from backscroll.mcp.tools.arguments import Recall, SearchSessions, Stats
from backscroll.mcp.tools.results import ToolAnswer, item_document, more_hint, paginate
from backscroll.model.dates import iso
from backscroll.model.search import InvalidFilter, RecallResult, SearchMatch
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.humanize import short_id
from backscroll.render.search import known_total, recall_lines
from backscroll.render.statistics import report_document, uncounted_note
from backscroll.render.token_estimate import CHARS_PER_TOKEN, estimate_tokens

MAX_TITLE_CHARS = 100
_OPEN_FILTER = re.compile(r"\b(?:workspace|source):", re.IGNORECASE)  # filters with any value
_TIME_GROUPS = ("day", "week", "month")
# Excerpts contain paths, identifiers and numbers, which take more tokens than prose.
EXCERPT_CHARS_PER_TOKEN = 3.2


def search_sessions(call: Call, arguments: SearchSessions) -> ToolAnswer:
    filter_ = call.filter(arguments)
    filters = query_filters(asdict(arguments))
    if arguments.role is not None:
        filters["role"] = arguments.role
    found = call.history.search_sessions(
        arguments.query,
        limit=arguments.limit,
        offset=arguments.offset,
        by=arguments.by,
        context=arguments.context,
        pattern=arguments.pattern,
        ignore_case=arguments.ignore_case,
        filters=filters,
        since=filter_.since,
        until=filter_.until,
        progress=call.report_progress,
        redactor=call.redactor,
    )
    found = replace(found, data=tuple(_redact_titles(call, match) for match in found.data))
    lines = [line for match in found.data for line in _match_lines(match)]
    noun = "session" if arguments.by == "session" else "message"
    total = pluralize(found.known_row_count, noun)
    total = total if found.is_counted else f"at least {total}"
    hints = []
    if arguments.pattern == "words":
        hints += [
            _invalid_filter_text(invalid)
            for invalid in call.history.invalid_filters(arguments.query)
            if invalid.similar_name is None or found.is_relaxed or not found.data
        ]
        if not found.data and _OPEN_FILTER.search(arguments.query):
            *names, last_name = call.history.source_names()
            sources = f"sources are {', '.join(names)} and {last_name}"
            hints.append(f"Check the filters. list_workspaces returns the workspaces; {sources}.")
    if found.is_relaxed and found.data:
        hints.append("No message contains all words. These are partial matches, best first.")
    if found.is_cut_short:
        hints.append("Stopped after the time limit. A longer pattern is faster.")
    more = more_hint(arguments.offset + len(found.data), has_more=found.has_more)
    if found.data:
        last = arguments.offset + len(found.data)
        known = known_total(found.known_row_count, last, is_counted=found.is_counted, has_more=found.has_more)
        hints.append(f"{len(found.data)} of {known} {noun}{'' if known == '1' else 's'}{more}.")
    elif arguments.offset and found.known_row_count:
        hints.append(f"No matches from offset={arguments.offset} on; {total} in total.")
    else:
        hints.append("No matches.")
    document = search_document(found)
    document["data"] = [item_document(match) for match in found.data]
    return ToolAnswer("\n".join(lines), document, tuple(hints))


def recall(call: Call, arguments: Recall) -> ToolAnswer:
    found = call.history.recall(
        arguments.task,
        workspace=call.filter(arguments).workspace,
        token_budget=arguments.token_budget,
        redactor=call.redactor,
        progress=call.report_progress,
        measure=lambda result: _count_tokens(
            _recall_answer(result), is_structured=call.options.is_structured
        ),
    )
    return _recall_answer(found)


def _recall_answer(found: RecallResult) -> ToolAnswer:
    hints = [] if found.sessions else ["No relevant session found."]
    if found.left_out:
        omitted = pluralize(found.left_out, "more session")
        hints.append(f"{omitted} omitted: less relevant, or over the token budget.")
    document = recall_document(found)
    document["data"] = [item_document(session) for session in found.sessions]
    return ToolAnswer("\n".join(recall_lines(found, user_label="user")), document, tuple(hints))


def _count_tokens(answer: ToolAnswer, *, is_structured: bool) -> int:
    """Return the estimated tokens of the form that clients pass to the model.

    If a result has a document, Claude Code passes only the document.
    """
    text = answer.as_text(LONGEST_NOTE)
    if is_structured:
        text = msgspec.json.encode(answer.as_document(LONGEST_NOTE)).decode()
    return math.ceil(estimate_tokens(text) * CHARS_PER_TOKEN / EXCERPT_CHARS_PER_TOKEN)


def stats(call: Call, arguments: Stats) -> ToolAnswer:
    document = report_document(call.history.statistics.report(call.filter(arguments), by=arguments.by))
    rows = document["data"][::-1] if arguments.by in _TIME_GROUPS else document["data"]
    page, pagination = paginate(rows, limit=arguments.limit, offset=arguments.offset)
    for row in page:
        if isinstance(row["key"], str):
            row["key"] = call.redact_text(row["key"], "statistics")
    document["data"] = page
    document["pagination"] = asdict(pagination)
    lines = [_row_text(row) for row in page]
    lines.append(_row_text(document["total"] | {"key": "Total"}))
    hints = [f"Prices as of {document['prices_checked']}. Time zone: {document['zone']}."]
    if document["uncounted_sessions"]:
        hints.append(uncounted_note(document["uncounted_sessions"]))
    if (reported := document["reported"]) is not None:
        hints.append(
            f"The tools themselves report {_usd(reported['cost_usd'])} for"
            f" {pluralize(reported['sessions'], 'session')}; computed for the same:"
            f" {_usd(reported['computed_cost_usd'])}."
        )
    if arguments.by is not None:
        more = more_hint(arguments.offset + len(page), has_more=pagination.has_more)
        hints.append(f"{len(page)} of {pluralize(len(rows), 'row')}{more}.")
    return ToolAnswer("\n".join(lines), document, tuple(hints))


def _redact_titles(call: Call, match: SearchMatch) -> SearchMatch:
    title = call.redact_text(match.title, match.session_ref) if match.title else None
    name = call.redact_text(match.workspace_name, match.session_ref) if match.workspace_name else None
    return replace(match, title=title, workspace_name=name)


def _invalid_filter_text(invalid: InvalidFilter) -> str:
    name, _, value = one_line(invalid.text, MAX_TITLE_CHARS).partition(":")
    text = f"{name}:{value} is not a valid filter and was searched as text."
    if invalid.similar_name is not None:
        return f"{text} Did you mean {invalid.similar_name}:{value}?"
    if invalid.allowed_values:
        return f"{text} Values of {name}: {', '.join(invalid.allowed_values)}."
    return text


def _match_lines(match: SearchMatch) -> list[str]:
    facts = [
        f"{match.source}:{short_id(match.session_id, match.parent_ref)}",
        f"subagent of {short_id(match.parent_ref.partition(':')[2])}" if match.parent_ref else "",
        one_line(match.title or "untitled", MAX_TITLE_CHARS),
        one_line(match.workspace_name or "", 60),
        (iso(match.timestamp) or "")[:10],
        pluralize(match.match_count, "match", "matches") if match.match_count > 1 else "",
    ]
    header = " · ".join(fact for fact in facts if fact)
    first, *others = [sanitize(line) for line in match.context] or [""]
    place = f"{match.place} of the session" if match.is_note or match.is_title else match.role
    lines = [header, f"   [{match.message_index}] {place}: {first}", *(f"     {line}" for line in others)]
    if match.also is not None:
        lines.append(f"   [{match.also.message_index}] {match.also.role}: {sanitize(match.also.match)}")
    return lines


def _row_text(row: dict[str, Any]) -> str:
    """Return a row of the statistics as one line. Unknown values are omitted."""
    key = one_line(str(row["key"] if row["key"] is not None else "unknown"), MAX_TITLE_CHARS)
    at_least = "at least " if row["are_tokens_at_least"] else ""
    parts = [
        _count(row["sessions"], "session"),
        _count(row["prompts"], "prompt"),
        _count(row["messages"], "message"),
        at_least + _count(row["total_tokens"], "token") + _token_parts(row) if row["total_tokens"] else "",
        _usd(row["cost_usd"], at_least) if row["cost_usd"] is not None else "",
        f"lines +{row['lines_added']:,} -{row['lines_removed'] or 0:,}" if row["lines_added"] else "",
        _count(row["tool_calls"], "tool call")
        + (f" ({row['tool_failures']:,} failed)" if row["tool_failures"] else ""),
    ]
    return f"{key}: {', '.join(part for part in parts if part)}"


def _count(value: int | None, noun: str) -> str:
    return "" if value is None else pluralize(value, noun)


def _usd(usd: float | None, at_least: str = "") -> str:
    if usd is None:
        return "an unknown amount"
    return f"{at_least}{usd:,.2f} USD" if usd >= 0.005 or usd == 0 else "less than 0.01 USD"


def _token_parts(row: dict[str, Any]) -> str:
    """Return the tokens by price category, for the total only."""
    if row["key"] != "Total":
        return ""
    names = ("input", "output", "cache_creation_input", "cache_read_input")
    counts = (f"{row[f'{name}_tokens'] or 0:,} {name.replace('_', ' ')}" for name in names)
    return f" ({', '.join(counts)})"
