"""What an assistant had put on its list and not done.

Tools are not known by name: a list of entries with a status, a call that adds an
entry, and one that changes the status of an entry look the same everywhere.
"""

import re
from typing import Any

from backscroll.model import ToolCall

__all__ = ["TaskList"]

_DONE = ("completed", "complete", "done", "cancelled", "canceled", "deleted")
_TEXTS = ("content", "subject", "title", "text", "task")
_NUMBER = re.compile(r"#(\d+)")


class TaskList:
    """The list as the calls so far have left it."""

    def __init__(self) -> None:
        self._status: dict[str, str] = {}  # by the entry's id
        self._texts: dict[str, tuple[str, int]] = {}  # with the position it was first named at

    def see(self, tool: ToolCall, position: int) -> None:
        """Take note of a call, if it is about the list."""
        params = tool.params
        listed = next(
            (params[name] for name in ("todos", "tasks") if isinstance(params.get(name), list)), None
        )
        if listed is not None:
            self._replace(listed, position, keeps_others=params.get("merge") is True)
            return
        id_ = params.get("taskId", params.get("task_id"))
        status = params.get("status")
        if id_ is not None and isinstance(status, str):
            self._status[str(id_)] = _plain(status)
            return
        subject = params.get("subject")
        if isinstance(subject, str) and tool.result:
            named = _NUMBER.search(tool.result)
            self._put(named[1] if named else subject, subject, "pending", position)

    def unfinished(self) -> list[tuple[str, str, int]]:
        """Entries that are not done, with their status and where they were first named."""
        return [
            (text, self._status.get(id_, "pending"), position)
            for id_, (text, position) in self._texts.items()
            if self._status.get(id_, "pending") not in _DONE
        ]

    def _replace(self, listed: list[Any], position: int, *, keeps_others: bool) -> None:
        known = dict(self._texts)
        if not keeps_others:
            self._texts, self._status = {}, {}
        for entry in listed:
            if not isinstance(entry, dict):
                continue
            text = next((entry[name] for name in _TEXTS if isinstance(entry.get(name), str)), None)
            id_ = str(entry.get("id", text))
            if text is None and id_ in known:
                text = known[id_][0]
            if text is not None:
                first = known[id_][1] if id_ in known else position
                self._put(id_, text, str(entry.get("status", "pending")), first)

    def _put(self, id_: str, text: str, status: str, position: int) -> None:
        self._texts[id_] = (text, position)
        self._status[id_] = _plain(status)


def _plain(status: str) -> str:
    """A status as a word: ``TODO_STATUS_IN_PROGRESS`` is in_progress."""
    return status.lower().removeprefix("todo_status_")
