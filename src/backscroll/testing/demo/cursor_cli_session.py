"""Session in the Cursor CLI."""

from datetime import datetime
from typing import Any, Literal, TypeAlias

from backscroll.testing import cursor, cursor_cli
from backscroll.testing.cursor import Graph, Message
from backscroll.testing.cursor.prompt_messages import split_turns, turn_prompts
from backscroll.testing.cursor.user_data import assign_ids
from backscroll.testing.demo.cursor_session import CursorSession, milliseconds
from backscroll.testing.demo.project import Repository

# Files of a chat: its store, a transcript, or both.
StoredIn: TypeAlias = Literal["store", "both", "transcript"]


class CursorCliSession(CursorSession):
    """Chat of the Cursor CLI."""

    def __init__(
        self,
        home: cursor_cli.Home,
        name: str,
        title: str,
        repository: Repository,
        *,
        at: datetime,
        model: str,
        stored_in: StoredIn = "store",
        is_acp: bool = False,
    ) -> None:
        super().__init__(name, title, repository, at=at, model=model)
        self._home = home
        self._stored_in = stored_in
        self._is_acp = is_acp
        self._compacted_count = 0
        self._summary = ""
        self._subagents: dict[str, Graph] = {}
        self._paths: dict[str, None] = {}  # files that the assistant has read

    def think(self, text: str) -> None:
        self.pause(seconds=1 + len(text) / 60)
        self.add(cursor.thinking(text, encoding="text"))

    def shell(self, command: str, output: str = "", *, code: int = 0) -> None:
        result = f"Exit code: {code}\n\n{output}" if code else output
        self.call("Shell", {"command": command, "working_directory": self.folder}, result)

    def failed_call(self, name: str, params: dict[str, Any], reason: str) -> None:
        """Call a tool that fails."""
        self.pause(seconds=4)
        self.add(cursor.failed(name, params, reason))

    def grep(self, pattern: str, *found: str) -> None:
        self.call("Grep", {"pattern": pattern, "path": self.folder}, "\n".join(found))

    def todo(self, *items: tuple[str, str]) -> None:
        todos = [
            {"id": str(number), "content": content, "status": status}
            for number, (content, status) in enumerate(items, 1)
        ]
        self.call("TodoWrite", {"merge": False, "todos": todos}, "Todos updated.")

    def delegate(self, description: str, prompt: str, answer: str, *steps: Message) -> None:
        """Start a subagent. Its conversation is stored inside this chat."""
        self.subagents += 1
        self.call("Task", {"description": description, "prompt": prompt, "subagent_type": "explore"}, answer)
        at = milliseconds(self._now)
        messages = assign_ids([cursor.user(prompt), *steps, cursor.assistant(answer)], self._ids, at)
        name = f"explore-{len(self._subagents) + 1}"
        times = [message.at or at for message in messages]
        self._subagents[name] = cursor.build_graph(messages, times, folder=self.folder, paths=())

    def compact(self, summary: str) -> None:
        """Replace the conversation up to here with a summary."""
        self._compacted_count = sum(1 for turn in split_turns(self.messages) for _ in turn_prompts(turn))
        self._summary = summary

    def close(self) -> None:
        end = milliseconds(self._now)
        if self._stored_in != "transcript":
            options: dict[str, Any] = {"paths": list(self._paths), "subagents": self._subagents}
            if self._compacted_count:
                options |= {"compacted": self._compacted_count, "summary": self._summary}
            self._home.chat(
                self.messages,
                cwd=self.folder,
                id=self.id,
                name=self.title,
                at=milliseconds(self.start),
                is_acp=self._is_acp,
                fields={"lastUsedModel": self.model},
                **options,
            )
        if self._stored_in != "store":
            cursor_cli.write_transcript(
                self._home.root,
                self.messages,
                id=self.id,
                cwd=self.folder,
                at=milliseconds(self.start),
                mtime=end,
            )

    def _add_read(self, path: str, text: str) -> None:
        self._paths[path] = None
        self.call("Read", {"path": path}, text)

    def _add_edit(self, path: str, old: str, new: str, before: str) -> None:
        params = {"path": path, "old_string": old, "new_string": new}
        self.call("StrReplace", params, f"The file {path} has been updated.")

    def _add_write(self, path: str, text: str, before: str | None) -> None:
        self.call("Write", {"path": path, "contents": text}, f"Wrote contents to {path}")
