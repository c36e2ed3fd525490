"""A run in a terminal (tmux)."""

import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from tests.judge.stage import Stage

_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.2
_TYPING_SECONDS = 0.8  # the tool takes faster input for a paste
_MAX_ENTER_KEYS = 3
_DIALOG = ("Do you want", "1. Yes", "❯ 1.")


class Terminal:
    """Screen and keyboard of a running tool."""

    def __init__(self, stage: Stage, socket: Path, arguments: tuple[str, ...]) -> None:
        self.prompts: list[str] = []
        self._socket = socket
        environment = [f"{name}={value}" for name, value in stage.environ().items()]
        command = shlex.join(["env", "-i", *environment, *stage.command(*arguments)])
        self._tmux("new-session", "-d", "-x", "170", "-y", "50", "-c", str(stage.workspace), command)
        self.wait_for("for shortcuts", "❯", "│ >")
        time.sleep(2.0)  # the prompt is drawn before it accepts keys

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def wait_for(self, *texts: str) -> None:
        """Wait until the screen contains one of the texts."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not any(each in self.screen() for each in texts):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the screen does not show {texts}:\n{self.screen()}")
            time.sleep(_POLL_SECONDS)

    def keys(self, *names: str) -> None:
        for name in names:
            self._tmux("send-keys", name)
            time.sleep(0.3)

    def type(self, words: str, *, is_prompt: bool = True) -> None:
        """Type words and press Enter."""
        self.prompts += [words] if is_prompt else []
        self._tmux("send-keys", "-l", words)
        for _ in range(_MAX_ENTER_KEYS):
            time.sleep(_TYPING_SECONDS)
            self._tmux("send-keys", "Enter")
            time.sleep(_TYPING_SECONDS)
            if not self._has_input(words):
                return

    def _has_input(self, words: str) -> bool:
        """Return whether the words are still in the input, because the key came too early."""
        lines = [line.strip("│ \N{NO-BREAK SPACE}") for line in self.screen().splitlines()]
        inputs = [line for above, line in pairwise(lines) if above.startswith(("─", "╭"))]
        return any(line.startswith((">", "❯")) and words[:20] in line for line in inputs)

    def ask(self, prompt: str, answer: str = "Understood") -> None:
        """Type a prompt and wait for the answer."""
        self.type(prompt)
        self.wait_for(answer)
        time.sleep(1.0)

    def open_dialog(self, prompt: str) -> None:
        """Type a prompt whose answer needs a permission. Wait for the dialog."""
        self.type(prompt)
        self.wait_for(*_DIALOG)
        time.sleep(1.0)

    def close(self) -> None:
        """Leave the tool as a user does."""
        self.keys("C-u")
        time.sleep(_TYPING_SECONDS)  # otherwise both are taken for a paste
        self.type("/exit", is_prompt=False)
        deadline = time.monotonic() + 10.0
        while self._is_running() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        if self._is_running():
            self.keys("C-c", "C-c")
            time.sleep(2.0)

    def kill(self) -> None:
        self._tmux("kill-server")

    def _is_running(self) -> bool:
        return "judge" in self._tmux("list-sessions", "-F", "judge")

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        return subprocess.run(command, capture_output=True, text=True).stdout


@contextmanager
def terminal(stage: Stage, *arguments: str) -> Iterator[Terminal]:
    """Run the tool in a terminal. The session is the one that contains the first prompt last."""
    first = len(stage.script.exchanges)
    running = Terminal(stage, stage.folder / f"tmux-{len(stage.runs)}", arguments)
    try:
        yield running
        running.close()
    finally:
        running.kill()
    time.sleep(0.5)
    run = stage.finished(running.prompts, 0, "", "", first)
    run.session_id = stage.session_with(running.prompts[0] if running.prompts else "")
