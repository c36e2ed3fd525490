"""Unfinished entries of task lists.

No tool is known by name. A list of entries with a status, a call that adds an entry, and a call that changes
the status of an entry have the same shape in all tools.
"""

import re
from typing import Any

from backscroll.model import ToolCall

__all__ = ["TaskList"]

_FINISHED = ("completed", "complete", "done", "cancelled", "canceled", "deleted")
_TEXT_KEYS = ("content", "subject", "title", "text", "task")
_TASK_NUMBER = re.compile(r"#(\d+)")


class TaskList:
    """The task list after the calls added so far."""

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
