"""A run that reads prompts and control requests from standard input."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen
from typing import Any

from tests.judge.blocks import Block
from tests.judge.stage import ALL_TOOLS, Stage

_TIMEOUT_SECONDS = 60


class Stream:
    """Standard input and output of a running tool, one JSON document per line."""

    def __init__(self, process: Popen[str]) -> None:
        self.prompts: list[str] = []
        self.lines: list[str] = []
        self._process = process
        self._requests = 0
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def prompt(self, content: str | list[Block], *, is_prompt: bool = True) -> None:
        """Send a prompt: words, or blocks."""
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if is_prompt:
            self.prompts.append("\n".join(block["text"] for block in blocks if block["type"] == "text"))
        message = {"role": "user", "content": content}
        self._send({"type": "user", "message": message, "session_id": "", "parent_tool_use_id": None})

    def control(self, subtype: str, **values: Any) -> None:
        """Send a control request, and wait for the response."""
        self._requests += 1
        id_ = f"request-{self._requests}"
        self._send({"type": "control_request", "request_id": id_, "request": {"subtype": subtype, **values}})
        self._wait(lambda line: '"control_response"' in line and id_ in line, 1)

    def wait_for_results(self, count: int) -> None:
        """Wait until the tool has finished so many turns."""
        self._wait(lambda line: json.loads(line).get("type") == "result", count)

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_TIMEOUT_SECONDS)
        self._reader.join(_TIMEOUT_SECONDS)

    def _send(self, document: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(line)
                self._changed.notify_all()

    def _wait(self, is_wanted: Any, count: int) -> None:
        with self._changed:
            done = self._changed.wait_for(
                lambda: sum(map(is_wanted, self.lines)) >= count, timeout=_TIMEOUT_SECONDS
            )
        assert done, f"the tool did not answer: {''.join(self.lines)[-1000:]}"


@contextmanager
def stream(stage: Stage, *arguments: str) -> Iterator[Stream]:
    """Run the tool with prompts from standard input. At the end, wait until it exits."""
    first = len(stage.script.exchanges)
    formats = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    with stage.start("-p", *formats, "--allowedTools", ALL_TOOLS, *arguments) as process:
        running = Stream(process)
        try:
            running.control("initialize", hooks=None)
            yield running
            running.end()
        finally:
            process.kill()
        assert process.stderr is not None
        errors = process.stderr.read()
    stage.finished(running.prompts, process.returncode, "".join(running.lines), errors, first)
