"""Backscroll's MCP server in the genuine client: every tool, and what the model receives."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from backscroll import History
from backscroll.config import NamedRoot
from backscroll.mcp.tools.registry import TOOLS, WRITE_TOOLS
from backscroll.mcp.tools.results import NOTICE
from backscroll.testing import demo
from tests.judge.blocks import Block, text, use
from tests.judge.comparison import assert_agrees
from tests.judge.expectation import result_text
from tests.judge.script import WaitForTool
from tests.judge.stage import ALL_TOOLS, Stage
from tests.judge.stream import stream

_PREFIX = "mcp__backscroll__"
_COMMAND = str(Path(sys.executable).with_name("backscroll"))
_SESSION = "claude-code:ed6cfe7f"
_BUDGET_TOKENS = 600
_ALL_NAMES = TOOLS.keys() | WRITE_TOOLS.keys()
_CONNECTED = WaitForTool(f"{_PREFIX}recall")  # not all versions wait for a server
_MIN_CHARS_PER_TOKEN = 3.0  # of English text; code and JSON have fewer


def _configure(stage: Stage) -> list[str]:
    """Write the demo and the configuration of the server. Return the arguments of the client."""
    written = demo.write(stage.folder / "robin")
    roots = os.pathsep.join(f"{source}={path}" for source, path in written.roots.items())
    environment = {"BACKSCROLL_HOME": str(stage.folder / "mcp-home"), "BACKSCROLL_ROOTS": roots}
    named = [NamedRoot(source, Path(path)) for source, path in written.roots.items()]
    with History(roots=named, home=stage.folder / "mcp-home") as history:
        history.sync()
        history.search_sessions("clocks")  # builds the index
        history.create_backup(stage.folder / "history.zip")
    (stage.folder / "target").mkdir()
    stage.environment["MCP_TIMEOUT"] = "60000"  # milliseconds to connect
    server = {"command": _COMMAND, "args": ["mcp", "--allow-writes"], "env": environment}
    path = stage.write("mcp.json", json.dumps({"mcpServers": {"backscroll": server}}))
    return ["--mcp-config", str(path)]


def _calls(stage: Stage) -> dict[str, Block]:
    """Return one call of each tool. A tool that writes returns its plan."""
    repository = str(stage.folder / "robin" / "projects" / "saltern")
    backup, target = str(stage.folder / "history.zip"), str(stage.folder / "target")
    arguments: dict[str, dict[str, Any]] = {
        "recall": {"task": "did we ever try asyncio for the poller", "token_budget": _BUDGET_TOKENS},
        "search_sessions": {"query": "clocks"},
        "list_sessions": {},
        "get_session": {"ref": _SESSION, "count": 3},
        "get_agent_session": {"ref": "claude-code:nosuch"},
        "export_session": {"ref": _SESSION, "format": "md", "max_chars": 1000},
        "list_workspaces": {},
        "stats": {"by": "month"},
        "sessions_for_code": {"repository": repository, "file": "README.md"},
        "sessions_for_commit": {"repository": repository},
        "journal_context": {"repository": repository},
        "journal_write_entry": {"repository": repository, "summary": "The kettle whistles."},
        "journal_add_reflection": {"repository": repository, "text": "It was loud."},
        "journal_capture_context": {"repository": repository, "text": "The tea is green."},
        "create_backup": {},
        "validate_backup": {"path": backup},
        "restore_backup": {"path": backup},
        "restore_session": {"refs": [_SESSION]},
        "migrate_session": {"refs": [_SESSION], "target": target},
        "migrate_workspace": {"workspace": str(_workspace(stage)), "target": target},
    }
    assert arguments.keys() == _ALL_NAMES
    return {name: use(_PREFIX + name, **params) for name, params in arguments.items()}


def _workspace(stage: Stage) -> Path:
    """Return the folder of the session, in the demo."""
    return stage.folder / "robin" / "projects" / "tideline"


def _ask(stage: Stage, *calls: Block) -> None:
    names = ",".join(_PREFIX + name for name in _ALL_NAMES)
    find = use("ToolSearch", query=f"select:{names}", max_results=len(_ALL_NAMES))
    stage.script.on(
        "PROMPT-MCP", _CONNECTED, [text("Searching."), find], *([call] for call in calls), [text("MCP over.")]
    )
    stage.ask("PROMPT-MCP go", *_configure(stage), allow=f"{ALL_TOOLS},ToolSearch,{names}")


@pytest.mark.since("1.0.69")
def test_the_model_receives_the_text_of_every_tool(stage: Stage) -> None:
    calls = _calls(stage)
    _ask(stage, *calls.values())
    received = {name: stage.script.results[call["id"]] for name, call in calls.items()}
    for name, result in received.items():
        words = result_text(result)
        assert not words.lstrip().startswith(("{", "[{")), f"{name} returned JSON: {words[:200]}"
        assert bool(result.get("is_error")) == (name == "get_agent_session"), f"{name}: {words[:200]}"
    for name in ("create_backup", "migrate_session", "migrate_workspace"):
        assert "plan_id" in result_text(received[name]), name
    assert "There is nothing to do." in result_text(received["restore_backup"])
    assert list((stage.folder / "target").iterdir()) == []
    for name in ("recall", "search_sessions", "get_session"):
        words = result_text(received[name])
        assert NOTICE in words and "[end of quote, mark " in words, f"{name}: {words[:200]}"
    assert "backscroll list" not in result_text(received["get_agent_session"])
    tokens = len(result_text(received["recall"])) / _MIN_CHARS_PER_TOKEN
    assert tokens <= _BUDGET_TOKENS * 1.1
    assert_agrees(stage)


@pytest.mark.since("1.0.69")
def test_recall_is_offered_without_a_search_for_tools(stage: Stage) -> None:
    stage.script.on("PROMPT-WAIT", _CONNECTED, [text("Waited.")])
    run = stage.ask("PROMPT-WAIT go", *_configure(stage))
    last = [exchange for exchange in run.exchanges if not exchange.is_own and exchange.agent is None][-1]
    assert f"{_PREFIX}recall" in {tool["name"] for tool in last.request["tools"]}


@pytest.mark.since("2.0.76")
def test_a_recall_command_passes_all_words_to_the_model(stage: Stage) -> None:
    stage.script.on("PROMPT-WAIT", _CONNECTED, [text("Waited.")])
    with stream(stage, *_configure(stage)) as running:
        running.prompt("PROMPT-WAIT go")
        running.wait_for_results(1)
        running.prompt(f"/{_PREFIX}recall should the poller use asyncio?")
        running.wait_for_results(2)
    sent = json.dumps(stage.script.exchanges[-1].request["messages"])
    assert "should the poller use asyncio?" in sent
    assert f"({_PREFIX}recall)" in sent
    if stage.version >= "2.1.0":  # 2.0 writes the title of the command in place of its name
        assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_a_session_that_moves_itself_gets_the_command_to_run_later(stage: Stage) -> None:
    target, session_id = stage.folder / "target", str(uuid4())
    target.mkdir()
    environment = {
        "BACKSCROLL_HOME": str(stage.folder / "mcp-home"),
        "BACKSCROLL_ROOTS": f"claude-code={stage.config}",
    }
    server = {"command": _COMMAND, "args": ["mcp", "--allow-writes"], "env": environment}
    config = stage.write("mcp.json", json.dumps({"mcpServers": {"backscroll": server}}))
    stage.environment["MCP_TIMEOUT"] = "60000"
    name = f"{_PREFIX}migrate_session"
    find = use("ToolSearch", query=f"select:{name}", max_results=1)
    call = use(name, refs=[session_id], target=str(target), mode="move")
    wait = use("Bash", command="sleep 1", description="wait")  # until the tool has written the transcript
    stage.script.on("PROMPT-MOVE", _CONNECTED, [text("Searching."), find, wait], [call], [text("Not moved.")])
    stage.ask(
        "PROMPT-MOVE go",
        "--session-id",
        session_id,
        "--mcp-config",
        str(config),
        allow=f"{ALL_TOOLS},ToolSearch,{name}",
    )
    answer = result_text(stage.script.results[call["id"]])
    assert "Move 1 session to " in answer and "Nothing was changed." in answer
    assert "plan_id" not in answer
    (transcript,) = stage.config.glob(f"projects/*/{session_id}.jsonl")
    (command,) = (line.partition(": ")[2] for line in answer.splitlines() if line.startswith("Then the user"))
    subprocess.run(
        [*shlex.split(command), "--yes"], env=os.environ | environment, capture_output=True, check=True
    )
    (moved,) = stage.config.glob(f"projects/*/{session_id}.jsonl")
    assert moved.parent != transcript.parent
