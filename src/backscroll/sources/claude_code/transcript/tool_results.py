"""Parse tool results: text, status, user decision and edits. Load long results from their own files.

A result normally follows its call. One that was written before its call is kept until the call is read.
"""

import re
import stat
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import msgspec

from backscroll.model.message import Attachment, Decision, Edit, Hunk, Status
from backscroll.model.stream import SubagentLink, ToolResult
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.transcript.line_structs import (
    Block,
    Line,
    Patch,
    PermissionDecision,
    ShellEdit,
    ShellEdits,
    ToolUseResult,
    as_text,
    fallback_result_text,
    result_text,
)
from backscroll.sources.claude_code.transcript.state import EarlyResult, LineContext
from backscroll.sources.claude_code.transcript.user_text import COMMAND_TOOLS, INTERRUPTIONS

EDIT_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
AGENT_TOOLS = frozenset({"Task", "Agent"})
_QUESTION_TOOL = "AskUserQuestion"

_REJECTED_PREFIXES = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "Permission for this tool use was denied. The tool use was rejected",  # in a subagent
)
_INTERRUPTED_PREFIXES = ("[Request interrupted by user", "The user interrupted", "Interrupted by user")
_STOPPED = "this call was stopped while running, not refused"
# Texts of calls that the tool denied without asking the user. 2.1.212 and later add a denial kind.
_DENIED = re.compile(
    r"""Claude\ requested\ permissions\ to\ .+\ but\ you\ haven't\ granted\ it\ yet
    | Permission\ to\ (?:use|read|edit)\ .+\ has\ been\ denied
    | Permission\ for\ this\ (?:tool\ use|command|action)\ (?:was|has\ been)\ denied
    | This\ (?:\w+\ )?command\ (?:(?:contains|uses)\ [^\n]+\ )?requires?\ approval
    | (?:sed|Command|Compound|Multiple\ directory)\ [^\n]*requires?\ approval
    | [^\n]+\ requires\ approval\ for\ this\ \w+\ command
    | [^\n]+\ was\ blocked\.\ For\ security,\ Claude\ Code\ may\ only
    | [^\n]+\ needs\ approval\.\ The\ path\ is
    | (?:Exit\ plan\ mode|Answer\ questions)\?\Z
    | \w+\ operation\ blocked\ by\ hook:
    | PreToolUse:\S+\ hook\ error:""",
    re.VERBOSE | re.DOTALL,
)
_MAX_DENIAL_CHARS = 10_000  # a denial quotes the command
_FEEDBACK = re.compile(r"(?:To tell you how to proceed, the|The) user said:\n(.+)", re.DOTALL)
_FEEDBACK_NOTE = "\n\nNote: The user's next message may contain a correction"
# Buttons of the dialog for questions. The tool writes the text.
_BUTTON_PREFIXES = ("The user wants to clarify these questions", "The user has indicated they have provided")
_SPILL_PATH = re.compile(r"^<persisted-output>\s*.*?saved to: ([^\n]+)", re.DOTALL)
_MAX_SPILL_BYTES = 32 * 1024 * 1024
_line_prefix = itemgetter(slice(0, 1))
_result_decoder = msgspec.json.Decoder(ToolUseResult)


def add_tool_result(block: Block, context: LineContext, attachments: tuple[Attachment, ...] = ()) -> None:
    """Emit a tool result. ``attachments`` are other blocks of the same message."""
    transcript = context.transcript
    value = context.value
    call_id = as_text(block.tool_use_id) or f"record {context.id}"
    content = block.content
    is_error = block.is_error is True
    result_attachments: tuple[Attachment, ...] = ()
    if isinstance(content, str):
        result = content
    else:
        found = result_text(content)
        if found is None:
            found = fallback_result_text(_decode_content(context, block)), ()
        result, result_attachments = found
        is_error = is_error or _is_error_type(content)
    if result.startswith("<persisted-output>"):
        result = _load_spilled_result(result, transcript.results_folder)
    status, decision = parse_outcome(result, value, is_error=is_error)
    edits: tuple[Edit, ...] = ()
    pending = transcript.state.take_pending(call_id)
    if pending is not None:
        context.call_node = pending.node
        if pending.params is not None:
            proposed = transcript.proposals.pop(call_id, ())
            if status == "completed":
                edits, decision = _completed_edits(
                    pending.name, pending.params, value.tool_use_result, proposed
                )
        if pending.name in AGENT_TOOLS:
            _add_agent_totals(call_id, value.tool_use_result, context)
        elif pending.name == "Bash":
            edits = _shell_edits(value.tool_use_result)
        elif pending.name in COMMAND_TOOLS:
            transcript.state.commands.add_result(context.id)
        if decision == "rejected" and value.permission_decision is None:
            early = EarlyResult(result, status, b"", context.origin, context.id, context.at)
            transcript.state.keep_rejection(call_id, pending.node, early)
    else:
        early = EarlyResult(
            result, status, context.raw_result(), context.origin, context.id, context.at, decision
        )
        transcript.state.keep_early_result(call_id, early)
    context.has_tool_result = True
    transcript.emit(
        ToolResult(
            tool_call_id=call_id,
            result=result,
            origin=context.origin,
            record_id=context.id,
            status=status,
            decision=decision,
            timestamp=context.at,
            edits=edits,
            attachments=result_attachments + attachments,
        )
    )
    if decision == "rejected":
        _add_dialog_text(feedback(result, value), "feedback", context)
    elif pending is not None and pending.name == _QUESTION_TOOL:
        _add_dialog_text(typed_answers(value.tool_use_result), "answer", context)


def _decode_content(context: LineContext, block: Block) -> Any:
    """Return the content of a result as decoded JSON, for forms that the types do not cover."""
    message = context.full_record().get("message")
    blocks = message.get("content") if isinstance(message, dict) else None
    for found in blocks if isinstance(blocks, list) else [blocks]:
        if isinstance(found, dict) and found.get("tool_use_id") == block.tool_use_id:
            return found.get("content")
    return None


def _is_error_type(content: Any) -> bool:
    """Return whether the result of a server tool has an error type."""
    kind = as_text(content.type) if isinstance(content, Block) else None
    return kind is not None and kind.endswith("_error")


def _load_spilled_result(result: str, folder: Path) -> str:
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
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_SPILL_BYTES:
            return result
        if folder.is_symlink() or folder.parent.is_symlink():
            return result
        return path.read_bytes().decode("utf-8", "replace")
    except (OSError, ValueError):
        return result


def _add_agent_totals(call_id: str, result: Any, context: LineContext) -> None:
    if not isinstance(result, ToolUseResult):
        return
    agent_id = context.transcript.state.agents.add_totals(call_id, result)
    if agent_id is not None:
        context.transcript.link(
            SubagentLink(agent_id=agent_id, tool_call_id=call_id, evidence="result of the call", strength=2)
        )


def _add_dialog_text(text: str | None, kind: str, context: LineContext) -> None:
    """Emit text that the user typed into a dialog. The result of the call also contains it."""
    if text is not None and not context.is_repeat(kind, text):
        context.add_message("user", text, kind=kind)


def apply_early_result(call_id: str, early: EarlyResult, context: LineContext) -> None:
    """Emit a result again with the call that was written after it."""
    state = context.transcript.state
    pending = state.take_pending(call_id)
    if pending is None:
        return
    context.transcript.tree.follow(early.record_id, pending.node)
    edits: tuple[Edit, ...] = ()
    decision = early.decision
    structured = _decode_result(early.raw)
    proposed = context.transcript.proposals.pop(call_id, ())
    if pending.params is not None and early.status == "completed":
        edits, decision = _completed_edits(pending.name, pending.params, structured, proposed)
    if pending.name in AGENT_TOOLS:
        _add_agent_totals(call_id, structured, context)
    elif pending.name == "Bash":
        edits = _shell_edits(structured)
    _emit_early_result(call_id, early, context, decision=decision, edits=edits)


def _decode_result(raw: bytes) -> ToolUseResult | None:
    """Decode the JSON of a structured result; None if it is invalid."""
    try:
        return _result_decoder.decode(raw)
    except lenient_json.FAILURES:
        return None


def confirm_stopped_calls(response_id: str, context: LineContext) -> None:
    """Emit the results of calls again that were running when the user stopped a response.

    Since 2.1.212 they have the same text and denial kind as calls that the user rejected.
    """
    tree, state = context.transcript.tree, context.transcript.state
    response = tree.response_indexes.get(response_id)
    for call_id, (node, early) in state.rejections.items():
        if tree.responses[node] == response:
            _emit_early_result(call_id, early, context)
    state.rejections.clear()


def _emit_early_result(
    call_id: str,
    early: EarlyResult,
    context: LineContext,
    *,
    decision: Decision | None = None,
    edits: tuple[Edit, ...] = (),
) -> None:
    context.transcript.emit(
        ToolResult(
            tool_call_id=call_id,
            result=early.result,
            origin=early.origin,
            record_id=early.record_id,
            status=early.status,
            decision=decision,
            timestamp=early.at,
            edits=edits,
        )
    )


# Status, and what the user decided or typed


def parse_outcome(result: str, line: Line, *, is_error: bool) -> tuple[Status, Decision | None]:
    """Return the status of a call and the user's decision.

    A call that was denied or stopped is cancelled, not failed. It is rejected only if the user refused it.
    """
    is_error = is_error or result.startswith("<tool_use_error>")
    denial, permission = as_text(line.tool_denial_kind), line.permission_decision
    if not is_error and denial is None:
        return "completed", None
    if isinstance(permission, PermissionDecision) and permission.decision == "reject":
        source = permission.source
        return "cancelled", "rejected" if isinstance(source, str) and source.startswith("user_") else None
    is_refusal = result.startswith(_REJECTED_PREFIXES)
    if denial == "user-rejected" or is_refusal:
        # Without a terminal no dialog is shown: the call was denied by the tool, or stopped.
        has_dialog = line.entrypoint != "sdk-cli" and _STOPPED not in result
        is_rejected = has_dialog and (is_refusal or not _is_denied(result))
        return "cancelled", "rejected" if is_rejected else None
    is_stopped = result.startswith(_INTERRUPTED_PREFIXES) or result.rstrip().endswith(INTERRUPTIONS)
    if denial is not None or is_stopped or _is_denied(result):
        return "cancelled", None
    return "failed", None


def _is_denied(result: str) -> bool:
    return _DENIED.match(result, 0, _MAX_DENIAL_CHARS) is not None


def feedback(result: str, line: Line) -> str | None:
    """Return the text that the user typed to reject a call; None if there is none."""
    typed = as_text(line.user_feedback)
    if typed is None and result.startswith(_REJECTED_PREFIXES) and (match := _FEEDBACK.search(result)):
        typed = match[1].partition(_FEEDBACK_NOTE)[0]
    if typed is None or not typed.strip() or typed.startswith(_BUTTON_PREFIXES):
        return None
    return typed


def typed_answers(result: Any) -> str | None:
    """Return the answers that the user typed instead of an option, and notes; None if there are none."""
    if not isinstance(result, ToolUseResult) or not isinstance(result.answers, dict):
        return None
    questions = result.questions if isinstance(result.questions, list) else []
    annotations = result.annotations if isinstance(result.annotations, dict) else {}
    typed: list[str] = []
    for question, answer in result.answers.items():
        labels = {label for asked in questions for label in _labels(asked, question)}
        note = annotations.get(question)
        words = [_without_labels(answer, labels), note.get("notes") if isinstance(note, dict) else None]
        typed += [text for text in dict.fromkeys(words) if isinstance(text, str) and text.strip()]
    return "\n".join(typed) or None


def _labels(question: Any, text: str) -> list[str]:
    """Return the labels of a question's options; empty if its text is another."""
    if not isinstance(question, dict) or question.get("question") != text:
        return []
    options = question.get("options")
    labels = [option.get("label") for option in options or () if isinstance(option, dict)]
    return [label for label in labels if isinstance(label, str) and label]


def _without_labels(answer: Any, labels: set[str]) -> str | None:
    """Return an answer without the labels that were chosen. Several are separated by commas."""
    if not isinstance(answer, str) or answer in labels:
        return None
    rest = f", {answer}, "
    for label in sorted(labels, key=len, reverse=True):
        rest = rest.replace(f", {label}, ", ", ")
    return rest[2:-2] if len(rest) > len(", , ") else None


# Edits


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


def _completed_edits(
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


def _shell_edits(result: Any) -> tuple[Edit, ...]:
    """Return the edits that a shell command made. 2.1.269 and later can store them."""
    if not isinstance(result, ToolUseResult) or not isinstance(result.bash_edit_diff, ShellEdits):
        return ()
    found: dict[str, Edit] = {}
    files, paths = result.bash_edit_diff.files, result.bash_edit_diff.changed_files
    for file in files if isinstance(files, list) else ():
        if isinstance(file, ShellEdit) and (path := as_text(file.file_path)) is not None:
            found[path] = Edit(path, _hunks_from_patches(file.hunks), _shell_edit_kind(file))
    for path in paths if isinstance(paths, list) else ():
        if isinstance(path, str) and path:
            found.setdefault(path, Edit(path))
    return tuple(found.values())


def _shell_edit_kind(file: ShellEdit) -> Literal["create", "update", "delete"]:
    if file.deleted is True:
        return "delete"
    return "create" if file.created is True else "update"


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
