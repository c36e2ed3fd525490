"""Tools over all sessions: search, recall, statistics."""

from msgspec.structs import asdict, replace

from backscroll.mcp.call import Call, parse_time_range
from backscroll.mcp.tools.arguments import Recall, SearchSessions, Stats
from backscroll.mcp.tools.results import ToolAnswer, more_hint, paginate
from backscroll.model import SearchMatch
from backscroll.model.dates import iso
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.json import search_document
from backscroll.render.recall import recall_document, recall_lines
from backscroll.render.statistics.json import report_document
from backscroll.render.terminal.humanize import short_id

__all__ = ["recall", "search_sessions", "stats"]

MAX_TITLE_CHARS = 100
_TIME_GROUPS = ("day", "week", "month")


def search_sessions(call: Call, arguments: SearchSessions) -> ToolAnswer:
    since, until = parse_time_range(arguments.since, arguments.until)
    call.check_workspace(arguments.workspace)
    filters = {"workspace": arguments.workspace, "source": arguments.source, "role": arguments.role}
    found = call.history.search_sessions(
        arguments.query,
        limit=arguments.limit,
        offset=arguments.offset,
        by=arguments.by,
        context=arguments.context,
        pattern=arguments.pattern,
        ignore_case=arguments.ignore_case,
        filters={name: value for name, value in filters.items() if value is not None},
        since=since,
        until=until,
        progress=call.report_progress,
        redactor=call.redactor,
    )
    found = replace(found, data=tuple(_redact_titles(call, match) for match in found.data))
    lines = [line for match in found.data for line in _match_lines(match)]
    total_count = found.total if found.total is not None else found.total_at_least or 0
    total = pluralize(total_count, "session" if arguments.by == "session" else "message")
    total = total if found.is_counted else f"at least {total}"
    notes = []
    if found.is_relaxed and found.data:
        notes.append("No message contains all words. These contain the most.")
    if found.is_cut_short:
        notes.append("Stopped after the time limit. A longer pattern is faster.")
    more = more_hint(arguments.offset + len(found.data), has_more=found.has_more)
    notes.append(f"{len(found.data)} of {total}{more}." if found.data else "No matches.")
    return ToolAnswer("\n".join(lines), search_document(found), tuple(notes))


def recall(call: Call, arguments: Recall) -> ToolAnswer:
    call.check_workspace(arguments.workspace)
    found = call.history.recall(
        arguments.task,
        workspace=arguments.workspace,
        token_budget=arguments.token_budget,
        redactor=call.redactor,
        progress=call.report_progress,
    )
    notes = [] if found.sessions else ["No relevant session found."]
    if found.left_out:
        notes.append(
            f"{pluralize(found.left_out, 'more session')} omitted: less relevant, or over the token budget."
        )
    return ToolAnswer("\n".join(recall_lines(found)), recall_document(found), tuple(notes))


def stats(call: Call, arguments: Stats) -> ToolAnswer:
    filter = call.filter(
        workspace=arguments.workspace, source=arguments.source, since=arguments.since, until=arguments.until
    )
    document = report_document(call.history.statistics.report(filter, by=arguments.by))
    rows = document["data"][::-1] if arguments.by in _TIME_GROUPS else document["data"]
    page, pagination = paginate(rows, limit=arguments.limit, offset=arguments.offset)
    for row in page:
        if isinstance(row["key"], str):
            row["key"] = call.redact_text(row["key"], "statistics")
    document["data"] = page
    document["pagination"] = asdict(pagination)
    lines = [_row_text(row) for row in page]
    lines.append(_row_text(document["total"] | {"key": "Total"}))
    notes = [f"Prices as of {document['prices_checked']}. Time zone: {document['zone']}."]
    if arguments.by is not None:
        more = more_hint(arguments.offset + len(page), has_more=pagination.has_more)
        notes.append(f"{len(page)} of {pluralize(len(rows), 'row')}{more}.")
    return ToolAnswer("\n".join(lines), document, tuple(notes))


def _redact_titles(call: Call, match: SearchMatch) -> SearchMatch:
    title = call.redact_text(match.title, match.session_ref) if match.title else None
    name = call.redact_text(match.workspace_name, match.session_ref) if match.workspace_name else None
    return replace(match, title=title, workspace_name=name)


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
    role = "note" if match.is_note else match.role
    lines = [header, f"   [{match.message_index}] {role}: {first}", *(f"     {line}" for line in others)]
    if match.second is not None:
        lines.append(f"   [{match.second.message_index}] {match.second.role}: {sanitize(match.second.match)}")
    return lines


def _row_text(row: dict[str, object]) -> str:
    parts = [f"{one_line(str(row['key'] if row['key'] is not None else 'unknown'), MAX_TITLE_CHARS)}:"]
    for name in ("sessions", "messages", "total_tokens", "cost_usd", "lines_added", "tool_calls"):
        value = row.get(name)
        if isinstance(value, int | float):
            parts.append(f"{value:,.2f} USD" if name == "cost_usd" else f"{value:,} {name.replace('_', ' ')}")
    return " ".join([parts[0], ", ".join(parts[1:])])
