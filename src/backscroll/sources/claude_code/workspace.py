"""Find the workspace of a session. It is never decoded from the name of the project's folder."""

import os
from pathlib import Path
from typing import Any
from unicodedata import normalize

from backscroll.model import Workspace
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.project_key import matches, project_key
from backscroll.sources.claude_code.transcript.line_structs import as_text
from backscroll.sources.claude_code.transcript.state_lines import Facts

__all__ = ["find_workspace", "project_folder"]

MAX_SCANNED_FOLDERS = 192


def project_folder(path: Path) -> Path | None:
    """Return the project's folder that contains a transcript; None if it is not below ``projects``."""
    for folder in path.parents:
        if folder.parent.name == "projects":
            return folder
    return None


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
    index = _load_object(folder / "sessions-index.json")
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
        projects = _load_object(settings).get("projects")
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


def _load_object(path: Path) -> dict[str, Any]:
    try:
        document = lenient_json.load(path.read_bytes())
    except (OSError, *lenient_json.FAILURES):
        return {}
    return document if isinstance(document, dict) else {}


def _find_on_disk(name: str, start: str = os.sep) -> str | None:
    """Return an existing folder with this project key. The search prefers long folder names."""
    stack = [(start, name[1:])] if name.startswith("-") else []
    for _ in range(MAX_SCANNED_FOLDERS):
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
            for key in {project_key(folder), project_key(normalize("NFC", folder))}:
                if rest == key or rest.startswith(f"{key}-"):
                    matching.append((len(key), folder))
        for length, folder in sorted(matching):
            stack.append((os.path.join(path, folder), rest[length + 1 :]))  # noqa: PTH118
    return None
