"""Workspace of a session: from its lines, never decoded from the name of the project's folder."""

import os
from pathlib import Path
from typing import Any

from backscroll.model import Workspace
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.project_key import matches, project_key
from backscroll.sources.claude_code.transcript.line_types import text
from backscroll.sources.claude_code.transcript.state_lines import Facts

__all__ = ["of_session", "project_folder"]

MAX_FOLDERS = 24  # folders tried per path


def project_folder(path: Path) -> Path | None:
    """Return the project's folder of a transcript."""
    for folder in path.parents:
        if folder.parent.name == "projects":
            return folder
    return None


def of_session(folder: Path | None, session_id: str | None, facts: Facts) -> Workspace | None:
    """Return the workspace by the best evidence: a move, the start folder, any folder, then other files.

    ``folder`` is the project's folder of the transcript.
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
    return _from_beside(folder, session_id)


def _from_beside(folder: Path, session_id: str | None) -> Workspace | None:
    """Return the folder of a transcript without one: from the index, the tool's project list, the disk."""
    index = _loaded(folder / "sessions-index.json")
    entries = index.get("entries")
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("sessionId") != session_id:
            continue
        if found := text(entry.get("projectPath")):
            return Workspace(found, evidence="sessions-index.json")
    if found := text(index.get("originalPath")):
        return Workspace(found, evidence="sessions-index.json")
    root = folder.parent.parent
    if session_id is not None and (found := _in_prompts(root / "history.jsonl", session_id)):
        return Workspace(found, evidence="history.jsonl")
    for settings in (root / ".claude.json", root.parent / ".claude.json"):
        projects = _loaded(settings).get("projects")
        for path in projects if isinstance(projects, dict) else ():
            if matches(path, folder.name):
                return Workspace(path, evidence=".claude.json")
    found = _on_disk(folder.name)
    return Workspace(found, evidence="a folder on disk that fits the name") if found else None


def _in_prompts(path: Path, session_id: str) -> str | None:
    """Return the project in which the prompts of a session were typed."""
    wanted = session_id.encode()
    try:
        with path.open("rb") as file:
            for line in file:
                if wanted not in line:
                    continue
                try:
                    prompt = lenient_json.load(line)
                except lenient_json.FAILURES:
                    continue
                if isinstance(prompt, dict) and prompt.get("sessionId") == session_id:
                    return text(prompt.get("project"))
    except OSError:
        return None
    return None


def _loaded(path: Path) -> dict[str, Any]:
    try:
        found = lenient_json.load(path.read_bytes())
    except (OSError, *lenient_json.FAILURES):
        return {}
    return found if isinstance(found, dict) else {}


def _on_disk(name: str, start: str = os.sep) -> str | None:
    """Return an existing folder with this project key, searched from the root; longest names first."""
    waiting = [(start, name[1:])] if name.startswith("-") else []
    for _ in range(MAX_FOLDERS * 8):
        if not waiting:
            return None
        here, rest = waiting.pop()
        if not rest:
            return here
        try:
            with os.scandir(here) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        fitting = []
        for folder in names:
            key = project_key(folder)
            if rest == key or rest.startswith(f"{key}-"):
                fitting.append((len(key), folder))
        for length, folder in sorted(fitting):
            waiting.append((os.path.join(here, folder), rest[length + 1 :]))  # noqa: PTH118
    return None
