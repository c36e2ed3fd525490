"""Session in the Cursor IDE, and the base class of Cursor sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from random import Random
from typing import Any

from backscroll.testing import cursor
from backscroll.testing.cursor import Message, Workspace
from backscroll.testing.cursor.prompt_messages import thinking_text
from backscroll.testing.cursor.user_data import assign_ids
from backscroll.testing.demo.project import Repository
from backscroll.testing.demo.session import DemoSession, session_id

_GENERATION_5_START = datetime(2026, 8, 10, tzinfo=UTC)


def milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


class CursorSession(DemoSession):
    """Base class of Cursor sessions: a list of messages with their times."""

    def __init__(
        self,
        name: str,
        title: str,
        repository: Repository,
        *,
        at: datetime,
        model: str,
        folder: str | None = None,
    ) -> None:
        super().__init__(name, title, repository, folder=folder)
        self.model = model
        self.start = at
        self.messages: list[Message] = []
        self.prompts: list[str] = []
        self._now = at
        self._ids = Random(f"messages/{name}")

    @property
    def now(self) -> datetime:
        return self._now

    def pause(self, *, minutes: float = 0, seconds: float = 0) -> None:
        self._now += timedelta(seconds=round(minutes * 60 + seconds, 3))

    def prompt(self, text: str, *, files: Sequence[str] = ()) -> None:
        if self.messages:
            self.pause(seconds=self.random.uniform(20, 160))
        self.prompts.append(text)
        paths = [f"{self.folder}/{path}" for path in files]
        self.add(cursor.user(text, files=paths, modelInfo={"modelName": self.model}))

    def note(self, text: str) -> None:
        self.pause(seconds=self.random.uniform(2, 7))
        self.add(cursor.assistant(text))

    def reply(self, text: str) -> None:
        self.pause(seconds=self.random.uniform(4, 14) + len(text) / 90)
        self.add(cursor.assistant(text))

    def call(self, name: str, params: Mapping[str, Any], result: Any = None, **fields: Any) -> Message:
        """Call a tool."""
        self.pause(seconds=self.random.uniform(2, 9))
        return self.add(cursor.tool(name, params, result, **fields))

    def add(self, message: Message) -> Message:
        """Add a message with the current time."""
        at = milliseconds(self._now)
        (added,) = assign_ids([replace(message, at=at)], self._ids, at)
        self.messages.append(added)
        return added


class CursorIdeSession(CursorSession):
    """Composer of the Cursor IDE."""

    def __init__(
        self,
        home: cursor.Home,
        name: str,
        title: str,
        repository: Repository,
        *,
        at: datetime,
        model: str,
        workspace: Workspace,
        is_archived: bool = False,
    ) -> None:
        folder = workspace.path if workspace.kind == "folder" else None
        super().__init__(name, title, repository, at=at, model=model, folder=folder)
        self._home = home
        self._workspace = workspace
        self._is_archived = is_archived
        self._paths: dict[str, None] = {}  # files that the assistant has read
        self._changed: dict[str, tuple[int, int]] = {}  # added and removed lines by path
        self._todos: list[dict[str, str]] = []
        self._subagent_ids: list[str] = []

    def prompt_with_image(self, text: str, *, name: str, uuid: str, size: tuple[int, int]) -> None:
        """Add a prompt with an image."""
        cursor.write_image(self._home.root, self._workspace, name=name, uuid=uuid)
        at = milliseconds(self._now)
        image = {"uuid": uuid, "path": f"images/{name}-{uuid}.png", "loadedAt": at}
        image["dimension"] = {"width": size[0], "height": size[1]}
        self.prompts.append(text)
        context = {"fileSelections": [], "selectedImages": [image]}
        self.add(cursor.user(text, modelInfo={"modelName": self.model}, context=context))

    def think(self, text: str) -> None:
        self.pause(seconds=1 + len(text) / 60)
        self.add(cursor.thinking(text, milliseconds=900 + len(text) * 17))

    def shell(self, command: str, output: str = "", *, code: int = 0) -> None:
        params = {"command": command, "cwd": self.folder, "options": {"timeout": 30000}}
        result = {"output": output, "exitCode": code, "rejected": False, "notInterrupted": True}
        self.call("run_terminal_command_v2", params, result, has_raw_args=False, decision="accepted")

    def reject_command(self, command: str) -> None:
        """Propose a command that the user rejects."""
        self.pause(seconds=6)
        self.add(cursor.rejected(command, self.folder))

    def grep(self, pattern: str, *found: str) -> None:
        matches = []
        for path in self._matched_paths(found):
            lines = [line.split(":", 2) for line in found if line.startswith(f"{path}:")]
            hits = [{"lineNumber": int(number), "content": text} for _, number, text in lines]
            matches.append({"file": f"{self.folder}/{path}", "matches": hits})
        params = {"pattern": pattern, "path": self.folder, "outputMode": "content"}
        result = {"success": {"workspaceResults": {self.folder: {"content": {"matches": matches}}}}}
        self.call("grep", params, result)

    def todo(self, *items: tuple[str, str]) -> None:
        self._todos = [
            {"id": str(number), "content": content, "status": status}
            for number, (content, status) in enumerate(items, 1)
        ]
        result = {"success": True, "finalTodos": self._todos}
        self.call("todo_write", {"merge": False, "todos": self._todos}, result)

    def reject_edit(self, path: str, old: str, new: str) -> None:
        """Propose an edit that the user rejects."""
        full = f"{self.folder}/{path}"
        review = {"status": "Done", "selectedOption": "reject"}
        self.call(
            "search_replace",
            {"file_path": full, "old_string": old, "new_string": new},
            {"rejected": True},
            status="cancelled",
            decision="rejected",
            additional={"status": "rejected", "reviewData": review},
        )

    def delegate(self, description: str, prompt: str, answer: str, *steps: Message) -> None:
        """Start a subagent in its own session and add its result."""
        self.subagents += 1
        child = session_id(f"{self.name}/{description}")
        params = {"description": description, "prompt": prompt, "subagentType": "explore"}
        call = self.call("task_v2", params, {"result": answer}, additional={"subagentComposerId": child})
        info = {
            "parentComposerId": self.id,
            "subagentTypeName": "explore",
            "subagentType": 3,
            "toolCallId": call.tool.call_id if call.tool is not None else "",
        }
        at = milliseconds(self._now)
        messages = [cursor.user(prompt), *steps, cursor.assistant(answer)]
        self._home.composer(
            assign_ids(messages, self._ids, at),
            generation=self._generation,
            workspace=self._workspace,
            id=child,
            name=description,
            at=at,
            has_graph=False,
            head=self._head({}) | {"subagentInfo": info, "subtitle": ""},
            data={"subagentInfo": info, "modelConfig": self._model_config},
        )
        self._subagent_ids.append(child)
        self.pause(seconds=10 * len(messages))

    def close(self) -> None:
        messages = [_without_signature(message) for message in self.messages]
        times = [message.at or 0 for message in messages]
        graph = cursor.build_graph(messages, times, folder=self.folder, paths=list(self._paths))
        self._home.put_graph(graph)
        self._home.put(f"agentKv:checkpoint:{self.id}", graph.root_id)
        self._home.composer(
            self.messages,
            generation=self._generation,
            workspace=self._workspace,
            id=self.id,
            name=self.title,
            at=milliseconds(self.start),
            has_graph=False,
            head=self._head(self._changed) | {"isArchived": self._is_archived},
            data={
                "conversationState": graph.state,
                "modelConfig": self._model_config,
                "todos": self._todos,
                "subagentComposerIds": self._subagent_ids,
                "isArchived": self._is_archived,
            },
        )

    @property
    def _model_config(self) -> dict[str, Any]:
        return {"modelName": self.model, "maxMode": False, "selectedModels": []}

    @property
    def _generation(self) -> int:
        return 5 if self.start >= _GENERATION_5_START else 4

    def _head(self, changed: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
        names = ", ".join(path.rpartition("/")[2] for path in changed)
        return {
            "subtitle": f"Edited {names}" if names else "",
            "totalLinesAdded": sum(added for added, _ in changed.values()),
            "totalLinesRemoved": sum(removed for _, removed in changed.values()),
            "filesChangedCount": len(changed),
        }

    def _add_read(self, path: str, text: str) -> None:
        self._paths[path] = None
        result = {"contents": text, "totalLinesInFile": text.count("\n")}
        self.call("read_file_v2", {"targetFile": path}, result)

    def _add_edit(self, path: str, old: str, new: str, before: str) -> None:
        params = {"file_path": path, "old_string": old, "new_string": new}
        self._add_change("search_replace", path, params, before, before.replace(old, new))

    def _add_write(self, path: str, text: str, before: str | None) -> None:
        self._add_change("write", path, {"file_path": path, "contents": text}, before or "", text)

    def _add_change(self, tool: str, path: str, params: dict[str, Any], before: str, after: str) -> None:
        chunks = _diff_chunks(before, after)
        added, removed = self._changed.get(path, (0, 0))
        added += sum(chunk["linesAdded"] for chunk in chunks)
        removed += sum(chunk["linesRemoved"] for chunk in chunks)
        self._changed[path] = added, removed
        self.call(tool, params, {"diff": {"chunks": chunks}}, decision="accepted")


def _diff_chunks(before: str, after: str) -> list[dict[str, Any]]:
    """Return the changes of an edit in the format of Cursor's edit tools."""
    old, new = before.splitlines(), after.splitlines()
    chunks = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        lines = [f"-{line}" for line in old[a:b]] + [f"+{line}" for line in new[c:d]]
        chunks.append(
            {
                "diffString": "\n".join(lines),
                "oldStart": a + 1,
                "newStart": c + 1,
                "oldLines": b - a,
                "newLines": d - c,
                "linesAdded": d - c,
                "linesRemoved": b - a,
            }
        )
    return chunks


def _without_signature(message: Message) -> Message:
    """Return the message with its thinking as plain text, without a signature."""
    return message if message.thinking is None else replace(message, thinking=thinking_text(message.thinking))
