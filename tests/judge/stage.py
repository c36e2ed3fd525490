"""One scenario: folders, environment, and runs of the tool."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from backscroll import History
from backscroll.config import NamedRoot
from tests.judge.script import Exchange, Script
from tests.judge.versions import Version

ALL_TOOLS = (
    "Bash,Read,Write,Edit,MultiEdit,NotebookEdit,Glob,Grep,TodoWrite,Task,Agent,WebFetch,TaskCreate,TaskUpdate,"
    "TaskList,BashOutput,KillShell,TaskOutput,TaskStop,Skill,SlashCommand,ExitPlanMode,EnterPlanMode,SendMessage,"
    "EnterWorktree,ExitWorktree,WebSearch"
)
_LAUNCHER = Path(__file__).with_name("launcher.py")
_TIMEOUT_SECONDS = 120
_API_KEY = "sk-ant-judge"


@cache
def network_isolation() -> tuple[str, ...]:
    """Return the command that starts a program without a network; empty if the system does not permit it."""
    for command in (("unshare", "--net"), ("unshare", "--map-root-user", "--net")):
        if (
            shutil.which("unshare")
            and subprocess.run([*command, "true"], capture_output=True).returncode == 0
        ):
            return command
    return ()


@dataclass
class Run:
    """One start of the tool."""

    prompts: list[str]  # as the user typed them
    session_id: str | None
    exit_code: int | None
    output: str
    errors: str
    exchanges: list[Exchange]
    partial_answers: list[str] = field(default_factory=list)  # words written without their response

    @property
    def id(self) -> str:
        assert self.session_id is not None, f"no session id in {self.output[-500:]!r} {self.errors[-500:]!r}"
        return self.session_id


class Stage:
    """Folders, environment and scripted model of one scenario."""

    def __init__(self, version: str, executable: Path, folder: Path, script: Script, socket: Path) -> None:
        self.version = Version(version)
        self.script = script
        self.runs: list[Run] = []
        self.folder = folder
        self.home = folder / "home"
        self.config = folder / "config"
        self.workspace = folder / "work"
        self.environment: dict[str, str] = {}  # added by a scenario
        self.calls: dict[str, dict[str, Any]] = {}  # id of a call: what is expected of it, if not the default
        self.titles: dict[str, str | None] = {}  # session id: expected title
        self.branch: str | None = None  # of the repository, expected of all sessions except these
        self.branches: dict[str, str] = {}  # session id: expected branch
        self._executable = executable
        self._socket = socket
        for path in (self.home, self.config, self.workspace, folder / "tmp"):
            path.mkdir()
        self.trust(self.workspace)

    # Set up

    def write(self, name: str, content: str | bytes, mode: int = 0o644) -> Path:
        """Write a file below the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        return path

    def settings(self, **settings: Any) -> None:
        """Write the user's settings."""
        (self.config / "settings.json").write_text(json.dumps(settings), "utf-8")

    def trust(self, folder: Path) -> None:
        """Answer the questions that the tool asks at its first start in a folder."""
        path = self.config / ".claude.json"
        state = json.loads(path.read_text("utf-8")) if path.exists() else {}
        state |= {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [_API_KEY], "rejected": []},
        }
        project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}
        state.setdefault("projects", {})[str(folder)] = project
        path.write_text(json.dumps(state), "utf-8")
        (self.home / ".claude.json").write_text(json.dumps(state), "utf-8")  # where 0.2 looks for it

    def git(self, *arguments: str) -> None:
        """Run git in the workspace."""
        identity = ["-c", "user.name=Judge", "-c", "user.email=judge@example.invalid"]
        subprocess.run(["git", *identity, *arguments], cwd=self.workspace, check=True, capture_output=True)

    def init_repository(self, branch: str = "trunk") -> None:
        self.git("init", "-q", "-b", branch)
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        self.branch = branch

    # Expect

    def expect(self, call: dict[str, Any], **values: Any) -> None:
        """Expect a result, status or decision of a call other than the default."""
        self.calls.setdefault(call["id"], {}).update(values)

    def expect_as_written(self, exchange: Exchange) -> None:
        """Expect of an answer that was cut what the tool wrote of it, if anything."""
        lines = [line for path in self.transcripts() for line in path.read_text("utf-8").splitlines()]
        records = [json.loads(line) for line in lines]
        answers = [record["message"] for record in records if record["type"] == "assistant"]
        messages = [message for message in answers if message["id"] == exchange.response_id]
        synthetic = [message for message in answers if message["model"] == "<synthetic>"]
        words = "".join(block.get("text", "") for block in exchange.blocks)
        # 2.1.105 writes the words in a message of its own, without model and tokens.
        run = next(run for run in self.runs if exchange in run.exchanges)
        texts = [message["content"][0].get("text", "") for message in synthetic]
        run.partial_answers += [each for each in texts if each and words.startswith(each)]
        exchange.blocks = [block for message in messages for block in message["content"]]
        for key in exchange.usage:
            exchange.usage[key] = max((message["usage"].get(key) or 0 for message in messages), default=0)

    # Run

    def command(self, *arguments: str) -> list[str]:
        """Return the command that starts the tool without a network."""
        launcher = [sys.executable, "-I", str(_LAUNCHER), str(self._socket)]
        return [*network_isolation(), *launcher, str(self._executable), *arguments]

    def environ(self) -> dict[str, str]:
        temporary = str(self.folder / "tmp")
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "ANTHROPIC_API_KEY": _API_KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "TMPDIR": temporary,
            "CLAUDE_CODE_TMPDIR": temporary,
        } | self.environment

    def ask(
        self,
        prompt: str,
        *arguments: str,
        resume: Run | None = None,
        allow: str = ALL_TOOLS,
        stdin: str | None = None,
        folder: Path | None = None,
        stop: Callable[[], None] | None = None,
        stop_signal: signal.Signals = signal.SIGINT,
        is_prompt: bool = True,
    ) -> Run:
        """Run the tool with one prompt. With ``stop``, send a signal when that function returns.

        A command that the tool handles itself is no prompt.
        """
        resumed = ["--resume", resume.id] if resume is not None else []
        allowed = ["--allowedTools", allow] if allow else []
        first = len(self.script.exchanges)
        command = [*resumed, *arguments, "-p", prompt, "--output-format", "json", *allowed]
        process = self.start(*command, folder=folder, has_input=stdin is not None)
        if stop is not None:
            stop()
            process.send_signal(stop_signal)
        try:
            output, errors = process.communicate(stdin, timeout=_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        run = self.finished([prompt] if is_prompt else [], process.returncode, output, errors, first)
        if run.session_id is None and stop is None:  # 2.1.20 prints nothing after a command in the background
            run.session_id = self.session_with(prompt)
        return run

    def start(
        self, *arguments: str, folder: Path | None = None, has_input: bool = True
    ) -> subprocess.Popen[str]:
        """Start the tool with pipes."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=folder or self.workspace,
            env=self.environ(),
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finished(
        self, prompts: list[str], exit_code: int | None, output: str, errors: str, first_exchange: int
    ) -> Run:
        """Record a run that ended."""
        exchanges = self.script.exchanges[first_exchange:]
        run = Run(prompts, _session_id(output), exit_code, output, errors, exchanges)
        self.runs.append(run)
        return run

    @property
    def agent_tool(self) -> str:
        """The name of the tool that starts a subagent."""
        return "Agent" if self.version >= "2.1.63" else "Task"

    def wait_for_file(self, name: str, timeout_seconds: float = 60.0) -> None:
        """Wait until a command of the tool has written a file of the workspace."""
        deadline = time.monotonic() + timeout_seconds
        while not (self.workspace / name).exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} was not written within {timeout_seconds} seconds")
            time.sleep(0.05)

    def session_with(self, words: str) -> str | None:
        """Return the id of the session that contains the words; of several, the one that changed last."""
        found = [path.stem for path in self.transcripts() if words in path.read_text("utf-8")]
        return found[-1] if found else None

    @property
    def last_session(self) -> Run:
        """The last run that has a transcript."""
        written = {path.stem for path in self.transcripts()}
        return next(run for run in reversed(self.runs) if run.session_id in written)

    # Read

    def transcripts(self) -> list[Path]:
        """Return the files of the sessions, oldest first, without those of subagents."""
        files = [
            path for path in self.config.glob("projects/*/*.jsonl") if not path.name.startswith("agent-")
        ]
        return sorted(files, key=lambda path: path.stat().st_mtime_ns)

    @contextmanager
    def history(self) -> Iterator[History]:
        """Read what the tool wrote into a new archive."""
        home = self.folder / "archive"
        with History(roots=[NamedRoot("claude-code", self.config)], home=home) as history:
            history.sync()
            yield history


def _session_id(output: str) -> str | None:
    """Return the session id in the last line of output that has one."""
    for line in reversed(output.splitlines()):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        value = value[-1] if isinstance(value, list) and value else value
        if isinstance(value, dict) and value.get("session_id"):
            return str(value["session_id"])
    return None
