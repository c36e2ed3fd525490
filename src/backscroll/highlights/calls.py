"""What tool calls record: answered questions and plans, commands and how they ended, changed files, tasks.

No tool is known by name. Calls that do the same have the same shape in all tools.
"""

import re
import shlex
from collections import deque
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from msgspec import Struct

from backscroll.model.message import Edit, Status, ToolCall
from backscroll.model.text import one_line
from backscroll.render.tool_calls import command_param, exit_status, path_params

_COMMIT = re.compile(r"\bgit\b[^&|;\n]*\bcommit\b")
_MESSAGE_OPTION = re.compile(r"(?:-m|--message=?)\s*(\"(?:[^\"\\]|\\.)+\"|'[^']+')")
_COMMIT_OUTPUT = re.compile(r"^\[\S.* [0-9a-f]{7,40}\] (.+)$", re.MULTILINE)  # output of git commit
_CHECK_COMMAND = re.compile(
    r"\b(?:test|tests|pytest|check|lint|build|mypy|ruff|clippy|tsc|vet|spec|jest|vitest)\b"
)
_FAILURE = re.compile(
    r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\bFAILED\b|\bERR[_!]|^error(?:\[\w+\])?: "
    r"|failed with exit code [1-9]",
    re.MULTILINE,
)
_RESULT_TAGS = re.compile(r"</?[a-z]+_[a-z_]+>")  # tags that a tool adds around its result
_OUTPUT_CHARS = 2000  # at the end of the output; enough to detect the outcome
_MAX_LAST_LINE_CHARS = 160
_MAX_OUTCOME_CHARS = 120
_MAX_COMMAND_CHARS = 4000
_MAX_COMMANDS = 200  # the last ones are kept
# Lines of output that name an error, the most specific first.
_ERROR_LINES = (
    re.compile(r"^E\s{2,}(\S.*)$", re.MULTILINE),  # pytest
    re.compile(
        r"^(.*\b(?:[A-Z]\w*(?:Error|Exception)|error(?: \w+\d+)?|panicked at|fatal)\b(?:\[\w+\])?:? .*)$",
        re.MULTILINE,
    ),
    re.compile(r"^(.*\b(?:Killed|FAILED|Segmentation fault|not found|denied|timed out)\b.*)$", re.MULTILINE),
)
_OUTCOME = re.compile(
    r"\b\d+ (?:passed|failed|tests?|failures?|errors?)\b|\btest result\b|\b(?:ok|OK)\b|\bpass(?:ed)?\b"
)
_RM_COMMAND = re.compile(r"(?:^|&&|;|\|\|)\s*(?:git\s+)?rm\s+([^&|;\n]+)")
_COMMENT = re.compile(r"\s*(?:#|//|--|;;)\s+(?!type:|noqa|eslint|pragma)(\S.{28,300})$")
_MAX_COMMENTS = 200  # the last ones are kept
_FINISHED = ("completed", "complete", "done", "cancelled", "canceled", "deleted")
_TEXT_KEYS = ("content", "subject", "title", "text", "task")
_TASK_NUMBER = re.compile(r"#(\d+)")


class Question(Struct, frozen=True):
    """A question to the user."""

    text: str
    options: tuple[str, ...]


def answered_questions(tool: ToolCall) -> Iterator[Question]:
    """Yield the questions of a call that the user answered. The answers are in its result."""
    asked = tool.params.get("questions", tool.params.get("question")) if tool.result else None
    for entry in asked if isinstance(asked, list) else [asked]:
        fields = entry if isinstance(entry, dict) else {**tool.params, "question": entry}
        text = fields.get("question", fields.get("prompt"))
        if isinstance(text, str) and text.strip():
            yield Question(text, tuple(_labels(fields.get("options"))))


def _labels(options: Any) -> Iterator[str]:
    for option in options if isinstance(options, list) else []:
        label = option.get("label", option.get("text")) if isinstance(option, dict) else option
        if isinstance(label, str) and label.strip():
            yield label


class Plan(Struct, frozen=True):
    """A plan that the assistant proposed."""

    text: str
    is_rejected: bool


def proposed_plan(tool: ToolCall) -> Plan | None:
    """Return the plan of a call, if it proposes one."""
    plan = tool.params.get("plan")
    if not isinstance(plan, str) or not plan.strip():
        return None
    return Plan(plan, tool.decision == "rejected" or tool.status in ("failed", "cancelled"))


class CommandRun(Struct, frozen=True):
    """A command and its outcome."""

    command: str
    status: Status
    exit: int | None
    is_check: bool
    is_failed: bool
    last_line: str
    subject: str | None  # of the commit it created
    position: int


def command_run(tool: ToolCall, position: int) -> CommandRun | None:
    """Return the command that a call ran, if it ran one."""
    param = command_param(tool)
    if param is None:
        return None
    command = tool.params[param][:_MAX_COMMAND_CHARS]
    status = exit_status(tool)
    output = _RESULT_TAGS.sub("", (tool.result or "")[-_OUTPUT_CHARS:])
    is_check = _CHECK_COMMAND.search(command) is not None
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    # In a pipe the exit code of a check is lost; its output still reports failures.
    is_failed = tool.status == "failed" or bool(status) or (is_check and _FAILURE.search(output) is not None)
    return CommandRun(
        command,
        tool.status,
        status,
        is_check,
        is_failed,
        lines[-1][:_MAX_LAST_LINE_CHARS] if lines else "",
        _commit_subject(command, tool) if tool.status == "completed" and _COMMIT.search(command) else None,
        position,
    )


def _commit_subject(command: str, tool: ToolCall) -> str:
    found = _COMMIT_OUTPUT.search((tool.result or "")[:_OUTPUT_CHARS]) or _MESSAGE_OPTION.search(command)
    return found[1].strip("\"'") if found else "(no subject)"


def error_line(tool: ToolCall) -> str:
    """Return the line of output that names the error, else the last one."""
    output = tool.result or ""
    for pattern in _ERROR_LINES:
        found = pattern.search(output)
        if found is not None:
            return found[1].strip()
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")


def outcome_line(tool: ToolCall) -> str:
    """Return the last line of output that says how a check ended; empty if none does."""
    lines = [line.strip(" =") for line in (tool.result or "").splitlines()]
    return next((one_line(line, _MAX_OUTCOME_CHARS) for line in reversed(lines) if reports_outcome(line)), "")


def reports_outcome(line: str) -> bool:
    """Return whether a line of output says how a check ended."""
    return _OUTCOME.search(line) is not None


def is_fixed_by(failed: CommandRun, later: CommandRun) -> bool:
    """Return whether a later command shows that a failure is fixed: it is similar and did not fail."""
    return not later.is_failed and is_similar(failed, later)


def is_similar(run: CommandRun, other: CommandRun) -> bool:
    """Return whether two commands share at least half of their words."""
    first, second = set(_split_words(run.command)), set(_split_words(other.command))
    return len(first & second) * 2 >= min(len(first), len(second))


def _split_words(text: str) -> list[str]:
    """Split a command into words."""
    try:
        return shlex.split(text)
    except ValueError:  # unbalanced quotes
        return text.split()


class FileChange(Struct):
    """A file that calls named, and how they changed it."""

    path: str  # below the workspace, or absolute
    position: int  # of the last change, or of the first call
    kind: str = "read"  # read, new, changed or deleted
    added: int = 0  # lines
    removed: int = 0
    edits: int = 0
    rejected: int = 0  # edits


class CallLog:
    """The commands, files and tasks of the calls added so far."""

    def __init__(self, workspace: str | None) -> None:
        self._workspace_prefix = f"{workspace.rstrip('/')}/" if workspace else ""
        self._runs: dict[str, CommandRun] = {}
        self._files: dict[str, FileChange] = {}
        self.last_commit: CommandRun | None = None
        self.tasks = TaskList()
        # Comments added to code often explain a decision: path, text, position.
        self.comments: deque[tuple[str, str, int]] = deque(maxlen=_MAX_COMMENTS)

    @property
    def runs(self) -> list[CommandRun]:
        """The last commands; a repeated one only once, and without the last commit."""
        return [run for run in self._runs.values() if run is not self.last_commit]

    @property
    def files(self) -> list[FileChange]:
        """The files that were read or changed."""
        return list(self._files.values())

    @property
    def uncommitted(self) -> list[FileChange]:
        """The files that were changed after the last commit."""
        after = self.last_commit.position if self.last_commit is not None else -1
        return [file for file in self._files.values() if file.kind != "read" and file.position > after]

    def add(self, tool: ToolCall, position: int) -> None:
        """Add a call."""
        self.tasks.add(tool, position)
        for edit in tool.edits:
            self._add_edit(edit, tool, position)
        if not tool.edits:
            for path in path_params(tool):
                if PurePath(path).suffix:
                    self._file(path, position)
        run = command_run(tool, position)
        if run is None:
            return
        self._runs.pop(run.command, None)
        self._runs[run.command] = run
        if len(self._runs) > _MAX_COMMANDS:
            del self._runs[next(iter(self._runs))]
        if run.subject is not None:
            self.last_commit = run
        if run.status == "completed":
            self._add_removals(run)

    def _add_edit(self, edit: Edit, tool: ToolCall, position: int) -> None:
        file = self._file(edit.path, position)
        if tool.decision == "rejected" or tool.status == "cancelled":
            file.rejected += 1
            return
        unchanged_kind = "new" if file.kind == "new" else "changed"
        file.kind = {"create": "new", "delete": "deleted"}.get(edit.kind, unchanged_kind)
        file.added += edit.added
        file.removed += edit.removed
        file.edits += 1
        file.position = position
        if edit.kind == "update":
            self.comments.extend((file.path, text, position) for text in _added_comments(edit))

    def _add_removals(self, run: CommandRun) -> None:
        for found in _RM_COMMAND.finditer(run.command):
            for word in _split_words(found[1]):
                if not word.startswith("-") and PurePath(word).suffix:
                    file = self._file(word, run.position)
                    file.kind, file.position = "deleted", run.position

    def _file(self, path: str, position: int) -> FileChange:
        name = path.removeprefix(self._workspace_prefix)
        return self._files.setdefault(name, FileChange(name, position))


def _added_comments(edit: Edit) -> Iterator[str]:
    for hunk in edit.hunks:
        for line in hunk.added:
            found = _COMMENT.match(line)
            if found is not None and line.strip() not in {old.strip() for old in hunk.removed}:
                yield found[1]


class TaskList:
    """The task list after the calls added so far.

    A call has the whole list with the status of each entry, or adds an entry, or changes the status of one.
    """

    def __init__(self) -> None:
        self._status: dict[str, str] = {}  # by task id
        self._texts: dict[str, tuple[str, int]] = {}  # text, and position of the first message that has it

    def add(self, tool: ToolCall, position: int) -> None:
        """Apply a call, if it changes the list."""
        params = tool.params
        entries = next(
            (params[name] for name in ("todos", "tasks") if isinstance(params.get(name), list)), None
        )
        if entries is not None:
            self._replace(entries, position, keeps_others=params.get("merge") is True)
            return
        id_ = params.get("taskId", params.get("task_id"))
        status = params.get("status")
        if id_ is not None and isinstance(status, str):
            self._status[str(id_)] = _normalize_status(status)
            return
        subject = params.get("subject")
        if isinstance(subject, str) and tool.result:
            number = _TASK_NUMBER.search(tool.result)
            self._put(number[1] if number else subject, subject, "pending", position)

    def unfinished(self) -> list[tuple[str, str, int]]:
        """Return text, status and first position of every unfinished entry."""
        return [
            (text, self._status.get(id_, "pending"), position)
            for id_, (text, position) in self._texts.items()
            if self._status.get(id_, "pending") not in _FINISHED
        ]

    def _replace(self, entries: list[Any], position: int, *, keeps_others: bool) -> None:
        previous = dict(self._texts)
        if not keeps_others:
            self._texts, self._status = {}, {}
        for entry in entries:
            if not isinstance(entry, dict):
                continue
            text = next((entry[name] for name in _TEXT_KEYS if isinstance(entry.get(name), str)), None)
            id_ = str(entry.get("id", text))
            if text is None and id_ in previous:
                text = previous[id_][0]
            if text is not None:
                first = previous[id_][1] if id_ in previous else position
                self._put(id_, text, str(entry.get("status", "pending")), first)

    def _put(self, id_: str, text: str, status: str, position: int) -> None:
        self._texts[id_] = (text, position)
        self._status[id_] = _normalize_status(status)


def _normalize_status(status: str) -> str:
    """Return a status in lower case without Cursor's prefix: ``TODO_STATUS_IN_PROGRESS`` is in_progress."""
    return status.lower().removeprefix("todo_status_")
