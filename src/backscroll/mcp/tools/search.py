"""Tools that look through all sessions: search, recall, figures."""

from msgspec.structs import asdict, replace

from backscroll.mcp.call import Call, moments
from backscroll.mcp.tools.arguments import Recall, SearchSessions, Stats
from backscroll.mcp.tools.results import Answer, more_from, portion
from backscroll.model import SearchMatch
from backscroll.model.dates import iso
from backscroll.model.sanitize import one_line, sanitize
from backscroll.render.json import search_document
from backscroll.render.recall import recall_document, recall_lines
from backscroll.render.statistics.json import report_document
from backscroll.render.terminal.humanize import pluralize
from backscroll.render.terminal.session_table import short_id

__all__ = ["recall", "search_sessions", "stats"]

_WIDTH = 100
_TIMES = ("day", "week", "month")


def search_sessions(call: Call, asked: SearchSessions) -> Answer:
    since, until = moments(asked.since, asked.until)
    call.check_workspace(asked.workspace)
    named = {"workspace": asked.workspace, "source": asked.source, "role": asked.role}
    found = call.history.search_sessions(
        asked.query,
        limit=asked.limit,
        offset=asked.offset,
        by=asked.by,
        context=asked.context,
        pattern=asked.pattern,
        filters={name: value for name, value in named.items() if value is not None},
        since=since,
        until=until,
        progress=call.step,
        redactor=call.redactor,
    )
    found = replace(found, data=tuple(_titled(call, match) for match in found.data))
    lines = [line for match in found.data for line in _match_lines(match)]
    what = "session" if asked.by == "session" else "message"
    total = pluralize(found.total if found.total is not None else found.total_at_least or 0, what)
    total = total if found.is_counted else f"at least {total}"
    own = []
    if found.is_relaxed and found.data:
        own.append("No message has all of these words; these have the most.")
    if found.is_cut_short:
        own.append("Time ran out before all was looked at; a longer pattern is found faster.")
    more = more_from(asked.offset + len(found.data), has_more=found.has_more)
    own.append(f"{len(found.data)} of {total}{more}." if found.data else "Nothing was found.")
    return Answer("\n".join(lines), search_document(found), tuple(own))


def recall(call: Call, asked: Recall) -> Answer:
    call.check_workspace(asked.workspace)
    found = call.history.recall(
        asked.task,
        workspace=asked.workspace,
        token_budget=asked.token_budget,
        redactor=call.redactor,
        progress=call.step,
    )
    own = [] if found.sessions else ["No earlier session has to do with it."]
    if found.left_out:
        own.append(f"{pluralize(found.left_out, 'more session')} fit less, or not the budget.")
    return Answer("\n".join(recall_lines(found)), recall_document(found), tuple(own))


def stats(call: Call, asked: Stats) -> Answer:
    wanted = call.filter(workspace=asked.workspace, source=asked.source, since=asked.since, until=asked.until)
    document = report_document(call.history.statistics.report(wanted, by=asked.by))
    rows = document["data"][::-1] if asked.by in _TIMES else document["data"]
    some, page = portion(rows, limit=asked.limit, offset=asked.offset)
    for row in some:
        if isinstance(row["key"], str):
            row["key"] = call.text(row["key"], "figures")
    document["data"] = some
    document["pagination"] = asdict(page)
    lines = [_figures(row) for row in some]
    lines.append(_figures(document["total"] | {"key": "All together"}))
    own = [f"Prices of {document['prices_checked']}; days of {document['zone']}."]
    if asked.by is not None:
        more = more_from(asked.offset + len(some), has_more=page.has_more)
        own.append(f"{len(some)} of {pluralize(len(rows), 'row')}{more}.")
    return Answer("\n".join(lines), document, tuple(own))


def _titled(call: Call, match: SearchMatch) -> SearchMatch:
    title = call.text(match.title, match.session_ref) if match.title else None
    name = call.text(match.workspace_name, match.session_ref) if match.workspace_name else None
    return replace(match, title=title, workspace_name=name)


def _match_lines(match: SearchMatch) -> list[str]:
    facts = [
        f"{match.source}:{short_id(match.session_id)}",
        one_line(match.title or "untitled", _WIDTH),
        one_line(match.workspace_name or "", 60),
        (iso(match.timestamp) or "")[:10],
        f"{match.match_count:,} matches" if match.match_count > 1 else "",
    ]
    head = " · ".join(fact for fact in facts if fact)
    first, *others = [sanitize(line) for line in match.context] or [""]
    who = "note" if match.is_note else match.role
    return [head, f"   [{match.message_index}] {who}: {first}", *(f"     {line}" for line in others)]


def _figures(row: dict[str, object]) -> str:
    told = [f"{one_line(str(row['key'] if row['key'] is not None else 'unknown'), _WIDTH)}:"]
    for name in ("sessions", "messages", "total_tokens", "cost_usd", "lines_added", "tool_calls"):
        value = row.get(name)
        if isinstance(value, int | float):
            told.append(f"{value:,.2f} USD" if name == "cost_usd" else f"{value:,} {name.replace('_', ' ')}")
    return " ".join([told[0], ", ".join(told[1:])])
