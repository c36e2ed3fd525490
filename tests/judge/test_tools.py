"""Tool calls, their results and the decisions on them."""

import json
import sys
from pathlib import Path

import pytest

from tests.judge import mcp_server
from tests.judge.blocks import text, think, use
from tests.judge.comparison import assert_agrees
from tests.judge.expectation import result_text
from tests.judge.script import WaitForTool
from tests.judge.stage import ALL_TOOLS, Stage

_NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "id": "c1",
            "metadata": {},
            "source": ["print(1)"],
            "outputs": [],
            "execution_count": None,
        }
    ],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_calls_of_all_tools_are_read_with_their_results(stage: Stage) -> None:
    file, notebook = str(stage.workspace / "a.txt"), str(stage.workspace / "nb.ipynb")
    stage.write("a.txt", "alpha\nbeta\ngamma\n")
    stage.write("nb.ipynb", json.dumps(_NOTEBOOK))
    stage.write("CLAUDE.md", "Project rule: be terse.\n")
    stage.init_repository()
    edits = [{"old_string": "alpha", "new_string": "ALPHA"}, {"old_string": "gamma", "new_string": "GAMMA"}]
    todos = [{"content": "boil", "status": "in_progress", "activeForm": "Boiling"}]
    long_output = use("Bash", command="seq 1 12000", description="long")
    stage.script.on(
        "PROMPT-TOOLS",
        [think("Let me ponder."), text("First I read."), use("Read", file_path=file)],
        [use("Edit", file_path=file, old_string="beta", new_string="BETA")],
        [use("Write", file_path=str(stage.workspace / "new.txt"), content="one\ntwo\n")],
        [use("MultiEdit", file_path=file, edits=edits)],
        [use("Read", file_path=notebook)],
        [use("NotebookEdit", notebook_path=notebook, cell_id="c1", new_source="print(2)")],
        [
            text("Now three at once."),
            use("Glob", pattern="*.txt"),
            use("Grep", pattern="BETA", output_mode="content"),
            use("Bash", command="echo parallel-$((1+1))", description="echo"),
        ],
        [use("Bash", command="echo oops >&2; exit 3", description="fail")],
        [long_output],
        [use("Bash", command="sleep 1; echo bgdone", description="bg", run_in_background=True)],
        [use("TodoWrite", todos=todos)],
        [use("TaskCreate", subject="Brew", description="Brew tea", activeForm="Brewing")],
        [use("WebFetch", url="http://example.invalid/x", prompt="what")],
        [use("Read", file_path=str(stage.workspace / "missing.txt"))],
        [use("NoSuchTool", x=1)],
        [use("Edit", file_path=file, old_string="not there", new_string="y")],
        [use("Read", wrong=1)],
        [think("Final musing."), text("All done with the tools.")],
    )
    first = stage.ask("PROMPT-TOOLS please")
    stage.ask("Second prompt zebra", resume=first)
    assert_agrees(stage)


def test_denied_calls_are_neither_failures_nor_decisions_of_the_user(stage: Stage) -> None:
    stage.settings(permissions={"deny": ["Bash(rm:*)"]})
    touch = use("Bash", command="touch forbidden", description="x")
    write = use("Write", file_path=str(stage.workspace / "forbidden.txt"), content="x")
    remove = use("Bash", command="rm -rf precious", description="x")
    stage.script.on(
        "PROMPT-DENY", [text("I try."), touch], [write], [remove], [text("All of it was denied.")]
    )
    for call in (touch, write, remove):
        stage.expect(call, status="cancelled", decision=None)
    stage.ask("PROMPT-DENY go", allow="")
    assert_agrees(stage)


def test_questions_that_no_user_can_answer_are_cancelled(stage: Stage) -> None:
    plan = use("ExitPlanMode", plan="# The plan\n1. Boil\n2. Pour")
    options = [{"label": "Green", "description": "g"}, {"label": "Black", "description": "b"}]
    question = {"question": "Which tea?", "header": "Tea", "multiSelect": False, "options": options}
    ask = use("AskUserQuestion", questions=[question])
    stage.script.on("PROMPT-PLAN", [text("Planning."), plan], [text("The plan was presented.")])
    stage.script.on("PROMPT-ASK", [ask], [text("No answer.")])
    stage.ask("PROMPT-PLAN please", "--permission-mode", "plan", allow="")
    stage.ask("PROMPT-ASK please", allow="")
    offered = {tool["name"] for each in stage.script.exchanges for tool in each.request.get("tools", [])}
    for call in (plan, ask):
        if call["name"] in offered and stage.script.results[call["id"]].get("is_error"):
            stage.expect(call, status="cancelled", decision=None)
    assert_agrees(stage)


@pytest.mark.since("1.0.69")
def test_results_of_mcp_tools_are_read(stage: Stage) -> None:
    server = {"command": sys.executable, "args": [mcp_server.__file__]}
    path = stage.write("mcp.json", json.dumps({"mcpServers": {"kettle": server}}))
    names = [f"mcp__kettle__{name}" for name in ("boil", "spill", "fail")]
    boil, spill, fail = map(use, names)
    find = use("ToolSearch", query=f"select:{','.join(names)}", max_results=3)
    wait = WaitForTool(names[0])  # not all versions wait for the server
    stage.script.on("PROMPT-KETTLE", wait, [find], [boil], [spill], [fail], [text("The kettle is off.")])
    stage.ask("PROMPT-KETTLE go", "--mcp-config", str(path), allow=",".join([ALL_TOOLS, *names]))
    assert "The water boils." in result_text(stage.script.results[boil["id"]])
    assert_agrees(stage)


@pytest.mark.since("2.1.269")
def test_files_that_a_shell_command_changed_are_edits(stage: Stage) -> None:
    stage.settings(bashEditDiffEnabled=True)  # the default depends on mode and version
    stage.write("a.txt", "alpha\nbeta\ngamma\n")
    stage.write("gone.txt", "one\ntwo\n")
    stage.write("old.bin", b"\0\1")
    stage.init_repository()
    stage.git("add", "--all")
    stage.git("commit", "-q", "-m", "y")
    first = "sed -i s/beta/BETA/ a.txt; printf '1\\n2\\n' > new.txt; rm gone.txt; printf '\\0\\2' > old.bin"
    many = "for name in 1 2 3 4 5 6; do echo x > many$name.txt; done"
    commands = [first, many, "echo x > failed.txt; exit 3", "cat a.txt"]
    calls = [use("Bash", command=command, description="x") for command in commands]
    stage.script.on("PROMPT-SHELL", *([call] for call in calls), [text("All changed.")])
    run = stage.ask("PROMPT-SHELL go")
    with stage.history() as history:
        tools = {each.tool.id: each.tool for each in history.get_session(run.id).messages if each.tool}
    edits = [
        {(Path(edit.path).name, edit.kind, edit.added, edit.removed) for edit in tools[call["id"]].edits}
        for call in calls
    ]
    changed = {("a.txt", "update", 1, 1), ("new.txt", "create", 2, 0), ("gone.txt", "delete", 0, 2)}
    created = {(f"many{number}.txt", "create", 1, 0) for number in range(1, 6)}
    # Only five files have their lines. A command that failed has none.
    assert edits[0] == changed | {("old.bin", "update", 0, 0)}
    assert edits[1] == created | {("many6.txt", "update", 0, 0)}
    assert edits[2:] == [set(), set()]
    assert_agrees(stage)


def test_long_results_are_read_from_their_files(stage: Stage) -> None:
    for number in range(8):
        lines = "".join(f"line {number} {index} {'x' * 60}\n" for index in range(600))
        stage.write(f"big{number}.txt", lines)
    calls = [use("Bash", command=f"head -c 29000 big{number}.txt", description="x") for number in range(8)]
    agent = use(stage.agent_tool, description="Long", prompt="SUB-LONG run", subagent_type="general-purpose")
    wait = use("Bash", command="python3 -c 'import time; time.sleep(3)'", description="wait")
    stage.script.on("PROMPT-LONG", [text("Many."), *calls], [agent], [wait], [text("Long results over.")])
    stage.script.on_agent(
        "SUB-LONG", [use("Bash", command="seq 1 15000", description="x")], [text("The long agent is done.")]
    )
    stage.ask("PROMPT-LONG go")
    assert_agrees(stage)
