"""``backscroll doctor``: what there is, and whether all of it was understood."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from backscroll.cli.progress import ProgressBar
from backscroll.cli.setup import Setup
from backscroll.cli.sync_output import RECENT_EVENTS
from backscroll.config import this_machine
from backscroll.errors import ArchiveError
from backscroll.history import History
from backscroll.model import Retention
from backscroll.model.audit import Audit, AuditedRoot
from backscroll.model.events import EventLog
from backscroll.model.sanitize import sanitize
from backscroll.render.events import events_document, events_line
from backscroll.render.json import encode_json
from backscroll.render.retention import retention_lines

__all__ = ["command"]


class _Kept(msgspec.Struct):
    """What the archive says of itself: nothing when there is none yet, or what is wrong with it."""

    path: str
    ledger: EventLog | None = None
    trouble: str | None = None


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--shape", is_flag=True, help="Print keys and types of the records, no values: safe for a bug report."
)
@click.option("--problems", "most", default=20, show_default=True, help="How many problems to print.")
@click.pass_obj
def command(setup: Setup, as_json: bool, shape: bool, most: int) -> None:
    """Say what history there is, and whether all of it was understood.

    Every record below every root is read and counted once: as understood, as known to carry no message, or as
    a problem. What became of sessions within the last week is said as well, and whether the archive can be
    read. Exit code 3 means that something was not understood, or that the archive is damaged.

    Example:

        backscroll doctor
    """
    history = setup.history()
    if shape:
        _print_shape(history, as_json=as_json)
        return
    now = datetime.now(UTC)
    with ProgressBar("Reading") as bar:
        found = history.audit(bar.step)
    kept = _kept(history, now)
    retentions = history.retentions(now)
    if as_json:
        document = _document(found, kept, retentions)
        sys.stdout.buffer.write(encode_json(document))
    else:
        lines = [*_report(found, this_machine().home, most), *_kept_lines(kept, now)]
        lines += [line for one in retentions for line in retention_lines(one)]
        click.echo(sanitize("\n".join(lines)))
    if not found.is_understood or kept.trouble is not None:
        sys.exit(3)


def _kept(history: History, now: datetime) -> _Kept:
    path = history.archive_path
    try:
        if not path.exists():
            return _Kept(str(path))
        with history:
            return _Kept(str(path), history.ledger(now - RECENT_EVENTS))
    except (ArchiveError, OSError) as error:
        return _Kept(str(path), trouble=str(error))


def _kept_lines(kept: _Kept, now: datetime) -> Iterator[str]:
    if kept.trouble is not None:
        yield f"{kept.trouble}."
    elif kept.ledger is not None and (told := events_line(kept.ledger, now)):
        yield f"{told}."


def _print_shape(history: History, *, as_json: bool) -> None:
    outlines = history.outlines()
    if as_json:
        document = {
            source: {
                kind: {"documents": found.documents, "keys": found.types} for kind, found in kinds.items()
            }
            for source, kinds in outlines.items()
        }
        sys.stdout.buffer.write(encode_json(document))
        return
    for source, kinds in outlines.items():
        for kind, outline in sorted(kinds.items()):
            click.echo(f"{source} · {sanitize(kind)} · {outline.documents:,}")
            for line in outline.lines():
                click.echo(f"  {sanitize(line)}")


def _document(found: Audit, kept: _Kept, retentions: list[Retention]) -> dict[str, object]:
    return {
        "is_understood": found.is_understood,
        "archive": kept.path,
        "archive_trouble": kept.trouble,
        "ledger": events_document(kept.ledger) if kept.ledger is not None else None,
        "retention": [one._asdict() for one in retentions],
        "places": found.places,
        "problems": [
            {"path": p.origin.path, "place": p.origin.place, "reason": p.reason} for p in found.problems
        ],
    }


def _report(found: Audit, home: Path, most: int) -> Iterator[str]:
    there = [place for place in found.places if place.exists]
    missing = [place for place in found.places if not place.exists]
    for place in there:
        yield from _told(place, home)
        yield ""
    if missing:
        yield "Not there:"
        yield from (f"  {place.source:<12} {_short(place.path, home)}" for place in missing)
        yield ""
    if not any(place.records for place in there):
        yield "No history was found in any of these places."
        yield "To look around with a made-up one: backscroll demo DIR"
        return
    if found.problems:
        yield f"{len(found.problems):,} problems{_cut(found, most)}:"
        for problem in found.problems[:most]:
            yield f"  {_short(problem.origin.path, home)}, {problem.origin.place}: {problem.reason}"
        yield ""
    if found.is_understood:
        yield "Everything was understood."
    else:
        yield "Not everything was understood. What doctor --shape prints holds no content and says what the"
        yield "records look like: attach it to a bug report, and the next version will know them."


def _cut(found: Audit, most: int) -> str:
    return f", the first {most}" if len(found.problems) > most else ""


def _told(place: AuditedRoot, home: Path) -> Iterator[str]:
    yield f"{place.source}  {_short(place.path, home)}"
    units = ", ".join(f"{number:,} {kind}" for kind, number in sorted(place.units.items()))
    yield f"  units      {sum(place.units.values()):,}" + (f" ({units})" if units else "")
    poor = [f"{n:,} {kind}" for kind, n in sorted(place.completeness.items()) if kind != "complete"]
    yield f"  sessions   {place.sessions:,}" + (f" ({', '.join(poor)})" if poor else "")
    if place.unlisted:
        unlisted = ", ".join(f"{number:,} {kind}" for kind, number in sorted(place.unlisted.items()))
        yield f"  unlisted   {unlisted}"
    yield f"  subagents  {place.subagents:,}"
    yield f"  messages   {place.messages:,}"
    yield (
        f"  records    {place.records:,} = {place.parsed:,} understood"
        f" + {place.ignored:,} carrying no message + {place.problems:,} problems"
    )
    for kind, number in sorted(place.kinds.items(), key=lambda item: (-item[1], item[0])):
        yield f"    {number:>9,} {kind}"
    if place.unknown:
        yield "  unknown"
        for name, number in sorted(place.unknown.items()):
            yield f"    {number:>9,} {name}"


def _short(path: str, home: Path) -> str:
    own = str(home)
    return f"~{path[len(own) :]}" if path.startswith(own + "/") else path
