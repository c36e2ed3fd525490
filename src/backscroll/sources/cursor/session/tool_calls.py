"""Parse a tool record of a bubble into a call: name, arguments, result, decision and edits.

Before tools existed, answers proposed code for files; a proposal becomes a call too.
`cursor_graph.tool_calls` parses the calls of the conversation graph.
"""

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Raw

from backscroll.model.message import Decision, Edit, Hunk, Status, ToolCall
from backscroll.model.text import pluralize
from backscroll.sources.cursor.database.decode import (
    UndecodableError,
    as_int,
    as_list,
    as_map,
    as_text,
    decode,
    decode_map,
    make_encodable,
    unwrap,
)
from backscroll.sources.cursor.database.records import CodeBlock
from backscroll.sources.cursor.uri import file_path

_STATUSES: dict[str, Status] = {
    "loading": "pending",
    "running": "pending",
    "pending": "pending",
    "completed": "completed",
    "success": "completed",
    "error": "failed",
    "failed": "failed",
    "cancelled": "cancelled",
    "canceled": "cancelled",
    "rejected": "cancelled",
    "aborted": "cancelled",
}
_CODE_BLOCK_STATUSES: dict[str, Status] = {
    "accepted": "completed",
    "rejected": "cancelled",
    "cancelled": "cancelled",
    "generating": "pending",
    "applying": "pending",
}
_PROPOSAL_KEYS = ("codeblockId", "codeBlockId", "diffId")
_SUBAGENT_KEYS = ("subagentComposerId", "composerId", "subagentId", "agentId")
_MIN_ID_CHARS = 9
_MAX_FATE_DEPTH = 6
_IS_ACCEPTED = {"accepted": True, "accept": True, "rejected": False, "reject": False}
_RecordLoader = Callable[[str, str], bytes | None]  # by family and name


class CodeProposals:
    """Proposals of one session. Related records are loaded on demand."""

    def __init__(self, code_block_data: Raw = Raw(), load_record: _RecordLoader | None = None) -> None:  # noqa: B008 - a constant
        self._load_record = load_record
        self._by_id: dict[str, CodeBlock] = {}
        self._by_bubble: dict[str, list[CodeBlock]] = {}
        self._by_version: dict[tuple[str, str], CodeBlock] = {}
        for uri, versions in decode_map(code_block_data, Raw).items():
            for key, block in _versions(versions):
                self._add(uri, key, block)

    def _add(self, uri: str, key: str, block: CodeBlock) -> None:
        if block.uri is None:
            block.uri = uri
        if owner := as_text(block.bubble_id):
            self._by_bubble.setdefault(owner, []).append(block)
        version = block.version if isinstance(block.version, int | str) else key
        self._by_version.setdefault((uri, str(version)), block)
        for name in (key, as_text(block.diff_id)):
            if len(name) >= _MIN_ID_CHARS:  # an id, not an index
                self._by_id.setdefault(name, block)

    def for_bubble(self, bubble_id: str, code_blocks: list[CodeBlock]) -> list[CodeBlock]:
        """Return the proposals of a message. ``code_blocks`` are in the message and name file and version."""
        if found := self._by_bubble.get(bubble_id):
            return found
        if not self._by_version:
            return []
        blocks = []
        for block in code_blocks:
            uri = as_map(block.uri)
            for uri_text in (
                as_text(block.uri),
                as_text(uri.get("external")),
                as_text(uri.get("_formatted")),
            ):
                if known := self._by_version.get((uri_text, str(block.version or 0))):
                    blocks.append(known)
                    break
        return blocks

    def by_id(self, id: str) -> CodeBlock | None:
        return self._by_id.get(id)

    def diff(self, id: str) -> bytes | None:
        """Return the stored diff between the file and the proposal."""
        return self._record("codeBlockDiff", id)

    def hunk_fates(self, id: str) -> bytes | None:
        """Return the stored fates of the hunks of a proposal."""
        return self._record("codeBlockPartialInlineDiffFates", id)

    def _record(self, family: str, name: str) -> bytes | None:
        return self._load_record(family, name) if name and self._load_record is not None else None


def _versions(versions: Raw) -> Iterator[tuple[str, CodeBlock]]:
    """Return the proposals for one file: a list in older records, an object in newer ones."""
    pairs: list[tuple[str, Any]]
    try:
        pairs = [(str(index), raw) for index, raw in enumerate(decode(versions, list[Raw]))]
    except UndecodableError:
        pairs = list(decode_map(versions, Raw).items())
    for key, raw in pairs:
        try:
            yield key, decode(raw, CodeBlock)
        except UndecodableError:
            continue


class _DecisionEvidence(NamedTuple):
    """Decision, and the name of the record that it comes from."""

    decision: Decision
    evidence: str


class ParsedCall(NamedTuple):
    """Tool call, and facts that are not part of it."""

    call: ToolCall
    decision: _DecisionEvidence | None
    cwd: str | None = None
    subagent_id: str | None = None  # the session that the call started


def is_call(record: Any) -> bool:
    """Return whether a record is a call. Most records on bubbles of 2025 are empty."""
    return isinstance(record, dict) and bool(record.get("name") or record.get("tool"))


def parse_call(record: dict[str, Any], blocks: list[CodeBlock], proposals: CodeProposals) -> ParsedCall:
    """Parse a tool record. ``blocks`` is the code proposed in the same bubble."""
    name = str(record.get("name") or f"tool {record.get('tool')}")
    params = _arguments(record)
    result = unwrap(record.get("result"))
    status = _status(record, result)
    extra = as_map(record.get("additionalData"))
    proposal_ids = _texts_of_keys(_PROPOSAL_KEYS, extra)
    decision = None
    if proposal_ids or blocks:
        if not blocks:
            blocks = [block for proposal_id in proposal_ids if (block := proposals.by_id(proposal_id))]
        proposal_ids += [proposal_id for block in blocks if (proposal_id := as_text(block.diff_id))]
        decision = next(
            (
                hunk_decision
                for proposal_id in proposal_ids
                if (hunk_decision := _decision_from_hunk_fates(proposals.hunk_fates(proposal_id)))
            ),
            None,
        )
        decision = decision or _decision_from_code_blocks(blocks)
    decision = decision or _decision_from_tool_record(record, result)
    return ParsedCall(
        ToolCall(
            id=as_text(record.get("toolCallId")) or None,
            name=name,
            params=params,
            result=_call_result(record, result, status),
            status=status,
            decision=decision.decision if decision else None,
            edits=() if status == "failed" else _find_edits(name, params, result, proposal_ids, proposals),
        ),
        decision,
        cwd=as_text(params.get("cwd")) or None,
        subagent_id=next(iter(_texts_of_keys(_SUBAGENT_KEYS, extra)), None),
    )


def parse_proposal(block: CodeBlock, proposals: CodeProposals) -> ParsedCall:
    """Return a proposed code block as a call. Before tools existed, files were edited this way."""
    path = target_path({"uri": block.uri}) if block.uri is not None else ""
    status = as_text(block.status)
    decision = _decision_from_code_blocks([block])
    diff_id = as_text(block.diff_id)
    record = proposals.diff(diff_id) if diff_id else None
    if hunk_decision := _decision_from_hunk_fates(proposals.hunk_fates(diff_id) if diff_id else None):
        decision = hunk_decision
    edits = edits_from_code_diff(path, unwrap(record.decode("utf-8", "replace"))) if record else ()
    text = as_text(unwrap(bytes(block.content).decode("utf-8", "replace"), levels=1))
    params: dict[str, Any] = {"path": path}
    if language := as_text(block.language_id):
        params["language"] = language
    return ParsedCall(
        ToolCall(
            id=None,
            name="code_block",
            params=params,
            result="",
            status=_CODE_BLOCK_STATUSES.get(status, "completed"),
            decision=decision.decision if decision else None,
            edits=edits or _edits_from_code(path, text),
        ),
        decision,
    )


def _texts_of_keys(keys: tuple[str, ...], extra: dict[str, Any]) -> list[str]:
    """Return the texts of some keys. Nearly every call has none of them."""
    return [text for key in keys if key in extra and (text := as_text(extra[key]))] if extra else []


def _arguments(record: dict[str, Any]) -> dict[str, Any]:
    """Return the model's arguments, else the editor's normalized ones, else the undecodable text."""
    undecodable = ""
    for value in (record.get("rawArgs"), record.get("params")):
        decoded = unwrap(value)
        if isinstance(decoded, dict) and decoded:
            return make_encodable(decoded)  # type: ignore[no-any-return]
        if isinstance(decoded, list) and decoded:
            return {"items": make_encodable(decoded)}
        if isinstance(decoded, str) and decoded.strip():
            undecodable = undecodable or decoded
    return {"raw": undecodable} if undecodable else {}


def _status(record: dict[str, Any], result: Any) -> Status:
    status = _STATUSES.get(as_text(record.get("status")).lower())
    if status is None:
        status = _STATUSES.get(as_text(as_map(record.get("additionalData")).get("status")).lower())
    if status == "completed":
        fields = as_map(result)
        if fields.get("applyFailed"):
            return "failed"
        if fields.get("rejected") is True:
            return "cancelled"
    if status is not None:
        return status
    if record.get("error"):
        return "failed"
    return "pending" if record.get("result") is None else "completed"


def _call_result(record: dict[str, Any], result: Any, status: Status) -> str | None:
    text = _result_text(result)
    error = record.get("error")
    message = error_text(error).strip() if error else ""
    if message and message not in (text or ""):
        return f"{text}\n{message}" if text else message
    if text is None and status in ("completed", "failed"):
        return ""
    return text if text or status != "pending" else None


def _find_edits(
    name: str, params: dict[str, Any], result: Any, proposal_ids: list[str], proposals: CodeProposals
) -> tuple[Edit, ...]:
    """Return the edits from the best record: the result, else the stored diff, else the arguments."""
    is_edit = _is_edit_tool(name)
    if not is_edit and not proposal_ids and not as_map(result).get("diff"):
        return ()
    path = target_path(params)
    if edits := _edits_from_result(path, result):
        return edits
    for proposal_id in proposal_ids:
        record = proposals.diff(proposal_id)
        if (
            record
            and path
            and (edits := edits_from_code_diff(path, unwrap(record.decode("utf-8", "replace"))))
        ):
            return edits
    return _edits_from_params(name, path, params) if is_edit else ()


# Decisions of the user


def _decision_from_code_blocks(blocks: list[CodeBlock]) -> _DecisionEvidence | None:
    """Return the decision from the status of code blocks, which is independent of the auto-run setting."""
    statuses = {as_text(block.status) for block in blocks}
    if statuses >= {"accepted", "rejected"}:
        return _DecisionEvidence("modified", "codeBlockData")
    if "accepted" in statuses:
        return _DecisionEvidence("accepted", "codeBlockData")
    if "rejected" in statuses:
        return _DecisionEvidence("rejected", "codeBlockData")
    return None


def _decision_from_hunk_fates(record: bytes | None) -> _DecisionEvidence | None:
    """Return the decision from the fates of hunks. Accepted and rejected hunks mean a modified proposal."""
    if not record:
        return None
    try:
        fates = set(_find_fates(decode(record, object), 0))
    except UndecodableError:
        return None
    if len(fates) == 2:
        return _DecisionEvidence("modified", "codeBlockPartialInlineDiffFates")
    if fates:
        return _DecisionEvidence(
            "accepted" if True in fates else "rejected", "codeBlockPartialInlineDiffFates"
        )
    return None


def _find_fates(value: Any, depth: int) -> Iterator[bool]:
    if depth > _MAX_FATE_DEPTH:
        return
    if isinstance(value, str):
        if value in _IS_ACCEPTED:
            yield _IS_ACCEPTED[value]
    elif isinstance(value, list):
        for item in value:
            yield from _find_fates(item, depth + 1)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _find_fates(item, depth + 1)


def _decision_from_tool_record(record: dict[str, Any], result: Any) -> _DecisionEvidence | None:
    """Return the decision from a tool record: the user's answer, else a flag that auto-run sets too."""
    review = as_map(as_map(record.get("additionalData")).get("reviewData"))
    match as_text(review.get("selectedOption")):
        case "run" | "accept":
            return _DecisionEvidence("accepted", "reviewData")
        case "skip" | "reject":
            return _DecisionEvidence("rejected", "reviewData")
    if as_map(result).get("rejected") is True or as_text(record.get("status")) == "rejected":
        return _DecisionEvidence("rejected", "result")
    match as_text(unwrap(record.get("userDecision"))):
        case "accepted":
            return _DecisionEvidence("accepted", "userDecision")
        case "rejected":
            return _DecisionEvidence("rejected", "userDecision")
        case "modified" | "partially_accepted" | "partial":
            return _DecisionEvidence("modified", "userDecision")
    return None


# File changes: removed and added lines

_EDIT_TOOL = re.compile(r"edit|replace|write|patch|create_file|notebook|reapply|^delete", re.IGNORECASE)
_DELETE_TOOL = re.compile(r"^delete", re.IGNORECASE)
_PATH_KEYS = (
    "target_file",
    "targetFile",
    "file_path",
    "filePath",
    "relativeWorkspacePath",
    "effectiveUri",
    "path",
    "target_notebook",
    "uri",
)
_OLD_TEXT_KEYS = ("old_string", "oldString", "old_str", "oldText")
_NEW_TEXT_KEYS = ("new_string", "newString", "new_str", "newText")
_FULL_TEXT_KEYS = ("contents", "content", "code_edit", "codeEdit", "streamingContent", "file_text")
_PATCH_HEADING = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$")


def _is_edit_tool(name: str) -> bool:
    """Return whether a tool with this name changes files."""
    return _EDIT_TOOL.search(name) is not None


def target_path(params: dict[str, Any]) -> str:
    """Return the file in the arguments of a call. It is absolute even in ``relativeWorkspacePath``."""
    for name in _PATH_KEYS:
        value = params.get(name)
        if isinstance(value, str) and value:
            return file_path(value) or value
        if isinstance(value, dict) and (path := file_path(value)):
            return path
    return ""


def _edits_from_result(path: str, result: Any) -> tuple[Edit, ...]:
    """Return the change from the result of the tool."""
    fields = as_map(result)
    diff = as_map(fields.get("diff"))
    chunks = [as_map(chunk) for chunk in as_list(diff.get("chunks"))]
    if not path or not chunks or fields.get("applyFailed"):
        return ()
    hunks = tuple(hunk for chunk in chunks for hunk in _parse_chunk(chunk))
    if hunks:
        return (Edit(path, hunks),)
    added = sum(as_int(chunk.get("linesAdded")) or 0 for chunk in chunks)
    removed = sum(as_int(chunk.get("linesRemoved")) or 0 for chunk in chunks)
    return (Edit(path, (), "update", added, removed),) if added or removed else ()


def _split_lines(text: str) -> list[str]:
    """Split text at newlines only, not at form feeds or Unicode separators."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _parse_chunk(chunk: dict[str, Any]) -> Iterator[Hunk]:
    """Yield the changes of a chunk, one per run of changed lines. Context lines count for the numbers."""
    lines = [line for line in _split_lines(as_text(chunk.get("diffString"))) if line[:1] in ("-", "+", " ")]
    prefix_chars = 2 if _has_separator(lines) else 1
    old, new = as_int(chunk.get("oldStart")), as_int(chunk.get("newStart"))
    for is_context, group in groupby(lines, key=lambda line: line[0] == " "):
        run = list(group)
        removed = tuple(line[prefix_chars:] for line in run if line[0] == "-")
        added = tuple(line[prefix_chars:] for line in run if line[0] == "+")
        if not is_context:
            yield Hunk(removed, added, old, new)
        old = None if old is None else old + (len(run) if is_context else len(removed))
        new = None if new is None else new + (len(run) if is_context else len(added))


def _has_separator(lines: list[str]) -> bool:
    """Return whether a space separates the sign from the line, as some builds write it.

    If every line has a space, it may also be indentation. Code is indented by an even number of spaces, so an
    odd minimum means a separator.
    """
    indents = [len(line) - 1 - len(line[1:].lstrip(" ")) for line in lines if line[1:].strip()]
    return bool(indents) and min(indents) % 2 == 1


def edits_from_code_diff(path: str, record: Any) -> tuple[Edit, ...]:
    """Return the change from a ``codeBlockDiff`` row. Only the numbers of removed lines are known."""
    fields = as_map(record)
    earlier = {_parse_change(item) for item in as_list(fields.get("originalModelDiffWrtV0"))}
    hunks: list[Hunk] = []
    removed = 0
    for item in as_list(fields.get("newModelDiffWrtV0")):
        change = _parse_change(item)
        if change in earlier:
            continue  # made by an earlier edit of the same session
        start, end, lines = change
        removed += max(0, (end or 0) - (start or 0))
        hunks.append(Hunk((), lines, start, None))
    added = sum(len(hunk.added) for hunk in hunks)
    return (Edit(path, tuple(hunks), "update", added, removed),) if path and hunks else ()


def _parse_change(record: Any) -> tuple[int | None, int | None, tuple[str, ...]]:
    """Return the first line, the line after the last, and the new lines of a change."""
    span = as_map(as_map(record).get("original"))
    lines = tuple(line for line in as_list(as_map(record).get("modified")) if isinstance(line, str))
    return as_int(span.get("startLineNumber")), as_int(span.get("endLineNumberExclusive")), lines


def _edits_from_code(path: str, text: str) -> tuple[Edit, ...]:
    """Return the change from proposed code, which has only the new lines."""
    return (Edit(path, (Hunk((), tuple(_split_lines(text))),)),) if path and text else ()


def _edits_from_params(name: str, path: str, params: dict[str, Any]) -> tuple[Edit, ...]:
    """Return the change from the arguments of an editing tool."""
    if _DELETE_TOOL.search(name):
        return (Edit(path, (), "delete"),) if path else ()
    patch = next(
        (text for key in ("patch", "input", "raw") if "*** " in (text := as_text(params.get(key)))), ""
    )
    if patch:
        return tuple(_parse_patch(patch))
    if not path:
        return ()
    changes = as_list(params.get("edits")) or [params]
    hunks = tuple(hunk for change in changes if (hunk := _replacement_hunk(as_map(change))))
    if hunks:
        return (Edit(path, hunks),)
    text = next((text for key in _FULL_TEXT_KEYS if (text := as_text(params.get(key)))), "")
    return _edits_from_code(path, text)


def _replacement_hunk(change: dict[str, Any]) -> Hunk | None:
    old = next((text for key in _OLD_TEXT_KEYS if (text := as_text(change.get(key)))), "")
    new = next((text for key in _NEW_TEXT_KEYS if (text := as_text(change.get(key)))), "")
    return Hunk(tuple(_split_lines(old)), tuple(_split_lines(new))) if old or new else None


def _parse_patch(patch: str) -> Iterator[Edit]:
    """Parse a patch with ``*** Update File`` headings, the format that models write."""
    kinds: dict[str, Literal["create", "update", "delete"]] = {
        "Add": "create",
        "Update": "update",
        "Delete": "delete",
    }
    path = ""
    kind: Literal["create", "update", "delete"] = "update"
    hunks: list[Hunk] = []
    removed: list[str] = []
    added: list[str] = []

    def finish_hunk() -> None:
        if removed or added:
            hunks.append(Hunk(tuple(removed), tuple(added)))
            removed.clear()
            added.clear()

    for line in _split_lines(patch):
        if heading := _PATCH_HEADING.match(line):
            finish_hunk()
            if path:
                yield Edit(path, tuple(hunks), kind)
            path, kind, hunks = heading[2].strip(), kinds[heading[1]], []
        elif line.startswith("-"):
            removed.append(line[1:])
        elif line.startswith("+"):
            added.append(line[1:])
        else:
            finish_hunk()
    finish_hunk()
    if path:
        yield Edit(path, tuple(hunks), kind)


# Results as readable, searchable text

_TEXT_KEYS = ("output", "contents", "content", "text", "result", "message", "summary")
_NEGLIGIBLE_KEYS = frozenset(
    {"rejected", "notInterrupted", "exitCode", "exitCodeV2", "resultForModel", "isBackground"}
)


def _result_text(value: Any) -> str | None:
    """Return a result as text; None if there is none. A result of unknown form is formatted as JSON."""
    if value is None:
        return None
    result = unwrap(value)
    if isinstance(result, str):
        return result
    if result in ({}, []):
        return ""
    for formatter in _FORMATTERS:
        text = formatter(result)
        if text is not None:
            return text
    return _format_json(result)


def _format_json(value: Any) -> str:
    """Return indented JSON."""
    return msgspec.json.format(msgspec.json.encode(make_encodable(value)), indent=2).decode()


def error_text(error: Any) -> str:
    """Return the message of a tool's error that the user saw, else the whole error."""
    decoded = unwrap(error)
    if isinstance(decoded, str):
        return decoded
    fields = as_map(decoded)
    for name in (
        "clientVisibleErrorMessage",
        "modelVisibleErrorMessage",
        "message",
        "error",
        "title",
        "detail",
    ):
        text = fields.get(name)
        if isinstance(text, str) and text.strip():
            return text
        if isinstance(text, dict) and text:
            return error_text(text)
    return _format_json(decoded) if decoded else ""


def _shell_text(result: Any) -> str | None:
    """Format a shell command: its output, and the exit code if it is not 0."""
    fields = as_map(result)
    output = fields.get("output")
    if not isinstance(output, str) or not fields.keys() - {"output"} <= _NEGLIGIBLE_KEYS:
        return None
    code = as_int(fields.get("exitCode"))
    return f"{output}\n[exit code {code}]".lstrip("\n") if code else output


def _diff_text(result: Any) -> str | None:
    """Format an edit: the diff of every chunk."""
    fields = as_map(result)
    chunks = as_list(as_map(fields.get("diff")).get("chunks"))
    texts = [text for chunk in chunks if (text := as_text(as_map(chunk).get("diffString")))]
    if not texts:
        return None
    if fields.get("applyFailed"):
        texts.insert(0, "[the edit could not be applied]")
    return "\n".join(texts)


def _folder_text(result: Any) -> str | None:
    """Format ``list_dir``: names, folders with a slash."""
    fields = as_map(result)
    files = fields.get("files")
    if not isinstance(files, list) or not all(isinstance(as_map(file).get("name"), str) for file in files):
        return None
    return "\n".join(f"{file['name']}/" if file.get("isDirectory") else file["name"] for file in files)


def _glob_text(result: Any) -> str | None:
    """Format ``glob_file_search``: paths below the searched folders."""
    folders = as_map(result).get("directories")
    if not isinstance(folders, list) or not folders:
        return None
    lines: list[str] = []
    for folder in map(as_map, folders):
        base = as_text(folder.get("absPath"))
        for file in map(as_map, as_list(folder.get("files"))):
            name = as_text(file.get("relPath")) or as_text(file.get("path"))
            lines.append(f"{base.rstrip('/')}/{name}" if base and name else base or name)
        total = as_int(folder.get("totalFiles"))
        if total is not None:
            files = pluralize(total, "file")
            lines.append(f"[{files} in {base}]" if base else f"[{files}]")
    return "\n".join(line for line in lines if line) or None


def _grep_text(result: Any) -> str | None:
    """Format ``grep``: file, line number and text of every match, or only the files."""
    success = as_map(as_map(result).get("success"))
    results = as_map(success.get("workspaceResults"))
    if not results:
        return None
    lines: list[str] = []
    for found in results.values():
        fields = as_map(found)
        lines += _match_lines(as_list(as_map(fields.get("content")).get("matches")))
        files = fields.get("files")
        names = as_list(files) or as_list(as_map(files).get("files"))
        lines += [name if isinstance(name, str) else as_text(as_map(name).get("path")) for name in names]
    return "\n".join(line for line in lines if line) or None


def _match_lines(matches: list[Any]) -> Iterator[str]:
    for match in map(as_map, matches):
        file = as_text(match.get("file")) or as_text(match.get("path"))
        inner = as_list(match.get("matches")) or as_list(match.get("lines")) or [match]
        for line in map(as_map, inner):
            line_number = as_int(line.get("lineNumber")) or as_int(line.get("line"))
            text = as_text(line.get("content")) or as_text(line.get("text"))
            location = f"{file}:{line_number}" if line_number is not None else file
            yield f"{location}: {text}" if text else location


def _only_text(result: Any) -> str | None:
    """Return the only text of an object, if its other fields are negligible."""
    fields = as_map(result)
    for name in _TEXT_KEYS:
        text = fields.get(name)
        if isinstance(text, str) and text.strip() and fields.keys() - {name} <= _NEGLIGIBLE_KEYS:
            return text
    return None


def _file_text(result: Any) -> str | None:
    """Format ``read_file``: the contents without other fields."""
    fields = as_map(result)
    text = fields.get("contents")
    return text if isinstance(text, str) and text else None


def _blocks_text(result: Any) -> str | None:
    """Join text blocks, the result format of MCP servers."""
    items = result if isinstance(result, list) else as_map(result).get("content")
    if not isinstance(items, list) or not items:
        return None
    texts = [
        as_text(as_map(item).get("text")) for item in items if as_map(item).get("type", "text") == "text"
    ]
    return "\n".join(texts) if len(texts) == len(items) and all(texts) else None


_FORMATTERS: tuple[Callable[[Any], str | None], ...] = (
    _shell_text,
    _diff_text,
    _folder_text,
    _glob_text,
    _grep_text,
    _file_text,
    _blocks_text,
    _only_text,
)
