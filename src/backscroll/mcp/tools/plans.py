"""Plans of tools that change files: a tool answers with a plan, and applies it when it gets the plan's id.

A plan belongs to one tool and its arguments. It expires, and it is refused if a file that it concerns has
changed since. A refused call returns a new plan.
"""

import os
import secrets
import shlex
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from backscroll.errors import ToolRunningError
from backscroll.mcp.tools.arguments import PlannedArguments
from backscroll.mcp.tools.results import ToolAnswer
from backscroll.model.dates import iso
from backscroll.model.text import one_line

if TYPE_CHECKING:
    from backscroll.mcp.call import Call


PLAN_MINUTES = 15
MAX_PLANS = 100  # the oldest are dropped
MAX_PATH_CHARS = 500
_LOG_SUFFIXES = ("-wal", "-journal")  # of files that belong to a database

FileState = tuple[int, int, int] | None  # size, modification time, inode; None if there is no file


class Plan(ABC):
    """A change that a tool would make. Nothing has been changed yet."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""

    @property
    @abstractmethod
    def paths(self) -> Iterable[str | Path]:
        """The files on which the plan depends. If one of them changes, the plan is refused."""

    @property
    def command(self) -> Sequence[str]:
        """Arguments of the command line that do the same. A plan with an obstacle needs them."""
        return ()

    @abstractmethod
    def describe(self, call: "Call") -> ToolAnswer:
        """Return the plan as text and document."""

    def find_obstacle(self, call: "Call") -> str | None:
        """Return why the plan cannot be applied now: a sentence with the next step."""
        return None

    @abstractmethod
    def apply(self, call: "Call") -> ToolAnswer:
        """Make the change. Return the result. Raises `NotAppliedError` if nothing was changed."""


class NotAppliedError(Exception):
    """Nothing was changed, for the reasons in the answer. The plan can be applied again."""

    def __init__(self, answer: ToolAnswer) -> None:
        super().__init__()
        self.answer = answer


class _StoredPlan:
    """A plan with its id, and the result once it was applied."""

    def __init__(self, key: bytes, plan: Plan, expires_at: float) -> None:
        self.key = key
        self.plan = plan
        self.states = _file_states(plan.paths)
        self.expires_at = expires_at
        self.is_running = False
        self.result: ToolAnswer | None = None


class _RefusedError(Exception):
    """A plan cannot be applied. The message is a sentence."""


class PlanStore:
    """The plans of one server process, by id."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._plans: dict[str, _StoredPlan] = {}
        self._lock = Lock()

    def add(self, key: bytes, plan: Plan) -> str:
        """Store a plan for the call that the key identifies. Return its id."""
        stored = _StoredPlan(key, plan, self._clock() + PLAN_MINUTES * 60)
        plan_id = secrets.token_hex(5)
        with self._lock:
            self._plans[plan_id] = stored
            for oldest in list(self._plans)[:-MAX_PLANS]:
                if not self._plans[oldest].is_running:
                    del self._plans[oldest]
        return plan_id

    def find(self, plan_id: str, key: bytes) -> _StoredPlan:
        """Return a plan that may be applied now, is being applied or was applied. Raises `_RefusedError`."""
        with self._lock:
            stored = self._plans.get(plan_id)
            if stored is None:
                raise _RefusedError(f"There is no plan {plan_id!r}.")
            if stored.key != key:
                raise _RefusedError(f"Plan {plan_id} was made for another tool or for other arguments.")
            if stored.is_running or stored.result is not None:
                return stored
            if self._clock() >= stored.expires_at:
                raise _RefusedError(
                    f"Plan {plan_id} has expired: plans are valid for {PLAN_MINUTES} minutes."
                )
            for path, state in _file_states(stored.plan.paths).items():
                if stored.states.get(path) != state:
                    raise _RefusedError(
                        f"{one_line(path, MAX_PATH_CHARS)} has changed since plan {plan_id} was made."
                    )
            return stored

    def start(self, stored: _StoredPlan) -> bool:
        """Mark a plan as being applied. Return False if it is being applied, or was."""
        with self._lock:
            if stored.is_running or stored.result is not None:
                return False
            stored.is_running = True
            return True

    def finish(self, stored: _StoredPlan, result: ToolAnswer | None) -> None:
        """Record the result of a plan; None if it failed, so that it can be applied again."""
        with self._lock:
            stored.result = result
            stored.is_running = False


def run_planned(
    call: "Call", tool: str, arguments: PlannedArguments, make_plan: Callable[[], Plan]
) -> ToolAnswer:
    """Return a plan, or apply the plan whose id is in the arguments.

    A plan that was applied is not applied again: a client that lost the result gets it again.
    """
    key = tool.encode() + msgspec.json.encode(msgspec.to_builtins(arguments) | {"plan_id": None})
    reason = None
    if (plan_id := arguments.plan_id) is not None:
        try:
            stored = call.plans.find(plan_id, key)
        except _RefusedError as error:
            reason = str(error)
        else:
            return _apply(call, stored)
    return _describe(call, tool, key, make_plan(), reason)


def _apply(call: "Call", stored: _StoredPlan) -> ToolAnswer:
    if not call.plans.start(stored):
        hint = "The plan is being applied. Call again later with the same plan_id to get the result."
        return stored.result or ToolAnswer("", {"status": "running"}, (hint,))
    result: ToolAnswer | None = None
    try:
        if (obstacle := stored.plan.find_obstacle(call)) is not None:
            return _blocked(call, stored.plan, obstacle)
        try:
            applied = stored.plan.apply(call)
        except ToolRunningError as error:
            return _blocked(call, stored.plan, error.reason)
        except NotAppliedError as error:
            document = {"status": "failed", "result": error.answer.document}
            return msgspec.structs.replace(error.answer, document=document)
        result = msgspec.structs.replace(applied, document={"status": "applied", "result": applied.document})
        return result
    finally:
        call.plans.finish(stored, result)


def _describe(call: "Call", tool: str, key: bytes, plan: Plan, reason: str | None) -> ToolAnswer:
    described = plan.describe(call)
    document: dict[str, Any] = {"status": "planned", "reason": reason, "plan": described.document}
    hints = list(described.hints)
    if plan.is_empty:
        hints.append("There is nothing to do.")
        return ToolAnswer(described.text, document | {"status": "nothing_to_do"}, tuple(hints))
    if (obstacle := plan.find_obstacle(call)) is not None:
        return _blocked(call, plan, obstacle)
    plan_id = call.plans.add(key, plan)
    hints.append(
        f"Nothing was changed. {reason} This is a new plan." if reason else "Nothing was changed yet."
    )
    hints.append(
        f"Show the plan to the user. If they agree, call {tool} again with the same arguments and"
        f" plan_id={plan_id} within {PLAN_MINUTES} minutes."
    )
    expires_at = iso(datetime.now(UTC) + timedelta(minutes=PLAN_MINUTES))
    return ToolAnswer(described.text, document | {"plan_id": plan_id, "expires_at": expires_at}, tuple(hints))


def _blocked(call: "Call", plan: Plan, obstacle: str) -> ToolAnswer:
    """Return the plan with the command that the user can run later."""
    described = plan.describe(call)
    command = shell_command([*call.options.command, *plan.command])
    hints = (*described.hints, f"Nothing was changed. {obstacle}", f"Then the user can run this: {command}")
    document = {"status": "blocked", "reason": obstacle, "plan": described.document, "command": command}
    return ToolAnswer(described.text, document, hints)


def shell_command(arguments: Sequence[str]) -> str:
    """Return a command as the user can type it."""
    return subprocess.list2cmdline(arguments) if sys.platform == "win32" else shlex.join(arguments)


def _file_states(paths: Iterable[str | Path]) -> dict[str, FileState]:
    states: dict[str, FileState] = {}
    for path in map(str, paths):
        states[path] = _file_state(path)
        for suffix in _LOG_SUFFIXES:
            log = _file_state(path + suffix)
            # An empty log has no changes. A program that opens the database creates it.
            states[path + suffix] = log if log is not None and log[0] else None
    return states


def _file_state(path: str) -> FileState:
    try:
        status = os.stat(path)  # noqa: PTH116 - many paths
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino
