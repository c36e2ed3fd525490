"""The project folder of a workspace."""

import os
import re
import unicodedata
from pathlib import Path

from backscroll.sources.claude_code.project_key import MAX_NAME_CHARS, long_project_key, project_key

__all__ = ["path_on_disk", "target_folder"]

_TAIL_BYTES = 64 * 1024
_MAX_FILE_NAME = 255
_VERSION = re.compile(rb'"version":"([0-9]+)\.([0-9]+)')


def target_folder(root: Path, workspace: Path, transcript: Path) -> Path:
    """Return the project folder of a workspace: an existing one, or the one that the tool would create.

    Versions before 2.1 do not shorten long names. The version that wrote the transcript decides.
    """
    path = path_on_disk(workspace)
    names = [project_key(path)]
    if len(names[0]) > MAX_NAME_CHARS and len(long_project_key(path)) <= _MAX_FILE_NAME:
        names.insert(0 if _last_version(transcript) < (2, 1) else 1, long_project_key(path))
    names.append(project_key(unicodedata.normalize("NFC", path)))
    folders = [root / "projects" / name for name in names]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def path_on_disk(folder: Path) -> str:
    """Return the path of a folder with every name in the Unicode form that it has on disk."""
    path = os.path.realpath(folder)
    if path.isascii():
        return path
    current = Path(path).anchor
    for name in Path(path).parts[1:]:
        current = os.path.join(current, name if name.isascii() else _name_on_disk(current, name))  # noqa: PTH118
    return current


def _name_on_disk(parent: str, name: str) -> str:
    try:
        names = [path.name for path in Path(parent).iterdir()]
    except OSError:
        return name
    if name in names:
        return name
    composed = unicodedata.normalize("NFC", name)
    return next((one for one in names if unicodedata.normalize("NFC", one) == composed), name)


def _last_version(transcript: Path) -> tuple[int, int]:
    """Return the version that wrote the last lines of a transcript; a high one if unknown."""
    with transcript.open("rb") as file:
        file.seek(max(0, transcript.stat().st_size - _TAIL_BYTES))
        found = _VERSION.findall(file.read())
    return (int(found[-1][0]), int(found[-1][1])) if found else (9, 0)
