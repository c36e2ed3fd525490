"""Sessions of Claude Code are restored, moved and copied, and every change can be undone."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backscroll import History
from backscroll.config import NamedRoot
from backscroll.errors import (
    ChangeConflictError,
    DestinationError,
    ToolRunningError,
    TransferError,
    UsageError,
    WorkspaceNotFoundError,
)
from backscroll.model.session import Filter, SessionSummary
from backscroll.sources.claude_code.workspace import project_key
from backscroll.testing.claude_code import Prompt, Transcript, tool_calls
from backscroll.testing.claude_code.side_files import (
    write_prompts,
    write_running_process,
    write_session_index,
    write_tasks,
    write_todos,
    write_workflow,
)
from tests.builders.claude_code.generations import GENERATIONS

ONE = "10000000-0000-4000-8000-000000000001"


class Machine:
    """A history of Claude Code, its archive, and a folder to move sessions to."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "claude"
        self.root.mkdir()
        self.old = folder / "ferry"
        self.old.mkdir()
        self.new = folder / "boat"
        self.new.mkdir()
        self.history = History(roots=[NamedRoot("claude-code", self.root)], home=folder / "home")

    def write_session(self, version: str = "2.1.288", session_id: str = ONE) -> Path:
        session = Transcript(session_id=session_id, cwd=str(self.old), version=version)
        session.user(f"Rename {self.old}/tz.py, please")
        session.run(tool_calls.bash(f"ls {self.old}", "tz.py"), text="I look.")
        session.assistant("Done.")
        path = session.write(self.root)
        self.history.sync()
        return path

    def project(self, folder: Path) -> Path:
        return self.root / "projects" / project_key(str(folder))

    def state(self) -> dict[str, bytes]:
        files = sorted(path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in files}

    def figures(self) -> Any:
        """Return the statistics that must not depend on where a session is or how often it was copied."""
        total = msgspec.to_builtins(self.history.statistics.report())["total"]
        return {name: value for name, value in total.items() if name != "sessions"}

    def sessions(self) -> list[SessionSummary]:
        return [one for one in self.history.all_sessions() if not one.is_gone]

    def transcript_sessions(self) -> list[SessionSummary]:
        """Return the sessions that have a transcript."""
        return [one for one in self.sessions() if list(self.root.glob(f"projects/*/{one.id}.jsonl"))]

    def contents(self, ref: str) -> list[tuple[str, str]]:
        return [(one.role, one.content) for one in self.history.get_session(ref).messages if one.is_active]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    with machine.history:
        yield machine


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


# Every generation


@pytest.fixture(params=GENERATIONS)
def generation(request: pytest.FixtureRequest, machine: Machine) -> Machine:
    GENERATIONS[request.param](machine.root, 1)
    machine.history.sync()
    assert machine.transcript_sessions()
    return machine


def test_a_copy_changes_no_figure_and_its_undo_changes_no_byte(generation: Machine) -> None:
    before, figures = generation.state(), generation.figures()
    sessions = generation.transcript_sessions()
    contents = {one.ref: generation.contents(one.ref) for one in sessions}
    result = generation.history.migrate_session([one.ref for one in sessions], generation.new)
    assert (result.errors, result.success_count) == ((), len(sessions))
    assert generation.figures() == figures
    for one in result.sessions:
        copy = generation.history.find(one.new_ref)
        assert copy.workspace_path == str(generation.new)
        assert set(generation.contents(one.new_ref)) >= {
            pair for pair in contents[one.ref] if pair[0] in ("user", "assistant")
        } - queued(generation, one.ref)
        assert generation.contents(one.ref) == contents[one.ref]
    generation.history.undo_change()
    assert generation.state() == before
    assert generation.figures() == figures


def queued(machine: Machine, ref: str) -> set[tuple[str, str]]:
    """Return prompts that were never delivered. The tool's own forks do not contain them either."""
    messages = machine.history.get_session(ref).messages
    return {(one.role, one.content) for one in messages if one.kind == "queued"}


def test_a_move_changes_no_figure_and_its_undo_changes_no_byte(generation: Machine) -> None:
    before, figures = generation.state(), generation.figures()
    sessions = generation.transcript_sessions()
    contents = {one.ref: generation.contents(one.ref) for one in sessions}
    refs = [one.ref for one in sessions]
    result = generation.history.migrate_session(refs, generation.new, mode="move")
    assert (result.errors, result.success_count) == ((), len(sessions))
    assert generation.figures() == figures
    for ref in refs:
        moved = generation.history.find(ref)
        assert (moved.workspace_path, moved.is_gone) == (str(generation.new), False)
        assert generation.contents(ref) == contents[ref]
    for one in sessions:
        assert [
            path.parent for path in generation.root.glob(f"projects/*/{one.id}.jsonl") if path.stat().st_size
        ] == [generation.project(generation.new)]
    generation.history.undo_change()
    assert generation.state() == before
    assert generation.figures() == figures


def test_restored_sessions_have_all_their_files_again(generation: Machine) -> None:
    sessions = generation.transcript_sessions()
    contents = {one.ref: generation.contents(one.ref) for one in sessions}
    transcripts = {path: path.read_bytes() for path in (generation.root / "projects").rglob("*.jsonl")}
    for path in transcripts:
        path.unlink()
    generation.history.sync()
    for one in sessions:
        result = generation.history.restore_session(one.ref)
        assert result.files
        assert not generation.history.find(one.ref).is_gone
        assert generation.contents(one.ref) == contents[one.ref]
    for one in sessions:
        path = next(path for path, text in transcripts.items() if path.stem == one.id and text)
        complete = transcripts[path][: transcripts[path].rfind(b"\n") + 1]
        assert path.read_bytes().startswith(complete)
        assert time.time() - path.stat().st_mtime < 60


def test_a_restored_session_has_its_side_files_again(machine: Machine) -> None:
    session = Transcript(session_id=ONE, cwd=str(machine.old)).user("Look everywhere")
    session.spill(tool_calls.bash("cat long.txt"), "a long line\n" * 5000)
    session.delegate("Look", "Seen.")
    folder = session.write(machine.root).with_suffix("")
    write_tasks(machine.root, session, [("Look", "pending")])
    write_todos(machine.root, session, [("Look", "pending")])
    write_workflow(machine.root, session, "run1", session.agents)
    (folder / "custom-title.json").write_text('{"customTitle":"Ferry"}')
    version = machine.root / "file-history" / ONE / "8c5f@v1"
    version.parent.mkdir(parents=True)
    version.write_text("before")
    machine.history.sync()
    before = machine.state()
    for name in ("projects", "tasks", "todos", "file-history"):
        shutil.rmtree(machine.root / name)
    machine.history.restore_session(ONE)
    assert machine.state() == before
    ages = [time.time() - path.stat().st_mtime for path in machine.root.rglob("*")]
    assert max(ages) < 60  # the tool deletes files by their modification time


# Copy


def test_a_copy_has_new_ids_and_the_same_words(machine: Machine) -> None:
    path = machine.write_session()
    result = machine.history.migrate_session(ONE, machine.new)
    new_id = result.sessions[0].new_ref.partition(":")[2]
    copy = machine.project(machine.new) / f"{new_id}.jsonl"
    old = [line for line in lines(path) if "uuid" in line]
    new = [line for line in lines(copy) if "uuid" in line]
    assert [line["message"] for line in new] == [line["message"] for line in old]
    assert not {line["uuid"] for line in new} & {line["uuid"] for line in old}
    assert [line["forkedFrom"] for line in new] == [
        {"sessionId": ONE, "messageUuid": line["uuid"]} for line in old
    ]
    uuids = {line["uuid"] for line in new}
    assert all(line["parentUuid"] in {None, *uuids} for line in new)
    assert {line["sessionId"] for line in new} == {new_id}
    assert {line["cwd"] for line in new} == {str(machine.new)}
    assert lines(copy)[-1]["customTitle"].endswith("(fork)")
    assert oct(copy.stat().st_mode)[-3:] == "600"


@pytest.mark.parametrize("first_digit", "0369cf")  # the copy has a random id
def test_the_subagent_of_the_original_is_listed_after_a_copy(machine: Machine, first_digit: str) -> None:
    session_id = f"{first_digit}{ONE[1:]}"
    session = Transcript(session_id=session_id, cwd=str(machine.old)).user("Look")
    session.delegate("Look", "Seen.").assistant("Done.").write(machine.root)
    machine.history.sync()
    (before,) = subagents(machine)
    (copied,) = machine.history.migrate_session(session_id, machine.new).sessions
    assert subagents(machine) == [before]
    assert machine.history.find(before.ref) == before
    copy = machine.history.find(f"{copied.new_ref}/{before.id}")
    assert (copy.parent_ref, copy.message_count) == (copied.new_ref, before.message_count)


@pytest.mark.parametrize("version", ["2.0.60", "2.1.288"])
def test_the_original_with_subagents_moves_to_the_folder_of_its_copy(machine: Machine, version: str) -> None:
    session = Transcript(session_id=ONE, cwd=str(machine.old), version=version)
    session.user("Rename it").delegate("Find the quay", "It is there.").assistant("Done.").write(machine.root)
    machine.history.sync()
    contents = machine.contents(ONE)
    (original,) = subagents(machine)
    copied = machine.history.migrate_session(ONE, machine.new).sessions[0]
    assert machine.contents(copied.new_ref) == contents
    moved = machine.history.migrate_session(ONE, machine.new, mode="move")
    assert (moved.success_count, moved.errors) == (1, ())
    for ref in (ONE, copied.new_ref):
        (agent_id,) = machine.history.find(ref).agent_ids
        agent = machine.history.get_agent_session(f"{ref}/{agent_id}")
        assert [one.content for one in agent.messages] == ["Find the quay", "It is there."]
        is_new = version < "2.1" and ref != ONE
        assert (agent.agent_id == original.id) == (not is_new)
    for _ in range(2):
        machine.history.undo_change()
    assert [one.id for one in subagents(machine)] == [original.id]


def test_a_copied_subagent_without_a_file_counts_once(machine: Machine) -> None:
    session = Transcript(session_id=ONE, cwd=str(machine.old), version="2.1.40").user("Go")
    session.delegate_with_progress("Look", "Seen.", [tool_calls.bash("ls", "tz.py")])
    session.assistant("Done.").write(machine.root)
    machine.history.sync()
    figures = machine.figures()
    assert figures["subagent_messages"]
    machine.history.migrate_session(ONE, machine.new)
    assert machine.figures() == figures


def test_a_copy_has_the_prompts_that_are_only_in_the_queue(machine: Machine) -> None:
    session = Transcript(session_id=ONE, cwd=str(machine.old), version="2.1.40").user("Go")
    session.queue("enqueue", "Also the winter table")
    session.run(tool_calls.bash("ls", "tz.py"))
    session.queue("remove")
    session.assistant("Done.").write(machine.root)
    machine.history.sync()
    contents, figures = machine.contents(ONE), machine.figures()
    assert ("user", "Also the winter table") in contents
    copied = machine.history.migrate_session(ONE, machine.new).sessions[0]
    assert (machine.contents(copied.new_ref), machine.figures()) == (contents, figures)


def subagents(machine: Machine) -> list[SessionSummary]:
    listed = machine.history.list_sessions(Filter(with_subagents=True)).data
    return [one for one in listed if one.parent_ref is not None]


def test_a_copied_line_differs_only_in_the_text_of_its_ids_and_folder(machine: Machine) -> None:
    path = machine.write_session()
    text = path.read_text(encoding="utf-8").replace('"version"', '"odd" :  1.10e1, "version"')
    path.write_text(text, encoding="utf-8")
    machine.history.sync()
    machine.history.migrate_session(ONE, machine.new)
    copy = next(machine.project(machine.new).glob("*.jsonl")).read_text(encoding="utf-8")
    assert copy.count('"odd" :  1.10e1, "version"') == text.count('"odd" :  1.10e1, "version"') > 0


def test_a_session_can_be_copied_twice(machine: Machine) -> None:
    machine.write_session(version="2.0.40")
    for _ in range(2):
        assert machine.history.migrate_session(ONE, machine.new).errors == ()
    assert len(machine.transcript_sessions()) == 3


# Move


def test_a_move_rewrites_the_folder_only_on_a_component_boundary(machine: Machine) -> None:
    sibling = f"{machine.old}-old"
    session = Transcript(session_id=ONE, cwd=str(machine.old), version="2.1.288")
    session.user("one").assistant("two")
    path = session.write(machine.root)
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    rest = [line.replace(f'"cwd":"{machine.old}"', f'"cwd":"{sibling}"') for line in rest]
    below = first.replace(f'"cwd":"{machine.old}"', f'"cwd":"{machine.old}/src"').replace(
        '"uuid":"', '"uuid":"f'
    )
    path.write_text("\n".join([first, below, *rest]) + "\n", encoding="utf-8")
    machine.history.sync()
    assert machine.history.migrate_session(ONE, machine.new, mode="move").errors == ()
    moved = machine.project(machine.new) / path.name
    cwds = [line["cwd"] for line in lines(moved) if "cwd" in line]
    assert set(cwds) == {str(machine.new), f"{machine.new}/src", sibling}


def test_keep_cwd_adds_a_line_with_the_new_folder_and_changes_no_other(machine: Machine) -> None:
    path = machine.write_session()
    content = path.read_bytes()
    machine.history.migrate_session(ONE, machine.new, mode="move", keep_cwd=True)
    moved = (machine.project(machine.new) / path.name).read_bytes()
    assert moved.startswith(content)
    added = json.loads(moved[len(content) :])
    assert added == {"type": "relocated", "relocatedCwd": str(machine.new), "sessionId": ONE}
    assert machine.history.find(ONE).workspace_path == str(machine.new)


def test_a_move_takes_the_prompt_log_and_the_session_index_along(machine: Machine) -> None:
    session = Transcript(session_id=ONE, cwd=str(machine.old), version="2.1.20")
    session.user("Where is the quay?").assistant("There.")
    session.write(machine.root)
    other = Transcript(session_id=ONE[:-1] + "2", cwd=str(machine.new), version="2.1.20")
    other.user("Other").assistant("Yes.")
    other.write(machine.root)
    write_session_index(machine.root, [session])
    write_session_index(machine.root, [other])
    prompts = [
        Prompt("Where is the quay?", project=str(machine.old), session_id=ONE),
        Prompt("Another", project=str(machine.old), session_id=ONE[:-1] + "3"),
    ]
    write_prompts(machine.root, prompts)
    machine.history.sync()
    assert machine.history.migrate_session(ONE, machine.new, mode="move").errors == ()
    assert [line["project"] for line in lines(machine.root / "history.jsonl")] == [
        str(machine.new),
        str(machine.old),
    ]
    index = json.loads((machine.project(machine.new) / "sessions-index.json").read_bytes())
    entry = next(one for one in index["entries"] if one["sessionId"] == ONE)
    assert entry["fullPath"] == str(machine.project(machine.new) / f"{ONE}.jsonl")
    assert entry["projectPath"] == str(machine.new)
    assert json.loads((machine.project(machine.old) / "sessions-index.json").read_bytes())["entries"] == []


def test_a_move_does_not_lose_an_incomplete_last_line_in_the_middle(machine: Machine) -> None:
    path = machine.write_session()
    with path.open("ab") as file:
        file.write(b'{"type":"user","mess')
    machine.history.sync()
    machine.history.migrate_session(ONE, machine.new, mode="move")
    assert (machine.project(machine.new) / path.name).read_bytes().endswith(b"}\n")


def test_the_name_of_a_long_target_depends_on_the_version(machine: Machine) -> None:
    deep = machine.new / ("x" * 100) / ("y" * 60)
    deep.mkdir(parents=True)
    assert 200 < len(str(deep)) < 256
    machine.write_session(version="2.0.40")
    machine.write_session(version="2.1.288", session_id=ONE[:-1] + "2")
    machine.history.migrate_session(ONE, deep, mode="move")
    old_name = next(machine.root.glob(f"projects/*/{ONE}.jsonl")).parent.name
    assert len(old_name) == len(str(deep))
    (machine.root / "projects" / old_name).rename(machine.root / "elsewhere")
    machine.history.migrate_session(ONE[:-1] + "2", deep, mode="move")
    new_name = next(machine.root.glob(f"projects/*/{ONE[:-1]}2.jsonl")).parent.name
    assert new_name == project_key(str(deep))


def test_a_folder_with_a_decomposed_name_keeps_it(machine: Machine) -> None:
    folder = machine.new / "cafe\u0301"
    folder.mkdir()
    machine.write_session()
    machine.history.migrate_session(ONE, folder, mode="move")
    assert next(machine.root.glob(f"projects/*/{ONE}.jsonl")).parent.name.endswith("-cafe-")


# Refusals


@pytest.mark.parametrize("mode", ["copy", "move"])
def test_a_target_that_is_or_is_in_the_folder_is_refused(machine: Machine, mode: Any) -> None:
    machine.write_session()
    inside = machine.old / "sub"
    inside.mkdir()
    before = machine.state()
    for target, code in ((machine.old, "same-folder"), (inside, "target-inside-source")):
        result = machine.history.migrate_session(ONE, target, mode=mode)
        is_done = mode == "move" and target == machine.old
        assert [one.ref for one in result.unchanged] == ([f"claude-code:{ONE}"] if is_done else [])
        assert [(one.session_id, one.code) for one in result.errors] == ([] if is_done else [(ONE, code)])
        assert (result.success_count, result.failed_count) == (0, 0 if is_done else 1)
    assert machine.state() == before


@pytest.mark.parametrize("mode", ["copy", "move"])
def test_a_session_below_a_root_that_is_not_read_is_refused(
    machine: Machine, tmp_path: Path, mode: Any
) -> None:
    machine.write_session()
    other = tmp_path / "other"
    other.mkdir()
    before = machine.state()
    with History(roots=[NamedRoot("claude-code", other)], home=tmp_path / "home") as history:
        result = history.migrate_session(ONE, machine.new, mode=mode)
        assert [(one.code, str(machine.root) in one.message) for one in result.errors] == [
            ("other-root", True)
        ]
    assert machine.state() == before


def test_a_deleted_session_of_a_root_that_is_not_read_is_not_restored(
    machine: Machine, tmp_path: Path
) -> None:
    machine.write_session().unlink()
    machine.history.sync()
    other = tmp_path / "other"
    other.mkdir()
    with (
        History(roots=[NamedRoot("claude-code", other)], home=tmp_path / "home") as history,
        pytest.raises(TransferError, match="not among the folders that are read now"),
    ):
        history.restore_session(ONE)
    assert machine.state() == {}


def test_of_two_copies_of_a_home_folder_only_the_one_that_is_read_changes(
    machine: Machine, tmp_path: Path
) -> None:
    path = machine.write_session()
    copy = tmp_path / "copy"
    shutil.copytree(machine.root, copy)
    before = machine.state()
    with History(roots=[NamedRoot("claude-code", copy)], home=tmp_path / "home") as history:
        history.sync()
        result = history.migrate_session(ONE, machine.new, mode="move")
    assert (result.success_count, result.errors) == (1, ())
    assert (copy / "projects" / project_key(str(machine.new)) / path.name).exists()
    assert machine.state() == before


def test_a_missing_target_is_refused(machine: Machine) -> None:
    machine.write_session()
    with pytest.raises(DestinationError, match="does not exist"):
        machine.history.migrate_session(ONE, machine.new / "nowhere")


def test_an_open_session_is_refused_and_the_others_are_moved(machine: Machine) -> None:
    machine.write_session()
    machine.write_session(session_id=ONE[:-1] + "2")
    started = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    session = Transcript(session_id=ONE, cwd=str(machine.old))
    write_running_process(machine.root, session, os.getpid(), started=started)
    result = machine.history.migrate_workspace(machine.old, machine.new, mode="move")
    assert [(one.session_id, one.code) for one in result.errors] == [(ONE, "tool-running")]
    assert result.success_count == 1
    assert machine.history.find(ONE[:-1] + "2").workspace_path == str(machine.new)
    assert machine.history.find(ONE).workspace_path == str(machine.old)


def test_a_session_that_is_open_is_not_restored(machine: Machine) -> None:
    path = machine.write_session()
    path.unlink()
    machine.history.sync()
    started = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    session = Transcript(session_id=ONE, cwd=str(machine.old))
    write_running_process(machine.root, session, os.getpid(), started=started)
    with pytest.raises(ToolRunningError, match="Exit Claude Code"):
        machine.history.restore_session(ONE)


def test_a_session_that_is_in_another_project_is_not_restored(machine: Machine) -> None:
    path = machine.write_session()
    other = machine.project(machine.new)
    other.mkdir()
    path.rename(other / path.name)
    with pytest.raises(ChangeConflictError, match="in the store already"):
        machine.history.restore_session(ONE)


def test_a_session_with_files_in_place_needs_no_restore(machine: Machine) -> None:
    machine.write_session()
    assert machine.history.restore_session(ONE).change is None


# Undo


def test_undo_without_an_id_reverts_a_whole_workspace(machine: Machine) -> None:
    for last in "123":
        machine.write_session(session_id=ONE[:-1] + last)
    before = machine.state()
    assert machine.history.migrate_workspace(machine.old, machine.new, mode="move").success_count == 3
    assert len(machine.history.undo_change()) == 3
    assert machine.state() == before
    assert all(one.is_undone for one in machine.history.list_changes())


def test_forgetting_a_session_erases_its_undone_copies(machine: Machine) -> None:
    machine.write_session()
    (ref,) = [session.ref for session in machine.history.all_sessions()]
    machine.history.migrate_session(ref, machine.new, mode="copy")
    machine.history.undo_change()
    machine.history.archive_admin.forget(ref)
    assert machine.history.all_sessions(Filter(with_unlisted=True)) == []
    assert machine.history.search_sessions("rename please").data == ()


def test_a_workspace_of_deleted_sessions_is_not_copied(machine: Machine) -> None:
    machine.write_session()
    machine.history.sync()
    shutil.rmtree(machine.root / "projects")
    machine.history.sync()
    with pytest.raises(WorkspaceNotFoundError, match=r"deleted all sessions of .* \(1 session\)"):
        machine.history.migrate_workspace(machine.old, machine.new, mode="copy")


def test_undo_refuses_if_the_moved_session_was_continued(machine: Machine) -> None:
    path = machine.write_session()
    machine.history.migrate_session(ONE, machine.new, mode="move")
    moved = machine.project(machine.new) / path.name
    with moved.open("ab") as file:
        file.write(b'{"type":"mode","mode":"normal"}\n')
    with pytest.raises(ChangeConflictError, match="has changed since"):
        machine.history.undo_change()


def test_a_restore_can_be_undone(machine: Machine) -> None:
    path = machine.write_session()
    path.unlink()
    machine.history.sync()
    machine.history.restore_session(ONE)
    machine.history.undo_change()
    assert not path.exists()
    assert machine.history.find(ONE).is_gone


def test_an_undone_copy_is_hidden_until_it_comes_back(machine: Machine) -> None:
    Transcript(ONE, seed=1, cwd=str(machine.old)).user("ferry").assistant("Late.").write(machine.root)
    machine.history.sync()
    (copied,) = machine.history.migrate_session(ONE, machine.new).sessions
    path = next(machine.root.rglob(f"{copied.new_ref.partition(':')[2]}.jsonl"))
    content = path.read_bytes()
    machine.history.undo_change()
    assert [one.id for one in machine.history.all_sessions()] == [ONE]
    assert machine.history.find(copied.new_ref).is_gone  # still in the archive
    machine.history.archive_admin.rebuild()
    assert [one.id for one in machine.history.all_sessions()] == [ONE]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    machine.history.sync()
    assert {one.ref for one in machine.history.all_sessions()} == {f"claude-code:{ONE}", copied.new_ref}


# Restore after a move


def test_a_session_that_was_moved_is_not_restored_to_its_old_folder(machine: Machine) -> None:
    session = Transcript(cwd=str(machine.old)).user("mend the gate").assistant("Done.")
    session.delegate("look", "Found.").write(machine.root)
    machine.history.sync()
    machine.history.migrate_session(session.session_id, machine.new, mode="move")
    moved = machine.state()
    assert machine.history.restore_session(session.session_id).change is None
    machine.history.undo_change()
    assert machine.history.restore_session(session.session_id).change is None
    machine.history.migrate_session(session.session_id, machine.new, mode="move")
    machine.history.sync()
    shutil.rmtree(machine.project(machine.new))
    machine.history.sync()
    machine.history.restore_session(session.session_id)
    assert machine.state() == moved


def test_both_parts_of_a_session_in_two_folders_are_restored(machine: Machine) -> None:
    first = Transcript(cwd=str(machine.old)).user("mend the gate").assistant("Done.")
    second = Transcript(cwd=str(machine.new), seed=9).user("and the fence").assistant("Mended.")
    files = [first.write(machine.root), machine.project(machine.new) / f"{first.session_id}.jsonl"]
    files[1].parent.mkdir()
    files[1].write_bytes(second.lines().replace(second.session_id.encode(), first.session_id.encode()))
    before = machine.state()
    machine.history.sync()
    for file in files:
        file.unlink()
    machine.history.sync()
    machine.history.restore_session(first.session_id)
    assert machine.state() == before


@pytest.mark.parametrize("mode", ["Copy", "bogus", ""])
def test_an_unknown_mode_changes_nothing(machine: Machine, mode: Any) -> None:
    session = Transcript(cwd=str(machine.old)).user("mend the gate").assistant("Done.")
    session.write(machine.root)
    machine.history.sync()
    before = machine.state()
    with pytest.raises(UsageError, match="Use one of: copy, move"):
        machine.history.migrate_session(session.session_id, machine.new, mode=mode)
    assert machine.state() == before
