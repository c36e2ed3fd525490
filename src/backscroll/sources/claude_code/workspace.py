"""Find the workspace of a session, and the project folder of a workspace.

A project's folder is named after the path in which Claude Code was started. On Linux, most versions use the
path as it is on disk. Some, such as 2.1.105, normalize it to NFC first. The name cannot be converted back to
a path, because all characters but letters and digits become dashes. It can only be compared.
"""

import os
import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Any

from backscroll.model.workspace import Workspace
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.transcript.line_structs import as_text
from backscroll.sources.claude_code.transcript.state_lines import Facts

_MAX_SCANNED_FOLDERS = 192
MAX_NAME_CHARS = 200
_MAX_FILE_NAME = 255
_TAIL_BYTES = 64 * 1024
_BASE36_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]")
_WRITER_VERSION = re.compile(rb'"version":"([0-9]+)\.([0-9]+)')


# The workspace of a session


def find_workspace(folder: Path | None, session_id: str | None, facts: Facts) -> Workspace | None:
    """Return the workspace by the best evidence: a move, the start folder, any folder, then other files.

    ``folder`` is the project's folder that contains the transcript.
    """
    name = folder.name if folder is not None else ""
    if facts.relocated_cwd:
        return Workspace(facts.relocated_cwd, evidence="relocated line")
    for cwd in facts.cwds:
        if matches(cwd, name):
            return Workspace(cwd, evidence="cwd that gave the folder its name")
    if facts.cwds:
        return Workspace(next(iter(facts.cwds)), evidence="first cwd")
    if folder is None:
        return None
    return _find_outside_transcript(folder, session_id)


def _find_outside_transcript(folder: Path, session_id: str | None) -> Workspace | None:
    """Return the workspace of a transcript that contains no folder.

    Evidence is the session index, the prompt log, the tool's project list, then the folders on disk.
    """
    index = load_object(folder / "sessions-index.json")
    entries = index.get("entries")
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("sessionId") != session_id:
            continue
        if found := as_text(entry.get("projectPath")):
            return Workspace(found, evidence="sessions-index.json")
    if found := as_text(index.get("originalPath")):
        return Workspace(found, evidence="sessions-index.json")
    root = folder.parent.parent
    if session_id is not None and (found := _find_in_prompt_log(root / "history.jsonl", session_id)):
        return Workspace(found, evidence="history.jsonl")
    for settings in (root / ".claude.json", root.parent / ".claude.json"):
        projects = load_object(settings).get("projects")
        for path in projects if isinstance(projects, dict) else ():
            if matches(path, folder.name):
                return Workspace(path, evidence=".claude.json")
    found = _find_on_disk(folder.name)
    return Workspace(found, evidence="a folder on disk that fits the name") if found else None


def _find_in_prompt_log(path: Path, session_id: str) -> str | None:
    """Return the project in which the prompts of a session were typed."""
    session_bytes = session_id.encode()
    try:
        with path.open("rb") as file:
            for line in file:
                if session_bytes not in line:
                    continue
                try:
                    prompt = lenient_json.load(line)
                except lenient_json.FAILURES:
                    continue
                if isinstance(prompt, dict) and prompt.get("sessionId") == session_id:
                    return as_text(prompt.get("project"))
    except OSError:
        return None
    return None


def load_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; an empty one if it cannot be read."""
    try:
        return lenient_json.load_object(path.read_bytes())
    except OSError:
        return {}


def _find_on_disk(name: str, start: str = os.sep) -> str | None:
    """Return an existing folder with this project key. The search prefers long folder names."""
    stack = [(start, name[1:])] if name.startswith("-") else []
    for _ in range(_MAX_SCANNED_FOLDERS):
        if not stack:
            return None
        path, rest = stack.pop()
        if not rest:
            return path
        try:
            with os.scandir(path) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        matching = []
        for folder in names:
            for key in {project_key(folder), project_key(unicodedata.normalize("NFC", folder))}:
                if rest == key or rest.startswith(f"{key}-"):
                    matching.append((len(key), folder))
        for length, folder in sorted(matching):
            stack.append((os.path.join(path, folder), rest[length + 1 :]))  # noqa: PTH118
    return None


# The project folder of a workspace


def project_folder(path: Path) -> Path | None:
    """Return the project's folder that contains a transcript; None if it is not below ``projects``."""
    for folder in path.parents:
        if folder.parent.name == "projects":
            return folder
    return None


def target_folder(root: Path, workspace: Path, transcript: Path) -> Path:
    """Return the project folder of a workspace: an existing one, or the one that the tool would create.

    Versions before 2.1 do not shorten long names. The version that wrote the transcript decides.
    """
    path = path_on_disk(workspace)
    names = [project_key(path)]
    if len(names[0]) > MAX_NAME_CHARS and len(_long_project_key(path)) <= _MAX_FILE_NAME:
        names.insert(0 if _last_version(transcript) < (2, 1) else 1, _long_project_key(path))
    names.append(project_key(unicodedata.normalize("NFC", path)))
    folders = [root / "projects" / name for name in names]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def _last_version(transcript: Path) -> tuple[int, int]:
    """Return the version that wrote the last lines of a transcript; a high one if unknown."""
    with transcript.open("rb") as file:
        file.seek(max(0, transcript.stat().st_size - _TAIL_BYTES))
        found = _WRITER_VERSION.findall(file.read())
    return (int(found[-1][0]), int(found[-1][1])) if found else (9, 0)


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


# The name of a project's folder


def project_key(path: str) -> str:
    """Return the folder name of a path: one dash per UTF-16 unit that is not an ASCII letter or digit."""
    name = _replace_characters(path)
    if len(name) <= MAX_NAME_CHARS:
        return name
    units = path.encode("utf-16-le", "surrogatepass")
    hash_ = 0
    for index in range(0, len(units), 2):
        hash_ = (hash_ * 31 + units[index] + 256 * units[index + 1]) & 0xFFFFFFFF
    hash_ = hash_ - (1 << 32) if hash_ >= 1 << 31 else hash_
    return f"{name[:MAX_NAME_CHARS]}-{_base36(abs(hash_))}"


def _long_project_key(path: str) -> str:
    """Return the folder name of versions before 2.1, which do not shorten it."""
    return _replace_characters(path)


def _replace_characters(path: str) -> str:
    return _NOT_ALPHANUMERIC.sub(lambda found: "-" if found[0] <= "\uffff" else "--", path)


def _base36(number: int) -> str:
    digits = _BASE36_DIGITS[number % 36]
    while number := number // 36:
        digits = _BASE36_DIGITS[number % 36] + digits
    return digits


@lru_cache(maxsize=64)  # all sessions of a project compare the same values
def matches(path: str, name: str) -> bool:
    """Return whether a folder of this name can belong to the project at a path.

    Case can differ (drive letters). Very old versions replaced only slashes and dots. Versions before 2.1.105
    do not shorten names of up to 255 characters. Versions before 2.1.224 added another hash to long names.
    """
    name = name.casefold()
    return _matches(path, name) or (
        not path.isascii()
        and (composed := unicodedata.normalize("NFC", path)) != path
        and _matches(composed, name)
    )


def _matches(path: str, name: str) -> bool:
    key = project_key(path).casefold()
    if key == name or _NOT_ALPHANUMERIC.sub("-", name) == key:
        return True
    if len(key) <= MAX_NAME_CHARS:
        return False
    return name.startswith(key[: MAX_NAME_CHARS + 1]) or name == _replace_characters(path).casefold()
