"""``backscroll doctor``: check that the whole history can be read, and find folders that were moved."""

import shlex
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from backscroll.cli.messages import as_sentence, command_hint
from backscroll.cli.options import json_option, no_sync_option, sync_before_reading
from backscroll.cli.output import write_json
from backscroll.cli.progress import ProgressBar
from backscroll.cli.startup import Setup
from backscroll.cli.sync import RECENT_EVENTS
from backscroll.config import this_machine
from backscroll.errors import ArchiveError, UsageError
from backscroll.history.history import History
from backscroll.model.problem import ENVIRONMENT_CODES, Audit, AuditedRoot
from backscroll.model.retention import Retention
from backscroll.model.sync import EventLog
from backscroll.model.text import pluralize, sanitize
from backscroll.model.workspace import MoveCandidate, MovedWorkspace, MovedWorkspaces
from backscroll.render.sync import events_document, events_line, retention_lines


class _ArchiveState(msgspec.Struct):
    """Recent events in the archive, or the error that opening it raised. Both are None without an archive."""

    path: str
    events: EventLog | None = None
    error: str | None = None


@click.command("doctor")
@json_option
@click.option(
    "--shape",
    is_flag=True,
    help="Print the keys and types of all records, without values, for a bug report. Review it first.",
)
@click.option(
    "--problems", "max_problems", default=20, show_default=True, help="Maximum number of problems to print."
)
@click.option("--moved", is_flag=True, help="Find sessions whose folder was moved or renamed.")
@click.option(
    "--search",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="With --moved: also search below this folder. Repeatable.",
)
@no_sync_option
@click.pass_obj
def command(
    setup: Setup, as_json: bool, shape: bool, max_problems: int, moved: bool, search: tuple[Path, ...]
) -> None:
    """Check that the whole history can be read.

    Reads every record of every source and counts it as parsed, ignored (known to contain no message) or a
    problem. Also checks that the archive can be opened, and prints how many sessions the tools deleted or
    overwrote in the last 7 days. Exit code 3: there are problems, or the archive is damaged.

    With --moved, instead lists session folders that no longer exist, and prints the commands that move their
    sessions to the new folders. Searches two levels below the nearest two existing parents, the folders
    beside those of other sessions, and six levels below --search.

    \b
    Examples:
      backscroll doctor
      backscroll doctor --shape > shape.txt
      backscroll doctor --moved --search ~/work
    """
    if search and not moved:
        raise UsageError("--search needs --moved.")
    history = setup.history()
    if moved:
        _print_moved(history, search, as_json=as_json)
        return
    if shape:
        _print_shape(history, as_json=as_json)
        return
    now = datetime.now(UTC)
    with ProgressBar("Reading") as bar:
        audit = history.source_files.audit(bar.step)
    archive = _check_archive(history, now)
    retentions = history.retentions(now)
    if as_json:
        write_json(_document(audit, archive, retentions))
    else:
        lines = [*_audit_lines(audit, this_machine().home, max_problems), *_archive_lines(archive, now)]
        lines += [line for retention in retentions for line in retention_lines(retention)]
        click.echo(sanitize("\n".join(lines)))
    if not audit.is_understood or archive.error is not None:
        sys.exit(3)


def _check_archive(history: History, now: datetime) -> _ArchiveState:
    path = history.archive_path
    try:
        if not path.exists():
            return _ArchiveState(str(path))
        with history:
            return _ArchiveState(str(path), history.events(now - RECENT_EVENTS))
    except (ArchiveError, OSError) as error:
        return _ArchiveState(str(path), error=str(error))


def _archive_lines(archive: _ArchiveState, now: datetime) -> Iterator[str]:
    if archive.error is not None:
        yield as_sentence(archive.error)
    elif archive.events is not None and (line := events_line(archive.events, now)):
        yield f"{line}."


def _print_shape(history: History, *, as_json: bool) -> None:
    outlines = history.source_files.outlines()
    if as_json:
        document = {
            source: {
                kind: {"documents": outline.documents, "keys": outline.types}
                for kind, outline in kinds.items()
            }
            for source, kinds in outlines.items()
        }
        write_json(document)
        return
    for source, kinds in outlines.items():
        for kind, outline in sorted(kinds.items()):
            click.echo(f"{source} · {sanitize(kind)} · {outline.documents:,}")
            for line in outline.lines():
                click.echo(f"  {sanitize(line)}")


def _document(audit: Audit, archive: _ArchiveState, retentions: list[Retention]) -> dict[str, object]:
    return {
        "is_understood": audit.is_understood,
        "archive": archive.path,
        "archive_trouble": archive.error,
        "ledger": events_document(archive.events) if archive.events is not None else None,
        "retention": [retention._asdict() for retention in retentions],
        "places": audit.places,
        "problems": [
            {
                "path": problem.origin.path,
                "place": problem.origin.place,
                "code": problem.code,
                "reason": problem.reason,
            }
            for problem in audit.problems
        ],
    }


def _audit_lines(audit: Audit, home: Path, max_problems: int) -> Iterator[str]:
    existing = [root for root in audit.places if root.exists]
    missing = [root for root in audit.places if not root.exists]
    for root in existing:
        yield from _root_lines(root, home)
        yield ""
    if missing:
        yield "Not found:"
        yield from (f"  {root.source:<12} {_abbreviate(root.path, home)}" for root in missing)
        yield ""
    if not any(root.records for root in existing) and not audit.problems:
        yield "No history found."
        yield f"To try Backscroll on sample data, run '{command_hint('demo DIR')}'."
        return
    if audit.problems:
        count = len(audit.problems)
        yield f"{pluralize(count, 'problem')}{f' (first {max_problems})' if count > max_problems else ''}:"
        for problem in audit.problems[:max_problems]:
            yield f"  {_abbreviate(problem.origin.path, home)}, {problem.origin.place}: {problem.reason}"
        yield ""
    codes = {problem.code for problem in audit.problems}
    if audit.is_understood:
        yield "No problems found."
    if "permission-denied" in codes:
        yield f"Grant permission to read these files and folders, then run '{command_hint('sync')}'."
    if "not-a-file" in codes:
        yield f"Replace or remove what is not a file, then run '{command_hint('sync')}'."
    if codes - ENVIRONMENT_CODES or any(root.unknown for root in existing):
        yield "Some records could not be parsed. To report this, attach the output of"
        yield f"'{command_hint('doctor --shape')}'. It describes the records but contains no values."


def _root_lines(root: AuditedRoot, home: Path) -> Iterator[str]:
    yield f"{root.source}  {_abbreviate(root.path, home)}"
    units = ", ".join(f"{kind}: {count:,}" for kind, count in sorted(root.units.items()))
    yield f"  units      {sum(root.units.values()):,}" + (f" ({units})" if units else "")
    incomplete = [f"{n:,} {kind}" for kind, n in sorted(root.completeness.items()) if kind != "complete"]
    lossy = f" ({', '.join(incomplete)})" if incomplete else ""
    yield f"  sessions   {root.sessions:,}{lossy}, {pluralize(root.session_messages, 'message')}"
    if root.unlisted:
        unlisted = ", ".join(f"{count:,} {reason}" for reason, count in sorted(root.unlisted.items()))
        yield f"  unlisted   {unlisted}"
    messages = f", {pluralize(root.subagent_messages, 'message')}" if root.subagents else ""
    yield f"  subagents  {root.subagents:,}{messages}"
    yield f"  messages   {root.messages:,} in total, with system messages and abandoned branches"
    yield (
        f"  records    {root.records:,} = {root.parsed:,} parsed"
        f" + {root.ignored:,} ignored + {pluralize(root.problems, 'problem')}"
    )
    for kind, count in sorted(root.kinds.items(), key=lambda item: (-item[1], item[0])):
        yield f"    {count:>9,} {kind}"
    if root.unknown:
        yield "  unknown"
        for name, count in sorted(root.unknown.items()):
            yield f"    {count:>9,} {name}"


def _abbreviate(path: str, home: Path) -> str:
    prefix = str(home)
    return f"~{path[len(prefix) :]}" if path.startswith(prefix + "/") else path


def _print_moved(history: History, search: tuple[Path, ...], *, as_json: bool) -> None:
    with history:
        sync_before_reading(history)
        found = history.transfers.moved_workspaces(search)
    if as_json:
        write_json(_moved_document(found))
    else:
        click.echo(sanitize("\n".join(_moved_lines(found))))


def _moved_lines(found: MovedWorkspaces) -> Iterator[str]:
    """Yield the folders that are gone, the reasons for each new place, and the commands to run."""
    if not found.workspaces:
        yield "The folders of all sessions exist."
        return
    for workspace in found.workspaces:
        yield from _workspace_lines(workspace)
        yield ""
    certain = [one for one in found.workspaces if one.new_path is not None]
    unclear = [one for one in found.workspaces if one.candidates and one.new_path is None]
    missing = [one for one in found.workspaces if not one.candidates]
    if certain:
        yield "To move the sessions, check the new folders, then run:"
        yield from (f"  {_migrate_command(one, one.new_path or '')}" for one in certain)
    if unclear:
        yield "Several folders are equally likely. For each old folder, run one of:"
        for one in unclear:
            yield from (f"  {_migrate_command(one, place.path)}" for place in _best_candidates(one))
    if missing:
        yield f"No new place was found for {pluralize(len(missing), 'folder')}. If it was moved, run:"
        yield f"  {command_hint('doctor --moved --search DIR')}"
    if not found.is_search_complete:
        yield "Not all folders were searched, because there are too many. Use --search with a smaller folder."


def _workspace_lines(workspace: MovedWorkspace) -> Iterator[str]:
    sessions = pluralize(workspace.session_count, "session")
    yield f"{workspace.path} no longer exists ({sessions}: {', '.join(workspace.sources)})."
    for candidate in workspace.candidates:
        mark = "→" if candidate.path == workspace.new_path else "?"
        evidence = ", ".join(one.detail for one in candidate.evidence)
        yield f"  {mark} {candidate.path}: {evidence}"
    if not workspace.candidates:
        yield "  No similar folder was found."


def _best_candidates(workspace: MovedWorkspace) -> list[MoveCandidate]:
    return [one for one in workspace.candidates if one.level == workspace.candidates[0].level]


def _migrate_command(workspace: MovedWorkspace, new_path: str) -> str:
    words = shlex.join([workspace.path, new_path])
    return command_hint(f"migrate-workspace {words} --mode move")


def _moved_document(found: MovedWorkspaces) -> dict[str, Any]:
    """Return the folders that are gone as JSON. ``new_path`` and ``command`` are null unless one is best."""
    return {
        "data": [
            {
                "path": one.path,
                "session_count": one.session_count,
                "sources": list(one.sources),
                "new_path": one.new_path,
                "command": _migrate_command(one, one.new_path) if one.new_path is not None else None,
                "candidates": [
                    {
                        "path": candidate.path,
                        "evidence": [
                            {"kind": evidence.kind, "detail": evidence.detail}
                            for evidence in candidate.evidence
                        ],
                        "command": _migrate_command(one, candidate.path),
                    }
                    for candidate in one.candidates
                ],
            }
            for one in found.workspaces
        ],
        "searched": list(found.searched),
        "is_search_complete": found.is_search_complete,
    }
