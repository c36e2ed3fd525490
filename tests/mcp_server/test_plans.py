"""Tools that change files return a plan first, and apply it only while it is valid."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from backscroll.history.history import History
from backscroll.mcp.tools import plans
from backscroll.mcp.tools.plans import PLAN_MINUTES, PlanStore
from backscroll.mcp.tools.registry import WRITE_TOOLS
from tests.mcp_server.server_client import McpClient
from tests.mcp_server.write_server import CLAUDE_ID, Stage, WriteClient, start_write_server


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(stage: Stage, clock: Clock) -> Iterator[WriteClient]:
    with start_write_server(stage, plans=PlanStore(clock)) as client:
        yield client


def move(stage: Stage) -> dict[str, Any]:
    return {"refs": [CLAUDE_ID], "target": str(stage.new), "mode": "move"}


def test_without_allow_writes_the_tools_are_neither_listed_nor_called(mcp_client: McpClient) -> None:
    tools = mcp_client.run(lambda client: client.list_tools()).tools
    assert not {tool.name for tool in tools} & WRITE_TOOLS.keys()
    with pytest.raises(Exception, match="needs a server that was started with --allow-writes"):
        mcp_client.call("create_backup")


def test_a_plan_changes_nothing_and_a_second_call_with_its_id_applies_it(
    client: WriteClient, stage: Stage
) -> None:
    before = stage.files()
    plan_id = client.plan("migrate_session", **move(stage))
    assert stage.files() == before
    document = client.document("migrate_session", **move(stage), plan_id=plan_id)
    assert document["status"] == "applied"
    assert document["result"]["success_count"] == 1
    assert not stage.transcripts[CLAUDE_ID].exists()


@pytest.mark.parametrize("plan_id", ["0000000000", "yes", "*"])
def test_an_unknown_id_changes_nothing_and_returns_a_new_plan(
    client: WriteClient, stage: Stage, plan_id: str
) -> None:
    before = stage.files()
    client.plan("migrate_session", **move(stage))
    document = client.document("migrate_session", **move(stage), plan_id=plan_id)
    assert (document["status"], document["reason"]) == ("planned", f"There is no plan {plan_id!r}.")
    assert stage.files() == before
    applied = client.document("migrate_session", **move(stage), plan_id=document["plan_id"])
    assert applied["status"] == "applied"


@pytest.mark.parametrize(
    ("tool", "changed"),
    [
        ("migrate_session", {"mode": "copy"}),
        ("migrate_session", {"refs": ["20000000"]}),
        ("migrate_session", {"target": "home"}),
    ],
)
def test_a_plan_is_valid_only_for_its_arguments(
    client: WriteClient, stage: Stage, tool: str, changed: dict[str, Any]
) -> None:
    before = stage.files()
    plan_id = client.plan("migrate_session", **move(stage))
    if "target" in changed:
        changed = {"target": str(stage.folder / changed["target"])}
    document = client.document(tool, **(move(stage) | changed), plan_id=plan_id)
    assert document["status"] == "planned"
    assert "was made for another tool or for other arguments" in document["reason"]
    assert document["plan_id"] != plan_id
    assert stage.files() == before


def test_a_plan_is_valid_only_for_its_tool(client: WriteClient, stage: Stage) -> None:
    plan_id = client.plan("migrate_session", **move(stage))
    document = client.document("create_backup", plan_id=plan_id)
    assert (document["status"], "another tool" in document["reason"]) == ("planned", True)
    assert not (stage.home / "backups").exists()


def test_a_plan_expires(client: WriteClient, stage: Stage, clock: Clock) -> None:
    before = stage.files()
    plan_id = client.plan("migrate_session", **move(stage))
    clock.now = PLAN_MINUTES * 60
    document = client.document("migrate_session", **move(stage), plan_id=plan_id)
    assert (document["status"], "has expired" in document["reason"]) == ("planned", True)
    assert stage.files() == before
    clock.now += PLAN_MINUTES * 60 - 1
    applied = client.document("migrate_session", **move(stage), plan_id=document["plan_id"])
    assert applied["status"] == "applied"


@pytest.mark.parametrize("mode", ["copy", "move"])
def test_a_plan_is_refused_if_the_session_has_changed_since(
    client: WriteClient, stage: Stage, mode: str
) -> None:
    arguments = move(stage) | {"mode": mode}
    plan_id = client.plan("migrate_session", **arguments)
    transcript = stage.transcripts[CLAUDE_ID]
    transcript.write_bytes(transcript.read_bytes() + b"{}\n")
    before = stage.files()
    document = client.document("migrate_session", **arguments, plan_id=plan_id)
    assert document["reason"] == f"{transcript} has changed since plan {plan_id} was made."
    assert stage.files() == before
    applied = client.document("migrate_session", **arguments, plan_id=document["plan_id"])
    assert applied["result"]["success_count"] == 1


def test_prompts_that_the_user_types_meanwhile_do_not_invalidate_a_plan(
    client: WriteClient, stage: Stage
) -> None:
    """Claude Code appends every prompt to history.jsonl, also the one with which the user agrees."""
    plan_id = client.plan("migrate_session", **move(stage))
    with (stage.claude / "history.jsonl").open("a") as file:
        file.write('{"display": "yes, do it", "timestamp": 2}\n')
    document = client.document("migrate_session", **move(stage), plan_id=plan_id)
    assert document["status"] == "applied"


def test_a_program_that_only_reads_a_database_does_not_invalidate_a_plan(
    client: WriteClient, stage: Stage
) -> None:
    arguments = {"refs": [stage.cursor_ref()], "target": str(stage.new)}
    plan_id = client.plan("migrate_session", **arguments)
    database = stage.cursor / "User" / "globalStorage" / "state.vscdb"
    with closing(sqlite3.connect(database)) as reader:
        reader.execute("pragma journal_mode").fetchone()
        reader.execute("select count(*) from ItemTable").fetchone()
        document = client.document("migrate_session", **arguments, plan_id=plan_id)
    assert document["status"] == "applied"


def test_a_database_that_stays_locked_is_named_with_its_code(client: WriteClient, stage: Stage) -> None:
    arguments = {"refs": [stage.cursor_ref()], "target": str(stage.new)}
    plan_id = client.plan("migrate_session", **arguments)
    database = stage.cursor / "User" / "globalStorage" / "state.vscdb"
    before = stage.files()
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("begin exclusive")
        document = client.document("migrate_session", **arguments, plan_id=plan_id)
    assert document["status"] == "failed"
    (error,) = document["result"]["errors"]
    assert error["code"] == "locked", error
    assert {name: content for name, content in stage.files().items() if name in before} == before
    # When the database is no longer locked, the same plan is applied.
    assert client.document("migrate_session", **arguments, plan_id=plan_id)["status"] == "applied"


def test_a_plan_is_applied_once_and_its_result_can_be_read_again(
    client: WriteClient, stage: Stage, clock: Clock
) -> None:
    arguments = move(stage) | {"mode": "copy"}
    plan_id = client.plan("migrate_session", **arguments)
    first = client.document("migrate_session", **arguments, plan_id=plan_id)
    clock.now = PLAN_MINUTES * 60
    after = stage.files()
    assert client.document("migrate_session", **arguments, plan_id=plan_id) == first
    assert stage.files() == after


def test_a_plan_that_is_being_applied_is_not_applied_again(
    client: WriteClient, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, proceed = Event(), Event()
    create_backup = History.create_backup

    def wait(history: History, *arguments: Any, **options: Any) -> Any:
        started.set()
        assert proceed.wait(20)
        return create_backup(history, *arguments, **options)

    monkeypatch.setattr(History, "create_backup", wait)
    plan_id = client.plan("create_backup")
    results: list[Any] = []
    thread = Thread(target=lambda: results.append(client.document("create_backup", plan_id=plan_id)))
    thread.start()
    assert started.wait(20)
    assert client.document("create_backup", plan_id=plan_id)["status"] == "running"
    proceed.set()
    thread.join(20)
    assert results[0]["status"] == "applied"
    assert client.document("create_backup", plan_id=plan_id) == results[0]
    assert len(list((stage.home / "backups").iterdir())) == 1


def test_a_plan_that_failed_can_be_applied_again(
    client: WriteClient, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_id = client.plan("create_backup")
    (stage.home / "backups").write_text("in the way")
    error = client.error("create_backup", plan_id=plan_id)
    assert (error["type"], error["name"]) == ("backup", "BackupError")
    (stage.home / "backups").unlink()
    assert client.document("create_backup", plan_id=plan_id)["status"] == "applied"


def test_only_the_newest_plans_are_kept(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MAX_PLANS", 2)
    with start_write_server(stage) as client:
        oldest, *others = [client.plan("create_backup") for _ in range(3)]
        reason = client.document("create_backup", plan_id=oldest)["reason"]
        assert reason == f"There is no plan {oldest!r}."
        assert client.document("create_backup", plan_id=others[-1])["status"] == "applied"


def test_a_plan_is_text_with_the_next_step_by_default(stage: Stage) -> None:
    with start_write_server(stage, is_structured=False) as client:
        text = client.text("migrate_session", **move(stage))
    assert f"Move 1 session to {stage.new}" in text
    assert f"delete {stage.transcripts[CLAUDE_ID]}" in text
    assert "call migrate_session again with the same arguments and plan_id=" in text.splitlines()[-1]
