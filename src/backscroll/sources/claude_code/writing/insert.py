"""Plan to add the prompts and index entries of restored sessions to files that may contain others."""

from pathlib import Path

from backscroll.model.safekeeping.backup import InsertPlan, RestoreAction, RestoredFile
from backscroll.model.safekeeping.changes import FileChange, LineChange, RowChange
from backscroll.sources.claude_code.backup import PROMPT_LOG
from backscroll.sources.claude_code.folders import LEGACY_DATABASE
from backscroll.sources.claude_code.writing.session_files import read_lines
from backscroll.sources.claude_code.writing.side_stores import add_index_entries
from backscroll.sources.row_inserts import create_file, insert_rows

__all__ = ["plan_insert"]


def plan_insert(copy: Path, root: Path, *, force: bool) -> InsertPlan:
    """Plan to add the lines, entries and rows of a reduced copy. Files that do not exist are created.

    Nothing is replaced, with or without ``force``.
    """
    results: list[RestoredFile] = []
    files: list[FileChange] = []
    lines: list[LineChange] = []
    rows: list[RowChange] = []
    for path in sorted(path for path in copy.rglob("*") if path.is_file()):
        target = root / path.relative_to(copy)
        if not target.exists():
            result, file = create_file(path, target)
            files.append(file)
        elif target.name == PROMPT_LOG:
            result, added = _missing_prompts(path, target)
            lines += added
        elif target.name == LEGACY_DATABASE:
            result, inserted = insert_rows(path, target)
            rows += inserted
        else:
            change, count = add_index_entries(path, target)
            files += [change] if change is not None else []
            size = path.stat().st_size
            result = RestoredFile(str(target), "insert" if count else "unchanged", size, row_count=count)
        results.append(result)
    return InsertPlan(results=tuple(results), files=tuple(files), lines=tuple(lines), rows=tuple(rows))


def _missing_prompts(path: Path, target: Path) -> tuple[RestoredFile, list[LineChange]]:
    existing = {line.rstrip(b"\n") for line in read_lines(target)}
    missing = [line for one in read_lines(path) if (line := one.rstrip(b"\n")) and line not in existing]
    changes = [LineChange(path=target, before=None, after=line, label="prompt") for line in missing]
    size = sum(len(line) + 1 for line in missing)
    action: RestoreAction = "insert" if changes else "unchanged"
    return RestoredFile(str(target), action, size, row_count=len(changes)), changes
