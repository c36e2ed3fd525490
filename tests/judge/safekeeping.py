"""Backscroll's commands that change the tool's files, and what the tool sends to the model afterwards."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.judge.blocks import Block, text, think, use
from tests.judge.stage import Run, Stage

_COMMAND = str(Path(sys.executable).with_name("backscroll"))
_TIMEOUT_SECONDS = 60
_REMINDER = "<system-reminder>"
_LONG_OUTPUT = "seq 1 12000"


class Safekeeping:
    """The command line of Backscroll, with the folders of a stage and an archive of its own."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.home = stage.folder / "safekeeping"

    def run(self, *arguments: str, root: Path | None = None, is_json: bool = True) -> dict[str, Any]:
        """Run a command and return its document; an empty one if the command has none."""
        folders = ["--home", str(self.home), "--root", f"claude-code={root or self._stage.config}"]
        done = subprocess.run(
            [_COMMAND, *folders, *arguments, *(["--json"] if is_json else [])],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
        )
        is_done = done.returncode == 0 or (done.returncode == 3 and arguments[0] == "sync")  # with problems
        assert is_done, f"{arguments} failed: {done.stdout[-1000:]} {done.stderr[-1000:]}"
        document: dict[str, Any] = json.loads(done.stdout) if is_json else {}
        return document

    def figures(self) -> dict[str, Any]:
        """Return the totals over all sessions, without the number of sessions."""
        total = self.run("stats")["total"]
        names = ("prompts", "responses", "total_tokens", "tool_calls", "edits_decided", "lines_added")
        return {name: total[name] for name in names}


def make_session(stage: Stage) -> Run:
    """Let the tool make a session with thoughts, an edit, a long result and a subagent."""
    file = stage.write("a.txt", "alpha\nbeta\n")
    agent = use(
        stage.agent_tool, description="Spoons", prompt="SUB-SPOON count", subagent_type="general-purpose"
    )
    wait = use("Bash", command="sleep 1; echo waited", description="wait")
    stage.script.on(
        "PROMPT-KEEP",
        [think("Let me ponder."), text("First I read."), use("Read", file_path=str(file))],
        [use("Edit", file_path=str(file), old_string="beta", new_string="BETA")],
        [use("Bash", command=_LONG_OUTPUT, description="long"), agent],
        [wait],
        [text("All of it is done.")],
    )
    stage.script.on_agent("SUB-SPOON", [text("There are 7 spoons.")])
    return stage.ask("PROMPT-KEEP please")


def expected_conversation(stage: Stage, session: Run) -> list[Block]:
    """Return what the model receives if the session is resumed as the tool left it.

    The tool resumes it, and its files are put back afterwards.
    """
    saved = stage.folder / "saved-config"
    shutil.copytree(stage.config, saved, symlinks=True)
    run = stage.ask("Which kettle was it?", resume=session)
    stage.runs.remove(run)
    shutil.rmtree(stage.config)
    saved.rename(stage.config)
    return conversation_of(run)


def conversation_of(run: Run) -> list[Block]:
    """Return the messages that the first request of a run contains.

    Without what a start of the tool adds: reminders and notes with the date and the folder, and marks for
    the cache.
    """
    exchange = next(each for each in run.exchanges if not each.is_own and each.agent is None)
    messages = [message for message in exchange.request["messages"] if message["role"] != "system"]
    return [_message(message) for message in messages]


def _message(message: Block) -> Block:
    content = message["content"]
    blocks = [text(content)] if isinstance(content, str) else content
    kept = [{key: value for key, value in block.items() if key != "cache_control"} for block in blocks]
    return {
        "role": message["role"],
        "content": [block for block in kept if not block.get("text", "").startswith(_REMINDER)],
    }


def files_below(folder: Path) -> dict[str, bytes]:
    """Return the contents of the files of sessions, by their paths below a configuration folder."""
    found: dict[str, bytes] = {}
    for part in ("projects", "tasks", "todos", "file-history"):
        for path in sorted((folder / part).rglob("*")):
            if path.is_file():
                found[str(path.relative_to(folder))] = path.read_bytes()
    return found
