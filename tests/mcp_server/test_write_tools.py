"""The tools that create, check and restore backups, and move and copy sessions."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backscroll.mcp.call import ServerOptions
from backscroll.mcp.server import tool_list
from backscroll.mcp.tools.registry import WRITE_TOOLS
from backscroll.sources.claude_code.workspace import project_key
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_running_process
from tests.mcp_server.server_client import COMMAND, environment, start_stdio_server
from tests.mcp_server.write_server import CLAUDE_ID, OTHER_ID, Stage, WriteClient, start_write_server

GOLDEN = Path(__file__).parent.parent / "golden" / "mcp" / "write_tools.json"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def client(stage: Stage) -> Iterator[WriteClient]:
    with start_write_server(stage) as client:
        yield client


# Definitions


def definitions() -> list[dict[str, Any]]:
    options = ServerOptions(allow_writes=True, is_structured=True)
    return [
        tool.model_dump(by_alias=True, exclude_none=True, mode="json")
        for tool in tool_list(options)
        if tool.name in WRITE_TOOLS
    ]


def test_the_schemas_match_the_golden_file(update_golden: bool) -> None:
    if update_golden:
        GOLDEN.write_text(json.dumps(definitions(), indent=1) + "\n", encoding="utf-8")
    assert definitions() == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_annotations_say_what_a_tool_may_change() -> None:
    hints = {
        tool["name"]: tuple(
            tool["annotations"][name] for name in ("readOnlyHint", "destructiveHint", "idempotentHint")
        )
        for tool in definitions()
    }
    assert hints == {
        "create_backup": (False, False, False),
        "validate_backup": (True, False, True),
        "restore_backup": (False, True, True),
        "restore_session": (False, True, True),
        "migrate_session": (False, True, False),
        "migrate_workspace": (False, True, False),
        "journal_write_entry": (False, False, True),
        "journal_add_reflection": (False, False, False),
        "journal_capture_context": (False, False, False),
    }


def test_the_definitions_are_short() -> None:
    assert sum(
        len(tool["description"]) + len(json.dumps(tool["inputSchema"], separators=(",", ":")))
        for tool in definitions()
    ) <= 7500  # fmt: skip


# Backups


def test_a_backup_is_created_and_is_valid(client: WriteClient, stage: Stage) -> None:
    result = client.apply("create_backup")
    path = Path(result["backup_path"])
    assert path.parent == stage.home / "backups"
    assert result["manifest"]["stats"]["session_count"] == 3
    document = client.document("validate_backup", path=str(path))
    assert (document["status"], document["files"]) == ("valid", [])
    assert document["file_count"] == result["manifest"]["file_count"]


def test_only_the_folder_beside_the_archive_is_created(client: WriteClient, stage: Stage) -> None:
    path = stage.folder / "disk" / "backups" / "one.zip"
    error = client.error("create_backup", path=str(path))
    assert error["message"] == f"There is no folder {path.parent}."
    assert not path.parent.parent.exists()
    assert f"creates the folder {stage.home / 'backups'}" in client.text("create_backup")
    assert Path(client.apply("create_backup")["backup_path"]).is_file()


def test_an_incremental_backup_names_its_base(client: WriteClient, stage: Stage) -> None:
    base = client.apply("create_backup")["backup_path"]
    (base_needed,) = client.apply("create_backup", base=base)["manifest"]["bases"]
    assert base_needed["name"] == Path(base).name


@pytest.mark.parametrize(
    ("arguments", "session_count"),
    [({"source": "cursor"}, 1), ({"refs": [CLAUDE_ID]}, 1), ({"workspace": "ferry"}, 2)],
)
def test_a_backup_of_some_sessions_contains_only_these(
    client: WriteClient, arguments: dict[str, Any], session_count: int
) -> None:
    planned = client.document("create_backup", **arguments)
    assert planned["plan"]["stats"]["session_count"] == session_count
    manifest = client.apply("create_backup", **arguments)["manifest"]
    assert manifest["is_filtered"] and len(manifest["sessions"]) == session_count


def test_a_backup_of_no_session_is_refused(client: WriteClient) -> None:
    assert client.error("create_backup", refs=["ffff"])["type"] == "session_not_found"
    assert client.error("create_backup", workspace="nowhere")["type"] == "workspace_not_found"
    assert client.error("create_backup", source="cursor-cli")["type"] == "invalid_arguments"


def test_an_existing_file_is_never_replaced_by_a_backup(client: WriteClient, stage: Stage) -> None:
    path = stage.folder / "one.zip"
    plan_id = client.plan("create_backup", path=str(path))
    path.write_text("mine")
    for arguments in ({}, {"plan_id": plan_id}):
        error = client.error("create_backup", path=str(path), **arguments)
        assert (error["type"], error["message"]) == ("backup", f"{path} exists.")
        assert "--" not in error["next"]
    assert path.read_text() == "mine"


def test_a_damaged_backup_is_invalid_and_names_the_file(client: WriteClient) -> None:
    path = Path(client.apply("create_backup")["backup_path"])
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0xFF
    path.write_bytes(data)
    document = client.document("validate_backup", path=str(path))
    assert document["status"] == "invalid"
    assert document["files"] or document["problems"]
    assert "Damaged files cannot be restored" in document["hints"][-1]


def test_a_missing_or_foreign_file_is_not_a_backup(client: WriteClient, stage: Stage) -> None:
    foreign = stage.folder / "foreign.zip"
    foreign.write_bytes(b"PK nothing")
    for path in (stage.folder / "none.zip", foreign):
        document = client.document("validate_backup", path=str(path))
        assert (document["status"], document["hints"]) == (
            "invalid",
            ["It cannot be restored. Check the path."],
        )
        error = client.error("restore_backup", path=str(path))
        assert (error["type"], error["name"]) == ("invalid_backup", "InvalidBackupError")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("create_backup", {"path": "one.zip"}),
        ("validate_backup", {"path": "one.zip"}),
        ("restore_backup", {"path": "one.zip"}),
        ("restore_backup", {"path": "/one.zip", "maps": ["/home"]}),
        ("migrate_session", {"refs": ["1"], "target": "boat"}),
        ("migrate_workspace", {"workspace": "ferry", "target": "/boat"}),
    ],
)
def test_paths_must_be_absolute(client: WriteClient, tool: str, arguments: dict[str, Any]) -> None:
    error = client.error(tool, **arguments)
    assert error["type"] == "invalid_arguments"
    assert "is not" in error["message"]


def test_a_lost_session_is_restored_from_a_backup(client: WriteClient, stage: Stage) -> None:
    path = client.apply("create_backup")["backup_path"]
    before = stage.files()
    stage.transcripts[CLAUDE_ID].unlink()
    result = client.apply("restore_backup", path=path, refs=[CLAUDE_ID])
    assert (result["files_restored"], result["sessions_restored"]) == (1, 1)
    assert stage.files() == before
    with stage.history() as history:
        assert history.list_changes()[0].id == result["change_id"]


def test_files_that_differ_are_kept_unless_force(client: WriteClient, stage: Stage) -> None:
    path = client.apply("create_backup")["backup_path"]
    transcript = stage.transcripts[CLAUDE_ID]
    content = transcript.read_bytes()
    transcript.write_bytes(content + b"{}\n")
    yesterday = time.time() - 86400
    os.utime(transcript, (yesterday, yesterday))
    document = client.document("restore_backup", path=path, refs=[CLAUDE_ID])
    assert document["status"] == "nothing_to_do"
    assert "force=true replaces them" in document["hints"][0]
    assert client.apply("restore_backup", path=path, refs=[CLAUDE_ID], force=True)["files_restored"] == 1
    assert transcript.read_bytes() == content


def test_a_restore_is_refused_if_a_target_appeared_since(client: WriteClient, stage: Stage) -> None:
    path = client.apply("create_backup")["backup_path"]
    transcript = stage.transcripts[CLAUDE_ID]
    transcript.unlink()
    plan_id = client.plan("restore_backup", path=path)
    transcript.write_text("{}\n")
    document = client.document("restore_backup", path=path, plan_id=plan_id)
    assert document["reason"] == f"{transcript} has changed since plan {plan_id} was made."
    assert transcript.read_text() == "{}\n"


def test_files_are_restored_to_another_folder(client: WriteClient, stage: Stage) -> None:
    path = client.apply("create_backup")["backup_path"]
    other = stage.folder / "other"
    arguments = {"path": path, "source": "claude-code", "maps": [f"{stage.claude}={other}"]}
    assert client.apply("restore_backup", **arguments)["sessions_restored"] == 2
    name = stage.transcripts[CLAUDE_ID].relative_to(stage.claude)
    assert (other / name).read_bytes() == stage.transcripts[CLAUDE_ID].read_bytes()


def test_a_file_that_was_just_written_is_not_replaced(client: WriteClient, stage: Stage) -> None:
    path = client.apply("create_backup")["backup_path"]
    with stage.transcripts[CLAUDE_ID].open("ab") as file:
        file.write(b"{}\n")
    before = stage.files()
    arguments = {"path": path, "source": "claude-code", "force": True}
    document = client.document("restore_backup", **arguments)
    assert document["status"] == "blocked" and "plan_id" not in document
    assert "within the last ten minutes" in document["reason"]
    restore = ["backup", "restore", path, "--source", "claude-code", "--force"]
    assert shlex.split(document["command"]) == ["backscroll", "--home", str(stage.home), *restore]
    assert stage.files() == before


def test_the_archive_of_the_server_itself_is_not_replaced(client: WriteClient, stage: Stage) -> None:
    path = client.apply("create_backup")["backup_path"]
    session = Transcript(session_id="30000000-0000-4000-8000-000000000003", cwd=str(stage.old))
    session.user("A new one").assistant("Yes.").write(stage.claude)
    with stage.history() as history:
        history.sync()
    document = client.document("restore_backup", path=path, force=True)
    assert document["status"] == "nothing_to_do"
    with stage.history() as history:
        assert session.session_id in {one.id for one in history.all_sessions()}


# Deleted sessions


def test_deleted_sessions_are_restored_and_the_restore_can_be_undone(
    client: WriteClient, stage: Stage
) -> None:
    before = stage.files()
    for path in stage.transcripts.values():
        path.unlink()
    assert client.error("restore_session", source="cursor")["message"] == "No session matches."
    planned = client.document("restore_session", workspace="ferry")
    assert (planned["plan"]["session_count"], planned["plan"]["kept_count"]) == (2, 0)
    result = client.apply("restore_session", workspace="ferry")
    assert {ref.partition(":")[2] for ref in result["restored"]} == {CLAUDE_ID, OTHER_ID}
    assert stage.files() == before
    with stage.history() as history:
        assert history.list_changes()[0].id == result["change_id"]
        history.undo_change()
    assert not any(path.exists() for path in stage.transcripts.values())
    assert len(client.apply("restore_session", refs=[CLAUDE_ID])["restored"]) == 1


def test_a_session_that_cannot_be_restored_is_named(client: WriteClient, stage: Stage) -> None:
    shutil.rmtree(stage.claude)
    document = client.document("restore_session", refs=[CLAUDE_ID])
    assert document["status"] == "nothing_to_do"
    assert [(one["session_id"], one["code"]) for one in document["plan"]["errors"]] == [
        (CLAUDE_ID, "not-archived")
    ]
    assert client.error("restore_session", refs=["ffff"])["name"] == "SessionNotFoundError"


# Moves and copies


def test_a_workspace_is_moved_and_the_move_can_be_undone(client: WriteClient, stage: Stage) -> None:
    before = stage.files()
    result = client.apply("migrate_workspace", workspace=str(stage.old), target=str(stage.new), mode="move")
    assert (result["success_count"], result["failed_count"]) == (2, 0)
    folder = stage.claude / "projects" / project_key(str(stage.new))
    assert {path.stem for path in folder.glob("*.jsonl")} == {CLAUDE_ID, OTHER_ID}
    with stage.history() as history:
        history.undo_change()
    assert stage.files() == before


def test_the_ids_of_copies_are_those_of_the_plan(client: WriteClient, stage: Stage) -> None:
    arguments = {"refs": [CLAUDE_ID], "target": str(stage.new)}
    planned = client.document("migrate_session", **arguments)
    document = client.document("migrate_session", **arguments, plan_id=planned["plan_id"])
    (copied,) = document["result"]["sessions"]
    assert copied["new_ref"] == planned["plan"]["sessions"][0]["new_ref"]
    assert f"undo {copied['change_id']}" in document["hints"][0]
    with stage.history() as history:
        assert history.find(copied["new_ref"]).workspace_path == str(stage.new)


def test_sessions_that_cannot_be_moved_are_named_with_a_code(client: WriteClient, stage: Stage) -> None:
    document = client.document("migrate_session", refs=[CLAUDE_ID], target=str(stage.old))
    assert document["status"] == "nothing_to_do"
    (error,) = document["plan"]["errors"]
    assert (error["session_id"], error["code"]) == (CLAUDE_ID, "same-folder")


@pytest.mark.parametrize(
    ("tool", "arguments", "name"),
    [
        ("migrate_session", {"refs": ["ffff"]}, "SessionNotFoundError"),
        ("migrate_session", {"target": "/no/such/folder"}, "DestinationError"),
        ("migrate_workspace", {"workspace": "/no/such/folder"}, "WorkspaceNotFoundError"),
    ],
)
def test_errors_have_the_names_of_the_library(
    client: WriteClient, stage: Stage, tool: str, arguments: dict[str, Any], name: str
) -> None:
    subject: dict[str, Any] = {"refs": [CLAUDE_ID]}
    if tool == "migrate_workspace":
        subject = {"workspace": str(stage.old)}
    error = client.error(tool, **(subject | {"target": str(stage.new)} | arguments))
    assert error["name"] == name
    assert error["next"]


# Called from the tool itself


def write_live_session(stage: Stage) -> Transcript:
    now = datetime.now(UTC) - timedelta(minutes=1)
    session = Transcript(session_id=CLAUDE_ID, cwd=str(stage.old), start=now)
    session.user("Move this session").assistant("I ask Backscroll.").write(stage.claude)
    return session


@pytest.mark.parametrize(("program", "status"), [("claude-code", "blocked"), ("some-editor", "planned")])
def test_a_session_in_use_is_not_changed_by_its_own_tool(stage: Stage, program: str, status: str) -> None:
    """Claude Code before 2.1.139 has no registry of running sessions."""
    write_live_session(stage)
    arguments = {"refs": [CLAUDE_ID], "target": str(stage.new), "mode": "move"}
    with start_write_server(stage, client=program) as client:
        document = client.document("migrate_session", **arguments)
        other = client.document("migrate_session", **(arguments | {"refs": [OTHER_ID]}))
    assert document["status"] == status
    assert other["status"] == "planned"
    if status == "blocked":
        assert "may be the session that calls" in document["reason"]
        assert shlex.split(document["command"]) == [
            "backscroll", "--home", str(stage.home), "migrate", f"claude-code:{CLAUDE_ID}",
            "--to", str(stage.new), "--mode", "move",
        ]  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_session_that_is_open_by_the_registry_is_not_changed(client: WriteClient, stage: Stage) -> None:
    started = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    write_running_process(stage.claude, write_live_session(stage), os.getpid(), started=started)
    before = stage.files()
    document = client.document("migrate_session", refs=[CLAUDE_ID], target=str(stage.new))
    assert document["status"] == "blocked"
    assert document["reason"].startswith(f"Process {os.getpid()} has the session {CLAUDE_ID} open.")
    assert document["plan"]["session_count"] == 1
    assert stage.files() == before


@pytest.mark.skipif(sys.platform != "linux", reason="copies a Linux program")
def test_cursor_as_the_client_gets_the_plan_and_the_command_to_run_later(stage: Stage) -> None:
    cursor = stage.folder / "Cursor"
    shutil.copy("/bin/sh", cursor)
    database = stage.cursor / "User" / "globalStorage" / "state.vscdb"
    ref = stage.cursor_ref()
    script = (
        f"exec 9<{shlex.quote(str(database))}; {shlex.quote(COMMAND)} mcp --structured --allow-writes; true"
    )
    before = stage.files()
    environ = environment(stage.home, stage.roots)
    with start_stdio_server(environ, command=(str(cursor), "-c", script)) as client:
        document = client.document("migrate_session", refs=[ref], target=str(stage.new))
        other = client.document("migrate_session", refs=[CLAUDE_ID], target=str(stage.new))
    assert document["status"] == "blocked"
    assert document["reason"].startswith("Cursor is running (process ")
    assert document["plan"]["session_count"] == 1
    assert stage.files() == before
    assert other["status"] == "planned"
    # With Cursor closed, the command works as it was given.
    done = subprocess.run(
        [*shlex.split(document["command"]), "--yes"],
        env=os.environ | environ,
        capture_output=True,
        check=True,
    )
    assert b"Copied cursor:" in done.stdout
