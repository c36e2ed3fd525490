"""Move the transcripts of a session. They are named after the project, and their lines contain no folder."""

from collections.abc import Iterator
from pathlib import Path

from backscroll.errors import ChangeConflictError
from backscroll.model.safekeeping.changes import FileChange
from backscroll.readers.file_hash import file_sha256
from backscroll.sources.cursor_cli.workspace import moved_slug, project_slugs
from backscroll.sources.cursor_cli.writing.store_files import content_of

__all__ = ["find_transcript_files", "move_transcripts"]

_FOLDER = "agent-transcripts"


def find_transcript_files(root: Path, session_id: str) -> list[Path]:
    """Return the transcripts of a session and its subagents in all projects."""
    found: list[Path] = []
    for folder in sorted(root.glob(f"projects/*/{_FOLDER}")):
        found += [
            path for suffix in ("jsonl", "txt") if (path := folder / f"{session_id}.{suffix}").is_file()
        ]
        found += sorted(path for path in (folder / session_id).rglob("*") if path.is_file())
    return found


def move_transcripts(root: Path, session_id: str, folder: str | None, target: Path) -> list[FileChange]:
    """Plan to move the transcripts in the project of a folder to that of another one.

    Transcripts in other projects stay, such as those of a window without a folder.
    """
    if folder is None:
        return []
    created: list[FileChange] = []
    deleted: list[FileChange] = []
    slugs = project_slugs(folder)
    for path in find_transcript_files(root, session_id):
        project, *rest = path.relative_to(root / "projects").parts
        if project not in slugs:
            continue
        new_path = root.joinpath("projects", _target_slug(root, project, folder, target), *rest)
        if new_path == path:
            continue
        if new_path.exists():
            raise ChangeConflictError(f"{new_path} exists already. Nothing was changed.", new_path)
        stat = path.stat()
        created.append(
            FileChange(
                path=new_path,
                content=content_of(path),
                before=None,
                size=stat.st_size,
                label="transcript",
                modified_at=stat.st_mtime,
            )
        )
        deleted.append(
            FileChange(
                path=path,
                content=None,
                before=file_sha256(path),
                label="transcript",
                modified_at=stat.st_mtime,
            )
        )
    return [*created, *deleted]


def _target_slug(root: Path, slug: str, folder: str, target: Path) -> str:
    """Return the name of the target's project: an existing one, else by the rule of the old name."""
    existing = [name for name in _preferred(slug, folder, target) if (root / "projects" / name).is_dir()]
    return existing[0] if existing else moved_slug(slug, folder, str(target))


def _preferred(slug: str, folder: str, target: Path) -> Iterator[str]:
    yield moved_slug(slug, folder, str(target))
    yield from sorted(project_slugs(str(target)))
