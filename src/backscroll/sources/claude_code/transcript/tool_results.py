"""Parse tool results: status, user decision and edits. Load long results from their own files."""

import re
import stat
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from backscroll.model import Decision, Edit, Hunk, Status
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.transcript.line_structs import Patch, ToolUseResult, as_text

__all__ = [
    "AGENT_TOOLS",
    "EDIT_TOOLS",
    "completed_edits",
    "decode_result",
    "load_spilled_result",
    "parse_outcome",
    "proposed_edits",
]

EDIT_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
AGENT_TOOLS = frozenset({"Task", "Agent"})

_REJECTED_PREFIXES = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
)
_INTERRUPTED_PREFIXES = ("[Request interrupted by user", "The user interrupted", "Interrupted by user")
_SPILL_PATH = re.compile(r"^<persisted-output>\s*.*?saved to: ([^\n]+)", re.DOTALL)
MAX_SPILL_BYTES = 32 * 1024 * 1024
_line_prefix = itemgetter(slice(0, 1))
_result_decoder = msgspec.json.Decoder(ToolUseResult)


def decode_result(raw: bytes) -> ToolUseResult | None:
    """Decode the JSON of a structured result; None if it is invalid."""
    try:
        return _result_decoder.decode(raw)
    except lenient_json.FAILURES:
        return None


def parse_outcome(result: str, *, is_error: bool, denial: str | None) -> tuple[Status, Decision | None]:
    """Return the status of a call and the user's decision. A rejected call is cancelled, not failed."""
    is_error = is_error or result.startswith("<tool_use_error>")
    if denial == "user-rejected" or (is_error and result.startswith(_REJECTED_PREFIXES)):
        return "cancelled", "rejected"
    if denial is not None or (is_error and result.startswith(_INTERRUPTED_PREFIXES)):
        return "cancelled", None
    return ("failed" if is_error else "completed"), None


def edit_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an edit call that its result needs: paths and texts."""
    selected: dict[str, Any] = {name: value for name, value in params.items() if isinstance(value, str)}
    changes = params.get("edits")
    if isinstance(changes, list):
        selected["edits"] = [edit_params(change) for change in changes if isinstance(change, dict)]
    return selected


def proposed_edits(tool: str, params: dict[str, Any]) -> tuple[Edit, ...]:
    """Return the edit that a call of one of `EDIT_TOOLS` requests, before it has a result."""
    path = as_text(params.get("file_path")) or as_text(params.get("notebook_path"))
    if path is None:
        return ()
    return (Edit(path, _hunks_from_params(tool, params)),)


def completed_edits(
    tool: str, params: dict[str, Any], result: Any, proposed: tuple[Edit, ...] = ()
) -> tuple[tuple[Edit, ...], Decision]:
    """Return the edit that a completed call made, and the user's decision.

    A completed edit was accepted, by the user or by a permission rule. A flag of the result marks edits that
    the user modified. ``proposed`` is the return value of `proposed_edits` for the call, if it is known.
    """
    if not isinstance(result, ToolUseResult):
        result = ToolUseResult()
    decision: Decision = "modified" if result.user_modified is True else "accepted"
    path = (
        as_text(result.file_path)
        or as_text(result.notebook_path)
        or as_text(params.get("file_path"))
        or as_text(params.get("notebook_path"))
    )
    if path is None:
        return (), decision
    hunks = _hunks_from_patches(result.structured_patch)
    is_new = result.type == "create"
    changed_nothing = result.type == "update" and result.structured_patch == []
    if not hunks and not changed_nothing:
        hunks = proposed[0].hunks if proposed else _hunks_from_params(tool, params)
    return (Edit(path, hunks, "create" if is_new else "update"),), decision


def _hunks_from_patches(patches: Any) -> tuple[Hunk, ...]:
    """Convert patches to hunks without context lines."""
    hunks: list[Hunk] = []
    for patch in patches if isinstance(patches, list) else ():
        if not isinstance(patch, Patch) or not isinstance(patch.lines, list):
            continue
        old = patch.old_start if isinstance(patch.old_start, int) else None
        new = patch.new_start if isinstance(patch.new_start, int) else None
        lines = patch.lines
        if set(map(type, lines)) != {str}:
            lines = [line for line in lines if isinstance(line, str)]
        hunks += _split_runs(lines, old, new)
    return tuple(hunks)


def _split_runs(lines: list[str], old: int | None, new: int | None) -> list[Hunk]:
    """Split a patch at its context lines. ``old`` and ``new`` are the line numbers of its first line."""
    hunks: list[Hunk] = []
    removed: list[str] = []
    added: list[str] = []
    for prefix, run in groupby([*lines, " "], key=_line_prefix):  # a context line ends the last run
        if prefix == "-":
            removed += [line[1:] for line in run]
        elif prefix == "+":
            added += [line[1:] for line in run]
        elif prefix != "\\":  # "\ No newline at end of file" is not a line
            if removed or added:
                hunks.append(Hunk(tuple(removed), tuple(added), old, new))
            context_count = len(list(run))
            old = None if old is None else old + len(removed) + context_count
            new = None if new is None else new + len(added) + context_count
            removed, added = [], []
    return hunks


def _hunks_from_params(tool: str, params: dict[str, Any]) -> tuple[Hunk, ...]:
    """Return the requested change, for results without a patch."""
    if tool == "Write":
        content = params.get("content")
        return (Hunk(added=tuple(_lines(content)), new_start=1),) if isinstance(content, str) else ()
    if tool == "NotebookEdit":
        source = params.get("new_source")
        return (Hunk(added=tuple(_lines(source))),) if isinstance(source, str) else ()
    changes = params.get("edits") if tool == "MultiEdit" else [params]
    hunks: list[Hunk] = []
    for change in changes if isinstance(changes, list) else ():
        if not isinstance(change, dict):
            continue
        old, new = change.get("old_string"), change.get("new_string")
        if isinstance(old, str) and isinstance(new, str):
            hunks.append(_trim_hunk(_lines(old), _lines(new)))
    return tuple(hunks)


def _lines(text: str) -> list[str]:
    """Split a text into lines, only at newlines."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _trim_hunk(old: list[str], new: list[str]) -> Hunk:
    """Return two versions of a text without their common first and last lines."""
    start = _count_equal(zip(old, new, strict=False))
    old, new = old[start:], new[start:]
    end = _count_equal(zip(reversed(old), reversed(new), strict=False))
    return Hunk(tuple(old[: len(old) - end]), tuple(new[: len(new) - end]))


def _count_equal(pairs: Iterable[tuple[str, str]]) -> int:
    """Return the length of the common prefix of the pairs."""
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count


def load_spilled_result(result: str, folder: Path) -> str:
    """Return the content of a spilled result: a long result in a file of its own, below the session's folder.

    The path in the text can be from another machine or malicious. Only its last part is used.
    """
    match = _SPILL_PATH.match(result)
    if match is None:
        return result
    name = match[1].strip().replace("\\", "/").rpartition("/")[2]
    if not name or name in (".", ".."):
        return result
    path = folder / name
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_SPILL_BYTES:
            return result
        if folder.is_symlink() or folder.parent.is_symlink():
            return result
        return path.read_bytes().decode("utf-8", "replace")
    except (OSError, ValueError):
        return result
