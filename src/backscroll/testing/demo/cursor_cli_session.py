"""A session held in Cursor's command line."""

from datetime import datetime
from typing import Any, Literal, TypeAlias

from backscroll.testing import cursor, cursor_cli
from backscroll.testing.cursor import Graph, Message
from backscroll.testing.cursor.prompt_messages import split_turns, turn_prompts
from backscroll.testing.cursor.user_data import assign_ids
from backscroll.testing.demo.cursor_session import CursorScene, milliseconds
from backscroll.testing.demo.project import Repository

__all__ = ["Kept", "TerminalScene"]

# What is left of a chat: its store, its store and a transcript, or the transcript alone.
Kept: TypeAlias = Literal["store", "both", "transcript"]


class TerminalScene(CursorScene):
    """A chat of the command line."""

    def __init__(
        self,
        home: cursor_cli.Home,
        name: str,
        title: str,
        repository: Repository,
        *,
        at: datetime,
        model: str,
        kept: Kept = "store",
        is_acp: bool = False,
    ) -> None:
        super().__init__(name, title, repository, at=at, model=model)
        self._home = home
        self._kept = kept
        self._is_acp = is_acp
        self._compacted = 0
        self._summary = ""
        self._children: dict[str, Graph] = {}
        self._paths: dict[str, None] = {}  # files the assistant has read

    def think(self, text: str) -> None:
        self.pause(seconds=1 + len(text) / 60)
        self.add(cursor.thinking(text, encoding="text"))

    def shell(self, command: str, output: str = "", *, code: int = 0) -> None:
        told = f"Exit code: {code}\n\n{output}" if code else output
        self.call("Shell", {"command": command, "working_directory": self.folder}, told)

    def fail(self, name: str, params: dict[str, Any], why: str) -> None:
        """A tool does not work."""
        self.pause(seconds=4)
        self.add(cursor.failed(name, params, why))

    def grep(self, pattern: str, *found: str) -> None:
        self.call("Grep", {"pattern": pattern, "path": self.folder}, "\n".join(found))

    def todo(self, *items: tuple[str, str]) -> None:
        todos = [
            {"id": str(number), "content": what, "status": status}
            for number, (what, status) in enumerate(items, 1)
        ]
        self.call("TodoWrite", {"merge": False, "todos": todos}, "Todos updated.")

    def delegate(self, description: str, prompt: str, answer: str, *steps: Message) -> None:
        """Start a subagent, whose own conversation is kept inside this one's."""
        self.subagents += 1
        self.call("Task", {"description": description, "prompt": prompt, "subagent_type": "explore"}, answer)
        at = milliseconds(self._now)
        said = assign_ids([cursor.user(prompt), *steps, cursor.assistant(answer)], self._ids, at)
        name = f"explore-{len(self._children) + 1}"
        times = [message.at or at for message in said]
        self._children[name] = cursor.build_graph(said, times, folder=self.folder, paths=())

    def compact(self, summary: str) -> None:
        """What was said so far is replaced by a summary of it."""
        self._compacted = sum(1 for turn in split_turns(self.messages) for _ in turn_prompts(turn))
        self._summary = summary

    def close(self) -> None:
        until = milliseconds(self._now)
        if self._kept != "transcript":
            options: dict[str, Any] = {"paths": list(self._paths), "subagents": self._children}
            if self._compacted:
                options |= {"compacted": self._compacted, "summary": self._summary}
            self._home.chat(
                self.messages,
                cwd=self.folder,
                id=self.id,
                name=self.title,
                at=milliseconds(self.began),
                is_acp=self._is_acp,
                fields={"lastUsedModel": self.model},
                **options,
            )
        if self._kept != "store":
            cursor_cli.write_transcript(
                self._home.root,
                self.messages,
                id=self.id,
                cwd=self.folder,
                at=milliseconds(self.began),
                mtime=until,
            )

    def _show_read(self, path: str, text: str) -> None:
        self._paths[path] = None
        self.call("Read", {"path": path}, text)

    def _show_edit(self, path: str, old: str, new: str, before: str) -> None:
        params = {"path": path, "old_string": old, "new_string": new}
        self.call("StrReplace", params, f"The file {path} has been updated.")

    def _show_write(self, path: str, text: str, before: str | None) -> None:
        self.call("Write", {"path": path, "contents": text}, f"Wrote contents to {path}")
