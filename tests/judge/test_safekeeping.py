"""Sessions that were restored, moved or copied: the tool resumes them with the same conversation."""

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.judge.blocks import Block, text, use
from tests.judge.comparison import assert_agrees, differences
from tests.judge.safekeeping import (
    Safekeeping,
    conversation_of,
    expected_conversation,
    files_below,
    make_session,
)
from tests.judge.stage import Stage

_RECENT_SECONDS = 600
_EXPIRED_SECONDS = 40 * 24 * 3600  # the tool keeps sessions for 30 days


def _delete_sessions(stage: Stage) -> None:
    """Delete all files of sessions, as the tool does after its retention period."""
    for name in ("projects", "tasks", "todos", "file-history"):
        shutil.rmtree(stage.config / name, ignore_errors=True)


def _target(stage: Stage) -> Path:
    target = stage.folder / "elsewhere"
    shutil.copytree(stage.workspace, target)
    stage.trust(target)
    return target


def test_a_deleted_session_is_resumed_after_it_was_restored(stage: Stage) -> None:
    session = make_session(stage)
    expected = expected_conversation(stage, session)
    keeping = Safekeeping(stage)
    keeping.run("sync")
    before = files_below(stage.config)
    _delete_sessions(stage)
    keeping.run("restore-session", session.id, "--yes")
    assert files_below(stage.config) == before
    for path in stage.config.glob("projects/**/*"):
        assert time.time() - path.stat().st_mtime < _RECENT_SECONDS
    resumed = stage.ask("Which kettle was it?", resume=session)
    assert conversation_of(resumed) == expected
    assert_agrees(stage)


def test_a_session_is_resumed_after_a_restore_into_a_home_that_was_used_since(
    stage: Stage, tmp_path: Path
) -> None:
    session = make_session(stage)
    expected = expected_conversation(stage, session)
    keeping, backup = Safekeeping(stage), stage.folder / "history.zip"
    keeping.run("backup", "create", "-o", str(backup))
    _delete_sessions(stage)
    since = stage.ask("Which tea was it?")  # the tool writes its files again
    used = files_below(stage.config)
    # From the archive, with a filter; then from a backup, with a new archive as on another machine.
    restored = keeping.run("restore-session", "--gone", "--yes")
    assert restored["restored"] == [f"claude-code:{session.id}"]
    keeping.run("undo", "--yes")
    assert files_below(stage.config) == used
    keeping.home = tmp_path / "archive"
    keeping.run("backup", "restore", str(backup), "--yes")
    after = files_below(stage.config)
    assert {name: after[name] for name in used} == used
    assert len(after) > len(used)
    resumed = stage.ask("Which kettle was it?", resume=session)
    assert conversation_of(resumed) == expected
    again = stage.ask("And which cup?", resume=since)
    assert "Which tea was it?" in json.dumps(conversation_of(again))


def test_a_copied_session_is_resumed_in_the_new_folder(stage: Stage) -> None:
    session = make_session(stage)
    expected = expected_conversation(stage, session)
    keeping = Safekeeping(stage)
    figures, before, target = keeping.figures(), files_below(stage.config), _target(stage)
    copied = keeping.run("migrate", session.id, "--to", str(target), "--yes")
    after = files_below(stage.config)
    assert {name: after[name] for name in before} == before
    assert keeping.figures() == figures
    new_id = copied["data"][0]["new_ref"].removeprefix("claude-code:")
    resumed = stage.ask("Which kettle was it?", "--resume", new_id, folder=target)
    assert conversation_of(resumed) == expected
    copies = {
        f"session was not scripted: {new_id!r}",  # before 2.0, the resumed session is another one
        f"{new_id[:8]} agent was not scripted: 'SUB-SPOON count'",
    }
    assert set(differences(stage)) <= copies


def test_a_moved_session_is_resumed_in_the_new_folder(stage: Stage) -> None:
    session = make_session(stage)
    expected = expected_conversation(stage, session)
    keeping = Safekeeping(stage)
    figures, target = keeping.figures(), _target(stage)
    keeping.run("migrate", session.id, "--to", str(target), "--mode", "move", "--yes")
    assert keeping.figures() == figures
    shutil.rmtree(stage.workspace)
    resumed = stage.ask("Which kettle was it?", "--continue", folder=target)
    assert conversation_of(resumed) == expected
    assert_agrees(stage)


def test_an_undone_move_leaves_the_session_as_it_was(stage: Stage) -> None:
    session = make_session(stage)
    expected = expected_conversation(stage, session)
    keeping = Safekeeping(stage)
    keeping.run("sync")
    before = files_below(stage.config)
    keeping.run("migrate", session.id, "--to", str(_target(stage)), "--mode", "move", "--yes")
    keeping.run("undo", "--yes")
    assert files_below(stage.config) == before
    resumed = stage.ask("Which kettle was it?", resume=session)
    assert conversation_of(resumed) == expected
    assert_agrees(stage)


def test_a_session_is_resumed_on_another_machine_after_a_mapped_restore(stage: Stage, tmp_path: Path) -> None:
    session = make_session(stage)
    expected = expected_conversation(stage, session)
    backup = stage.folder / "history.zip"
    Safekeeping(stage).run("backup", "create", "-o", str(backup))
    shutil.copytree(stage.workspace, tmp_path / "work")
    shutil.rmtree(stage.workspace)
    shutil.rmtree(stage.config)
    maps = f"{stage.folder}={tmp_path}"
    stage.config, stage.workspace = tmp_path / "config", tmp_path / "work"
    keeping = Safekeeping(stage)
    keeping.home = tmp_path / "archive"
    stage.config.mkdir()
    stage.trust(stage.workspace)
    keeping.run("backup", "restore", str(backup), "--map", maps, "--yes")
    resumed = stage.ask("Which kettle was it?", resume=session)
    assert conversation_of(resumed) == expected
    assert_agrees(stage)


def test_a_session_that_the_tool_deleted_is_restored_and_stays(stage: Stage) -> None:
    session = stage.ask("First prompt avocet")
    (transcript,) = [path for path in stage.transcripts() if path.stem == session.id]
    keeping = Safekeeping(stage)
    keeping.run("sync")
    before = transcript.read_bytes()
    old = time.time() - _EXPIRED_SECONDS
    os.utime(transcript, (old, old))
    nap = use("Bash", command=f"sleep {_clean_up_seconds(stage)}", description="nap")
    stage.script.on("PROMPT-NAP", [nap], [text("Nap over.")])
    stage.ask("PROMPT-NAP one")
    assert transcript.exists() != _cleans_up(stage)
    transcript.unlink(missing_ok=True)
    keeping.run("restore-session", session.id, "--yes")
    assert transcript.read_bytes() == before
    (stage.config / ".last-cleanup").unlink(missing_ok=True)  # at most one clean-up per day
    resumed = stage.ask("PROMPT-NAP two", resume=session)
    assert "First prompt avocet" in json.dumps(conversation_of(resumed))
    assert transcript.read_bytes().startswith(before)
    assert_agrees(stage)


def _cleans_up(stage: Stage) -> bool:
    """Return whether a run with ``-p`` deletes expired sessions. Versions between do so after ten minutes."""
    return stage.version < "2.1.0" or stage.version >= "2.1.282"


def _clean_up_seconds(stage: Stage) -> int:
    """Return how long a run must take so that the tool cleans up."""
    return 8 if stage.version >= "2.1.282" else 2


@pytest.mark.since("2.0.76")  # before, a resumed session is a new file
@pytest.mark.parametrize("cut_bytes", [1, 40], ids=["newline", "half a line"])
def test_a_session_without_its_end_is_restored_to_whole_lines(stage: Stage, cut_bytes: int) -> None:
    session = stage.ask("First prompt avocet")
    stage.ask("Second prompt bittern", resume=session)
    (transcript,) = [path for path in stage.transcripts() if path.stem == session.id]
    whole = transcript.read_bytes()
    transcript.write_bytes(whole if cut_bytes == 1 else whole[: whole[:-1].rfind(b"\n") + 1])
    expected = expected_conversation(stage, session)
    transcript.write_bytes(whole[:-cut_bytes])
    keeping = Safekeeping(stage)
    keeping.run("sync")
    transcript.unlink()
    keeping.run("restore-session", session.id, "--yes")
    resumed = stage.ask("Which kettle was it?", resume=session)
    assert conversation_of(resumed) == expected
    for line in transcript.read_text("utf-8").splitlines():
        json.loads(line)


@pytest.mark.since("2.1.212")
def test_a_subagent_of_a_restored_session_can_be_continued(stage: Stage) -> None:
    def again(request: dict[str, Any]) -> list[Block]:
        found = re.findall(r"agentId: (\w+)", json.dumps(request["messages"]))
        return [use("SendMessage", to=found[-1], message="SUB-MORE and saucers?", summary="saucers")]

    start = use(stage.agent_tool, description="Cups", prompt="SUB-CUP count", subagent_type="general-purpose")
    wait = use("Bash", command="sleep 3; echo waited", description="wait")
    stage.script.on("PROMPT-SEND", [start], [wait], [text("Counted.")])
    stage.script.on_agent("SUB-CUP", [text("There are 3 cups.")])
    stage.script.on("PROMPT-MORE", again, [wait], [text("Over.")])
    session = stage.ask("PROMPT-SEND go")
    keeping = Safekeeping(stage)
    keeping.run("sync")
    _delete_sessions(stage)
    keeping.run("restore-session", session.id, "--yes")
    resumed = stage.ask("PROMPT-MORE go", resume=session)
    (continued,) = [
        each
        for each in resumed.exchanges
        if "SUB-MORE" in json.dumps(each.request["messages"][-1:]) and each.agent
    ]
    assert "There are 3 cups." in json.dumps(continued.request["messages"])
    assert_agrees(stage)
