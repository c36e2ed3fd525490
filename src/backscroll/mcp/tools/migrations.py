"""Tools that restore deleted sessions, and move and copy sessions to another folder."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from backscroll.mcp.call import Call
from backscroll.mcp.tools.arguments import MigrateSession, MigrateWorkspace, RestoreSession, absolute_path
from backscroll.mcp.tools.plans import NotAppliedError, Plan, run_planned, shell_command
from backscroll.mcp.tools.results import ToolAnswer
from backscroll.model.change import ChangePlan
from backscroll.model.text import one_line, pluralize
from backscroll.model.transfer import (
    MigrateError,
    MigrateResult,
    MigrationPlan,
    PlannedSession,
    RestoreSessionsPlan,
)

MAX_SESSIONS = 30  # listed in a plan or result
MAX_CHANGE_LINES = 12  # of one session
MAX_TITLE_CHARS = 100
MAX_PATH_CHARS = 500


def restore_session(call: Call, arguments: RestoreSession) -> ToolAnswer:
    def make_plan() -> Plan:
        call.history.sync(call.report_progress)
        filter_ = call.filter(arguments)
        if not arguments.refs:
            filter_ = replace(filter_, is_gone=True)
        return _Restore(call.history.transfers.plan_restores(arguments.refs or (), filter=filter_))

    return run_planned(call, "restore_session", arguments, make_plan)


class _Restore(Plan):
    """Sessions to restore."""

    def __init__(self, plan: RestoreSessionsPlan) -> None:
        self._plan = plan

    @property
    def is_empty(self) -> bool:
        return not self._plan.added

    @property
    def paths(self) -> list[str | Path]:
        changes = self._plan.changes
        files = (file.path for file in changes.files)
        return list(dict.fromkeys([*files, *(row.database for row in changes.rows)]))

    @property
    def command(self) -> Sequence[str]:
        return ["restore-session", *(one.session.ref for one in self._plan.added)]

    def describe(self, call: Call) -> ToolAnswer:
        plan = self._plan
        lines = [f"Restore {pluralize(len(plan.added), 'session')}"]
        for one in plan.added[:MAX_SESSIONS]:
            lines += _session_lines(call, one, with_changes=len(plan.added) == 1)
        lines += _more_line(plan.added)
        if plan.kept:
            lines.append(f"  nothing is missing: {pluralize(len(plan.kept), 'session')}")
        errors = [one.error for one in plan.refused]
        lines += _error_lines(call, errors)
        document = {
            "session_count": len(plan.added),
            "sessions": [_session_document(call, one) for one in plan.added[:MAX_SESSIONS]],
            "kept_count": len(plan.kept),
            "errors": _error_documents(call, errors),
        }
        return ToolAnswer("\n".join(lines), document)

    def apply(self, call: Call) -> ToolAnswer:
        # Planned again: the plan reads from the archive that the other call had open.
        transfers = call.history.transfers
        result = transfers.restore_all(transfers.plan_restores([one.session.ref for one in self._plan.added]))
        lines = [f"Restored {pluralize(len(result.restored), 'session')}"]
        lines += [f"  {ref}" for ref in result.restored[:MAX_SESSIONS]]
        lines += [*_more_line(result.restored), *_error_lines(call, result.errors)]
        change = result.change
        document = {
            "restored": list(result.restored),
            "file_count": len(result.files),
            "row_count": result.row_count,
            "errors": _error_documents(call, result.errors),
            "change_id": change.id if change is not None else None,
        }
        if change is None:
            hint = "Nothing was changed. Remove the cause, then call again with the same plan_id."
            raise NotAppliedError(ToolAnswer("\n".join(lines), document, (hint,)))
        undo = shell_command([*call.options.command, "undo", change.id])
        return ToolAnswer("\n".join(lines), document, (f"To revert it, run: {undo}",))


def migrate_session(call: Call, arguments: MigrateSession) -> ToolAnswer:
    target = absolute_path("target", arguments.target)

    def make_plan() -> Plan:
        call.history.sync(call.report_progress)
        plan = call.history.transfers.plan_sessions(
            arguments.refs, target, mode=arguments.mode, with_running=True
        )
        refs = [one.session.ref for one in plan.sessions] or arguments.refs
        return _Migration(plan, ["migrate", *refs, "--to", str(target), "--mode", arguments.mode])

    return run_planned(call, "migrate_session", arguments, make_plan)


def migrate_workspace(call: Call, arguments: MigrateWorkspace) -> ToolAnswer:
    workspace = absolute_path("workspace", arguments.workspace)
    target = absolute_path("target", arguments.target)

    def make_plan() -> Plan:
        call.history.sync(call.report_progress)
        plan = call.history.transfers.plan_workspace(
            workspace, target, mode=arguments.mode, with_running=True
        )
        command = ["migrate-workspace", str(workspace), str(target), "--mode", arguments.mode]
        return _Migration(plan, command)

    return run_planned(call, "migrate_workspace", arguments, make_plan)


class _Migration(Plan):
    """Sessions to move or copy."""

    def __init__(self, plan: MigrationPlan, command: Sequence[str]) -> None:
        self._plan = plan
        self._command = command

    @property
    def is_empty(self) -> bool:
        return not self._plan.sessions

    @property
    def paths(self) -> list[str | Path]:
        # Not the files of changed lines: a tool appends to them with every prompt, which does no harm.
        found: dict[str | Path, None] = {}
        for one in self._plan.sessions:
            changes = one.plan.changes
            found |= dict.fromkeys(one.stored.paths if one.stored is not None else ())
            found |= dict.fromkeys(str(file.path) for file in changes.files)
            found |= dict.fromkeys(str(row.database) for row in changes.rows)
        return list(found)

    @property
    def command(self) -> Sequence[str]:
        return self._command

    def describe(self, call: Call) -> ToolAnswer:
        plan = self._plan
        verb = "Move" if plan.mode == "move" else "Copy"
        lines = [f"{verb} {pluralize(len(plan.sessions), 'session')} to {plan.target}"]
        for one in plan.sessions[:MAX_SESSIONS]:
            lines += _session_lines(call, one, with_changes=len(plan.sessions) == 1)
        lines += _more_line(plan.sessions)
        lines += _unchanged_lines(plan)
        lines += _error_lines(call, plan.errors)
        document = {
            "mode": plan.mode,
            "target": str(plan.target),
            "session_count": len(plan.sessions),
            "sessions": [_session_document(call, one) for one in plan.sessions[:MAX_SESSIONS]],
            "unchanged": [msgspec.structs.asdict(one) for one in plan.unchanged[:MAX_SESSIONS]],
            "errors": _error_documents(call, plan.errors),
        }
        return ToolAnswer("\n".join(lines), document)

    def find_obstacle(self, call: Call) -> str | None:
        for process in call.history.transfers.blocking_processes(self._plan):
            return process.reason
        live = call.history.live_sessions()
        for one in self._plan.sessions:
            session = one.session
            if (session.platform, session.id) in live and _is_tool(call.client, session.platform):
                return (
                    f"{session.ref} was used within the last ten minutes and may be the session that calls."
                    " Exit it first."
                )
        return None

    def apply(self, call: Call) -> ToolAnswer:
        result = call.history.transfers.migrate(self._plan)
        verb = "Moved" if self._plan.mode == "move" else "Copied"
        lines = [f"{verb} {pluralize(result.success_count, 'session')} to {self._plan.target}"]
        for one in result.sessions[:MAX_SESSIONS]:
            name = f" as {one.new_ref}" if one.new_ref != one.ref else ""
            lines.append(f"  {one.ref}{name} (change {one.change.id})")
        lines += _more_line(result.sessions)
        lines += _error_lines(call, result.errors)
        hints = []
        if result.sessions:
            change = [result.sessions[0].change.id] if len(result.sessions) == 1 else []
            hints.append(f"To revert it, run: {shell_command([*call.options.command, 'undo', *change])}")
        if result.failed_count:
            hints.append(f"{pluralize(result.failed_count, 'session')} not changed: see the reasons above.")
        if not result.sessions:
            hints.append("Remove the cause, then call again with the same plan_id.")
        answer = ToolAnswer("\n".join(lines), _result_document(call, result), tuple(hints))
        if not result.sessions:
            raise NotAppliedError(answer)
        return answer


def _is_tool(client: str | None, platform: str) -> bool:
    """Return whether the name of a client, such as cursor-vscode, is that of a platform."""
    return client is not None and _letters(platform) in _letters(client)


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _session_lines(call: Call, one: PlannedSession, *, with_changes: bool) -> Iterator[str]:
    summary = call.redact_summary(one.session)
    title = one_line(summary.title or summary.first_message_preview or "untitled", MAX_TITLE_CHARS)
    changes = one.plan.changes
    counts = [
        pluralize(len(items), noun)
        for items, noun in ((changes.files, "file"), (changes.lines, "line"), (changes.rows, "row"))
        if items
    ]
    if changes.moves:
        counts.append("in the archive")
    name = f" · as {one.new_ref}" if one.new_ref != one.session.ref else ""
    yield f"  {one.session.ref} · {title} · {', '.join(counts)}{name}"
    if with_changes:
        lines = list(_change_lines(changes))
        yield from lines[:MAX_CHANGE_LINES]
        if len(lines) > MAX_CHANGE_LINES:
            yield f"    … and {len(lines) - MAX_CHANGE_LINES:,} more"
    yield from (f"    Warning: {warning}" for warning in changes.warnings)


def _change_lines(changes: ChangePlan) -> Iterator[str]:
    for file in changes.files:
        yield f"    {file.action} {one_line(str(file.path), MAX_PATH_CHARS)}"
    lines = Counter(("change" if line.before is not None else "append", line.path) for line in changes.lines)
    for (action, path), count in lines.items():
        yield f"    {action} {pluralize(count, 'line')} of {one_line(str(path), MAX_PATH_CHARS)}"
    rows = Counter((row.action, row.database) for row in changes.rows)
    for (action, path), count in rows.items():
        yield f"    {action} {pluralize(count, 'row')} in {one_line(str(path), MAX_PATH_CHARS)}"


def _more_line(sessions: Sequence[object]) -> list[str]:
    more = len(sessions) - MAX_SESSIONS
    return [f"  … and {more:,} more"] if more > 0 else []


def _unchanged_lines(plan: MigrationPlan) -> Iterator[str]:
    for one in plan.unchanged[:MAX_SESSIONS]:
        state = f"copied already as {one.new_ref}" if one.new_ref != one.ref else f"in {plan.target} already"
        yield f"  {one.ref} · {state}"
    yield from _more_line(plan.unchanged)


def _error_lines(call: Call, errors: Sequence[MigrateError]) -> Iterator[str]:
    for error in errors[:MAX_SESSIONS]:
        message = call.redact_text(error.message, error.session_id)
        yield f"  not possible: {error.session_id} ({error.code}): {one_line(message, MAX_PATH_CHARS)}"
    yield from _more_line(errors)


def _session_document(call: Call, one: PlannedSession) -> dict[str, Any]:
    changes = one.plan.changes
    return {
        "ref": one.session.ref,
        "new_ref": one.new_ref,
        "title": call.redact_summary(one.session).title,
        "file_count": len(changes.files),
        "line_count": len(changes.lines),
        "row_count": len(changes.rows),
        "warnings": list(changes.warnings),
    }


def _error_documents(call: Call, errors: Iterable[MigrateError]) -> list[dict[str, Any]]:
    return [
        msgspec.structs.asdict(error) | {"message": call.redact_text(error.message, error.session_id)}
        for error in errors
    ]


def _result_document(call: Call, result: MigrateResult) -> dict[str, Any]:
    return {
        "success_count": result.success_count,
        "failed_count": result.failed_count,
        "errors": _error_documents(call, result.errors),
        "sessions": [
            {"ref": one.ref, "new_ref": one.new_ref, "change_id": one.change.id} for one in result.sessions
        ],
    }
