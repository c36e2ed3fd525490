"""Resume commands of all sources."""

from hashlib import md5
from pathlib import Path

import pytest

from backscroll import sources
from backscroll.config import Machine
from backscroll.model.resume import Command, Refusal, Resumable, Store

HOME = Path("/home/zoe")
MACHINE = Machine(HOME)
FERRY = "/home/zoe/ferry"
ID = "10000000-0000-4000-8000-000000000000"


def make_session(
    *stores: Store, folder: str | None = FERRY, authority: str | None = None, folders: tuple[str, ...] = ()
) -> Resumable:
    return Resumable(ID, "Ferry times", folder, authority, folders, stores)


def claude_store(
    root: str = "/home/zoe/.claude", project: str = "-home-zoe-ferry", *, is_gone: bool = False
) -> Store:
    return Store("claude-code", root, f"{root}/projects/{project}/{ID}.jsonl", "lines", is_gone)


def cursor_store(root: str = "/home/zoe/.config/Cursor") -> Store:
    return Store("cursor", root, f"{root}/User/globalStorage/state.vscdb", "bubbles", False)


def cli_store(kind: str = "store", folder: str = FERRY, root: str = "/home/zoe/.cursor") -> Store:
    hashed = md5(folder.encode(), usedforsecurity=False).hexdigest()
    return Store("cursor-cli", root, f"{root}/chats/{hashed}/{ID}/store.db", kind, False)


def found_command(name: str, resumable: Resumable, machine: Machine) -> Command | Refusal:
    commands = sources.named(name).resume()
    assert commands is not None
    return commands.resume_command(resumable, machine)


def resume_command(name: str, resumable: Resumable, machine: Machine = MACHINE) -> Command:
    found = found_command(name, resumable, machine)
    assert isinstance(found, Command)
    return found


def refusal_reason(name: str, resumable: Resumable) -> str:
    found = found_command(name, resumable, MACHINE)
    assert isinstance(found, Refusal)
    return found.reason


def test_claude_code_runs_in_the_folder_that_matches_the_project_key() -> None:
    resumable = make_session(
        claude_store(), folder="/home/zoe/ferry/docs", folders=("/home/zoe/ferry/docs", FERRY)
    )
    found = resume_command("claude-code", resumable)
    assert (found.argv, found.folder, found.environ) == (("claude", "--resume", ID), FERRY, {})


def test_claude_code_adds_a_note_if_no_folder_matches_the_project_key() -> None:
    found = resume_command("claude-code", make_session(claude_store(project="-srv-other")))
    assert found.folder == FERRY
    assert found.note is not None
    assert "-srv-other" in found.note


def test_an_existing_transcript_takes_precedence_over_a_deleted_one() -> None:
    resumable = make_session(
        claude_store(project="-old", is_gone=True), claude_store(), folders=("/old", FERRY)
    )
    assert resume_command("claude-code", resumable).folder == FERRY


@pytest.mark.parametrize(
    ("root", "config_dir", "environ"),
    [
        ("/home/zoe/.claude", "", {}),
        ("/home/zoe/.claude-work", "", {"CLAUDE_CONFIG_DIR": "/home/zoe/.claude-work"}),
        ("/home/zoe/.claude-work", "/home/zoe/.claude-work", {}),
        ("/home/zoe/.claude", "/home/zoe/.claude-work", {"CLAUDE_CONFIG_DIR": "/home/zoe/.claude"}),
    ],
)
def test_claude_code_gets_its_config_folder_only_if_it_is_not_the_default(
    root: str, config_dir: str, environ: dict[str, str]
) -> None:
    machine = Machine(HOME, {"CLAUDE_CONFIG_DIR": config_dir} if config_dir else {})
    assert resume_command("claude-code", make_session(claude_store(root)), machine).environ == environ


def test_a_session_with_only_prompts_cannot_be_resumed() -> None:
    prompts = Store("claude-code", "/home/zoe/.claude", "/home/zoe/.claude/history.jsonl", "prompts", False)
    assert "prompts" in refusal_reason("claude-code", make_session(prompts))


def test_cursor_opens_the_workspace_with_a_note_about_the_session_to_choose() -> None:
    found = resume_command("cursor", make_session(cursor_store()))
    assert (found.argv, found.folder) == (("cursor", FERRY), FERRY)
    assert found.note is not None
    assert "“Ferry times”" in found.note


def test_cursor_opens_a_workspace_on_another_machine() -> None:
    found = resume_command("cursor", make_session(cursor_store(), authority="ssh-remote+buoy"))
    assert found.argv == ("cursor", "--folder-uri", f"vscode-remote://ssh-remote+buoy{FERRY}")
    assert found.folder is None


def test_cursor_gets_a_user_data_folder_that_is_not_the_default() -> None:
    found = resume_command("cursor", make_session(cli_store(), cursor_store("/old/Cursor")))
    assert found.argv == ("cursor", "--user-data-dir", "/old/Cursor", FERRY)


def test_the_agent_runs_in_the_folder_that_matches_its_store() -> None:
    resumable = make_session(cli_store(), folder="/home/zoe/elsewhere", folders=(FERRY,))
    found = resume_command("cursor-cli", resumable)
    assert (found.argv, found.folder, found.environ) == (("cursor-agent", "--resume", ID), FERRY, {})


def test_the_agent_adds_a_note_if_no_folder_matches_its_store() -> None:
    assert resume_command("cursor-cli", make_session(cli_store(folder="/srv/other"))).note is not None


def test_the_agent_gets_a_config_folder_that_is_not_the_default() -> None:
    assert set(
        resume_command("cursor-cli", make_session(cli_store(root="/old/.cursor"))).environ.values()
    ) == {"/old/.cursor"}


@pytest.mark.parametrize(("kind", "reason"), [("acp", "another program"), ("transcript", "text copy")])
def test_the_agent_refuses_other_stores_with_a_reason(kind: str, reason: str) -> None:
    assert reason in refusal_reason("cursor-cli", make_session(cli_store(kind)))


@pytest.mark.parametrize(
    ("name", "resumable", "hint"),
    [
        ("claude-code", make_session(claude_store()), "npm install -g @anthropic-ai/claude-code"),
        ("cursor", make_session(cursor_store()), "command palette"),
        ("cursor-cli", make_session(cli_store()), "https://cursor.com/cli"),
    ],
)
def test_a_missing_program_is_named_with_how_to_install_it(
    name: str, resumable: Resumable, hint: str
) -> None:
    found = resume_command(name, resumable)
    assert found.missing_program.startswith(f"{found.argv[0]} is not installed or not on the PATH.")
    assert hint in found.missing_program
