"""Tools that find the sessions behind commits and lines of code."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.mcp.call import Call
from backscroll.mcp.tools.arguments import SessionsForCode, SessionsForCommit, absolute_path
from backscroll.mcp.tools.results import ToolAnswer
from backscroll.model.commit import BlameLine, CommitDetails, CommitTurn, LinkedSession, OpenSession
from backscroll.model.dates import iso
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, pluralize
from backscroll.render.humanize import short_ref, short_sha

MAX_SESSIONS = 5
MAX_TURNS = 6  # of each session
MAX_RANGES = 30
MAX_PROMPT_CHARS = 300
MAX_TITLE_CHARS = 100
_LINES = re.compile(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?")
_READ_HINT = "Read a turn with get_session, using the ref and the position."


def sessions_for_commit(call: Call, arguments: SessionsForCommit) -> ToolAnswer:
    repository = absolute_path("repository", arguments.repository)
    commit = call.history.get_commit(arguments.revision, repository, progress=call.report_progress)
    shown = commit.sessions[:MAX_SESSIONS]
    items = [_session_item(call, commit, linked) for linked in shown]
    lines = [
        f"{short_sha(commit.sha)} {(iso(commit.at) or '')[:10]} {one_line(commit.author, MAX_TITLE_CHARS)}:"
        f" {call.redact_text(one_line(commit.subject, 2 * MAX_TITLE_CHARS), commit.sha)}"
    ]
    lines += [line for item in items for line in _session_lines(item)]
    context = [_open_item(call, opened) for opened in commit.context[:MAX_SESSIONS]]
    lines += [
        f"also open at the time: {short_ref(item['ref'])} · {item['title']} [{item['position']}] to"
        f" [{item['last_position']}]"
        for item in context
    ]
    if not items:
        hints = ["No session was found for this commit: no assistant wrote it, or its history is lost."]
        if commit.is_merge:
            hints = ["No session was found for this merge. Its lines are not compared: see what it merges."]
    else:
        hints = [_READ_HINT]
    if len(commit.sessions) > len(shown):
        hints.append(f"{pluralize(len(commit.sessions) - len(shown), 'less likely session')} omitted.")
    document = {
        "sha": commit.sha,
        "parent": commit.parent,
        "author": commit.author,
        "at": iso(commit.at),
        "subject": call.redact_text(commit.subject, commit.sha),
        "sessions": items,
        "context": context,
    }
    return ToolAnswer("\n".join(lines), document, tuple(hints))


def _open_item(call: Call, opened: OpenSession) -> dict[str, Any]:
    return {
        "ref": opened.session_ref,
        "title": _title(_find(call, opened.session_ref)),
        "position": opened.first,
        "last_position": opened.last,
    }


def _session_item(call: Call, commit: CommitDetails, linked: LinkedSession) -> dict[str, Any]:
    summary = _find(call, linked.session_ref)
    turns = [turn for turn in commit.turns if turn.session_ref == linked.session_ref]
    return {
        "ref": linked.session_ref,
        "title": _title(summary),
        "workspace_name": summary.workspace_name if summary is not None else None,
        "score": round(linked.score, 2),
        "evidence": [
            {
                "kind": one.kind,
                "weight": round(one.weight, 2),
                "detail": call.redact_text(one.detail, linked.session_ref),
            }
            for one in linked.evidence
        ],
        "turns": [_turn_item(call, turn) for turn in turns[:MAX_TURNS]],
        "omitted_turns": len(turns[MAX_TURNS:]) or None,
    }


def _turn_item(call: Call, turn: CommitTurn) -> dict[str, Any]:
    return {
        "position": turn.first,
        "last_position": turn.last,
        "prompt": _prompt(call, turn.prompt, turn.session_ref, turn.first),
    }


def _session_lines(item: dict[str, Any]) -> Iterator[str]:
    facts = [short_ref(item["ref"]), item["title"], one_line(item["workspace_name"] or "", 60)]
    yield f"{item['score']:.2f} {' · '.join(fact for fact in facts if fact)}"
    for one in item["evidence"]:
        yield f"   {one['weight']:.2f} {one['kind']}: {one_line(one['detail'], 2 * MAX_TITLE_CHARS)}"
    for turn in item["turns"]:
        prompt = turn["prompt"] or "(before the first prompt)"
        yield f"   [{turn['position']}] to [{turn['last_position']}] user: {prompt}"
    if item["omitted_turns"]:
        yield f"   … and {pluralize(item['omitted_turns'], 'more turn')}"


def sessions_for_code(call: Call, arguments: SessionsForCode) -> ToolAnswer:
    repository = (
        absolute_path("repository", arguments.repository) if arguments.repository is not None else None
    )
    file = arguments.file
    if repository is None and not Path(file).expanduser().is_absolute():
        raise UsageError(f"file: {file!r} is not an absolute path. Pass one, or pass repository.")
    blamed = call.history.blame_file(
        file, repository, lines=_parse_lines(arguments.lines), progress=call.report_progress
    )
    ranges = list(_ranges(blamed))
    shown = ranges[:MAX_RANGES]
    refs = dict.fromkeys(lines[0].session_ref for lines in shown)
    titles = {ref: _title(_find(call, ref)) for ref in refs if ref is not None}
    items = [_range_item(call, lines, titles) for lines in shown]
    hints = [_READ_HINT] if titles else []
    if not blamed:
        hints.append("The file is empty.")
    elif not titles:
        hints.append("No session was found for these lines: no assistant wrote them, or its history is lost.")
    if len(ranges) > len(shown):
        hints.append(f"More lines: lines={ranges[len(shown)][0].line}-{blamed[-1].line}")
    document = {"file": file, "data": items}
    return ToolAnswer("\n".join(_range_lines(items)), document, tuple(hints))


def _parse_lines(lines: str | None) -> tuple[int, int] | None:
    if lines is None:
        return None
    match = _LINES.fullmatch(lines.strip())
    if match is None:
        raise UsageError(f"lines: {lines!r} is not a range of lines. Examples: 40, 40-60")
    first = int(match[1])
    return first, int(match[2]) if match[2] is not None else first


def _ranges(lines: Sequence[BlameLine]) -> Iterator[list[BlameLine]]:
    """Yield consecutive lines that come from the same commit and turn."""
    for _, group in groupby(lines, key=lambda line: (line.sha, line.session_ref, line.agent_ref, line.first)):
        yield list(group)


def _range_item(call: Call, lines: Sequence[BlameLine], titles: dict[str, str]) -> dict[str, Any]:
    line = lines[0]
    ref = line.session_ref or ""
    return {
        "first_line": line.line,
        "last_line": lines[-1].line,
        "sha": line.sha,
        "at": iso(line.at) if line.at is not None else None,
        "author": line.author,
        "subject": call.redact_text(line.subject, line.sha or "") if line.subject is not None else None,
        "ref": line.session_ref,
        "title": titles.get(ref),
        "agent_ref": line.agent_ref,
        "position": line.first,
        "last_position": line.last,
        "prompt": _prompt(call, line.prompt, ref, line.first),
    }


def _range_lines(items: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield each range with its commit and prompt. A prompt that occurs again is not repeated."""
    seen: set[tuple[str, int | None]] = set()
    for item in items:
        last = f"-{item['last_line']}" if item["last_line"] != item["first_line"] else ""
        commit = "not committed"
        if item["sha"] is not None:
            subject = one_line(item["subject"] or "", MAX_TITLE_CHARS)
            commit = f"{short_sha(item['sha'])} {(item['at'] or '')[:10]} {subject}"
        session = "" if item["ref"] is not None else " · no session"
        yield f"{item['first_line']}{last}: {commit}{session}"
        if item["ref"] is None:
            continue
        agent = f" · subagent {short_ref(item['agent_ref'])}" if item["agent_ref"] else ""
        if (turn := (item["ref"], item["position"])) in seen:
            yield f"   {short_ref(item['ref'])} [{item['position']}], as above{agent}"
            continue
        seen.add(turn)
        title = f" · {item['title']}" if item["title"] else ""
        yield f"   {short_ref(item['ref'])}{title}{agent}"
        if item["position"] is not None:
            prompt = item["prompt"] or "(before the first prompt)"
            yield f"   [{item['position']}] to [{item['last_position']}] user: {prompt}"


def _find(call: Call, ref: str) -> SessionSummary | None:
    """Return a session, and collect its secrets. None if another process has erased it."""
    try:
        summary = call.history.find(ref)
    except SessionNotFoundError:
        return None
    call.learn_secrets(summary)
    return call.redact_summary(summary)


def _title(summary: SessionSummary | None) -> str:
    if summary is None:
        return ""
    return one_line(summary.title or summary.first_message_preview or "untitled", MAX_TITLE_CHARS)


def _prompt(call: Call, prompt: str | None, ref: str, position: int | None) -> str | None:
    # Redact before shortening: a part of a secret may have no recognizable form.
    return one_line(call.redact_text(prompt, ref, position), MAX_PROMPT_CHARS) if prompt else None
