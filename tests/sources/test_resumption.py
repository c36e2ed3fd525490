"""What every source says when it is asked to continue a session."""

from hashlib import md5
from pathlib import Path

import pytest

from backscroll import sources
from backscroll.config import Machine
from backscroll.model.tool import Command, Refusal, Resumable, Store

HOME = Path("/home/zoe")
MACHINE = Machine(HOME)
FERRY = "/home/zoe/ferry"
ID = "10000000-0000-4000-8000-000000000000"


def session(
    *stores: Store, folder: str | None = FERRY, authority: str | None = None, folders: tuple[str, ...] = ()
) -> Resumable:
    return Resumable(ID, "Ferry times", folder, authority, folders, stores)


def lines(
    root: str = "/home/zoe/.claude", project: str = "-home-zoe-ferry", *, is_gone: bool = False
) -> Store:
    return Store("claude-code", root, f"{root}/projects/{project}/{ID}.jsonl", "lines", is_gone)


def ide(root: str = "/home/zoe/.config/Cursor") -> Store:
    return Store("cursor", root, f"{root}/User/globalStorage/state.vscdb", "bubbles", False)


def cli(kind: str = "store", folder: str = FERRY, root: str = "/home/zoe/.cursor") -> Store:
    hashed = md5(folder.encode(), usedforsecurity=False).hexdigest()
    return Store("cursor-cli", root, f"{root}/chats/{hashed}/{ID}/store.db", kind, False)


def asked(name: str, wanted: Resumable, machine: Machine = MACHINE) -> Command:
    found = sources.named(name).resume_command(wanted, machine)
    assert isinstance(found, Command)
    return found


def refused(name: str, wanted: Resumable) -> str:
    found = sources.named(name).resume_command(wanted, MACHINE)
    assert isinstance(found, Refusal)
    return found.reason


def test_claude_code_goes_to_the_folder_that_gave_the_project_its_name() -> None:
    wanted = session(lines(), folder="/home/zoe/ferry/docs", folders=("/home/zoe/ferry/docs", FERRY))
    assert asked("claude-code", wanted) == Command(("claude", "--resume", ID), FERRY)


def test_claude_code_says_when_no_known_folder_has_the_projects_name() -> None:
    found = asked("claude-code", session(lines(project="-srv-other")))
    assert found.folder == FERRY
    assert found.note is not None
    assert "-srv-other" in found.note


def test_of_two_projects_the_one_that_is_still_there_counts() -> None:
    wanted = session(lines(project="-old", is_gone=True), lines(), folders=("/old", FERRY))
    assert asked("claude-code", wanted).folder == FERRY


@pytest.mark.parametrize(
    ("root", "named", "told"),
    [
        ("/home/zoe/.claude", "", {}),
        ("/home/zoe/.claude-work", "", {"CLAUDE_CONFIG_DIR": "/home/zoe/.claude-work"}),
        ("/home/zoe/.claude-work", "/home/zoe/.claude-work", {}),
        ("/home/zoe/.claude", "/home/zoe/.claude-work", {"CLAUDE_CONFIG_DIR": "/home/zoe/.claude"}),
    ],
)
def test_claude_code_is_told_where_to_look_only_when_it_looks_elsewhere(
    root: str, named: str, told: dict[str, str]
) -> None:
    machine = Machine(HOME, {"CLAUDE_CONFIG_DIR": named} if named else {})
    assert asked("claude-code", session(lines(root)), machine).environ == told


def test_what_only_prompts_are_left_of_cannot_be_continued() -> None:
    prompts = Store("claude-code", "/home/zoe/.claude", "/home/zoe/.claude/history.jsonl", "prompts", False)
    assert "prompts" in refused("claude-code", session(prompts))


def test_cursor_opens_the_workspace_and_says_what_to_choose() -> None:
    found = asked("cursor", session(ide()))
    assert (found.argv, found.folder) == (("cursor", FERRY), FERRY)
    assert found.note is not None
    assert "“Ferry times”" in found.note


def test_cursor_opens_a_workspace_on_another_machine() -> None:
    found = asked("cursor", session(ide(), authority="ssh-remote+buoy"))
    assert found.argv == ("cursor", "--folder-uri", f"vscode-remote://ssh-remote+buoy{FERRY}")
    assert found.folder is None


def test_cursor_is_told_of_a_user_data_folder_that_is_not_the_usual_one() -> None:
    found = asked("cursor", session(cli(), ide("/old/Cursor")))
    assert found.argv == ("cursor", "--user-data-dir", "/old/Cursor", FERRY)


def test_the_agent_goes_to_the_folder_that_its_store_is_filed_under() -> None:
    wanted = session(cli(), folder="/home/zoe/elsewhere", folders=(FERRY,))
    assert asked("cursor-cli", wanted) == Command(("cursor-agent", "--resume", ID), FERRY)


def test_the_agent_may_not_find_what_is_filed_under_an_unknown_folder() -> None:
    assert asked("cursor-cli", session(cli(folder="/srv/other"))).note is not None


def test_the_agent_is_told_of_a_home_that_is_not_the_usual_one() -> None:
    assert set(asked("cursor-cli", session(cli(root="/old/.cursor"))).environ.values()) == {"/old/.cursor"}


@pytest.mark.parametrize(("kind", "why"), [("acp", "another program"), ("transcript", "text copy")])
def test_what_the_agent_cannot_continue_is_said(kind: str, why: str) -> None:
    assert why in refused("cursor-cli", session(cli(kind)))
