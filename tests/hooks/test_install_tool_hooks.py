"""Hooks are added to a tool's settings and removed, and nothing else changes."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.config import Machine
from backscroll.config.jsonc import parse, with_element, without_elements
from backscroll.errors import UsageError
from backscroll.hooks.install_tool_hooks import hook_status, plan_install, plan_uninstall
from backscroll.hooks.shell_command import hook_command, is_own_command, missing_files
from backscroll.model.hook import HookFile
from backscroll.sources import named
from tests.cli.run_command import backscroll

COMMAND = hook_command(Path("/home/zoe/my archive/spool"))
# What the first versions with hooks know; they ignore the whole file if it contains another name.
CLAUDE_CODE_1_0_69 = {
    *("PreToolUse", "PostToolUse", "Notification", "UserPromptSubmit", "SessionStart", "Stop"),
    *("SubagentStop", "PreCompact"),
}
CURSOR_1_7 = {
    *("beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "afterFileEdit", "beforeSubmitPrompt"),
    "stop",
}
CLAUDE_SETTINGS = """\
{
    "permissions": {"deny": ["Bash(rm:*)"]}, // never
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "say done"}]},
        ],
        "PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "fmt"}]}]
    },
    "env": {"TOKEN": "secret"}
}
"""


def hook_file(source: str, home: Path) -> HookFile:
    hooks = named(source).hooks()
    assert hooks is not None
    return hooks.hook_file(Machine(home))


@pytest.fixture(params=["claude-code", "cursor"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> HookFile:
    return hook_file(request.param, tmp_path)


def install(file: HookFile) -> None:
    plan_install(file, COMMAND).apply()


def test_only_events_are_registered_that_the_first_versions_know(tmp_path: Path) -> None:
    assert set(hook_file("claude-code", tmp_path).events) < CLAUDE_CODE_1_0_69
    assert set(hook_file("cursor", tmp_path).events) < CURSOR_1_7


def test_an_entry_has_the_layout_of_claude_code(tmp_path: Path) -> None:
    file = hook_file("claude-code", tmp_path)
    install(file)
    settings = json.loads(file.path.read_bytes())
    assert list(settings["hooks"]) == list(file.events)
    for groups in settings["hooks"].values():
        assert groups == [{"hooks": [{"type": "command", "command": COMMAND, "timeout": 5}]}]


def test_an_entry_has_the_layout_of_cursor(tmp_path: Path) -> None:
    file = hook_file("cursor", tmp_path)
    install(file)
    settings = json.loads(file.path.read_bytes())
    assert settings["version"] == 1
    assert settings["hooks"] == {event: [{"command": COMMAND, "timeout": 5}] for event in file.events}


def test_a_missing_version_is_added_to_cursors_file(tmp_path: Path) -> None:
    file = hook_file("cursor", tmp_path)
    file.path.parent.mkdir()
    file.path.write_text('{"hooks": {"stop": [{"command": "./mine"}]}}')
    install(file)
    settings = json.loads(file.path.read_bytes())
    assert settings["version"] == 1
    assert settings["hooks"]["stop"][0] == {"command": "./mine"}


def test_other_settings_and_comments_stay(tmp_path: Path) -> None:
    file = hook_file("claude-code", tmp_path)
    file.path.parent.mkdir()
    file.path.write_text(CLAUDE_SETTINGS)
    install(file)
    text = file.path.read_text()
    own = [line for line in text.splitlines() if line not in CLAUDE_SETTINGS.splitlines()]
    assert "never" not in "".join(own)
    before, after = parse(CLAUDE_SETTINGS), parse(text)
    assert after["hooks"]["Stop"][:1] == before["hooks"]["Stop"]
    assert after["hooks"]["PostToolUse"][:1] == before["hooks"]["PostToolUse"]
    assert {**after, "hooks": None} == {**before, "hooks": None}


def test_nothing_of_the_users_settings_is_shown(tmp_path: Path) -> None:
    file = hook_file("claude-code", tmp_path)
    file.path.parent.mkdir()
    file.path.write_text(json.dumps(parse(CLAUDE_SETTINGS)))
    change = plan_install(file, COMMAND)
    assert "secret" not in "".join(change.lines)
    assert all(f"hooks.{event}" in "".join(change.lines) for event in file.events)


def test_installing_twice_changes_nothing(file: HookFile) -> None:
    install(file)
    assert not plan_install(file, COMMAND).is_needed


def test_the_command_of_another_installation_is_replaced(file: HookFile) -> None:
    old = "'/old/python' -I -S '/old/backscroll_hook.py' /spool >/dev/null 2>&1 || true"
    plan_install(file, old).apply()
    install(file)
    text = file.path.read_text()
    assert "/old/" not in text
    assert text.count("backscroll_hook.py") == len(file.events)


ORIGINALS = ["", "{}", "{ }\n", '{"hooks": {}}', CLAUDE_SETTINGS, '{\r\n\t"a": 1,\r\n}\r\n', "// only this\n"]


@pytest.mark.parametrize("original", ORIGINALS)
def test_uninstalling_restores_the_file_to_the_byte(tmp_path: Path, original: str) -> None:
    file = hook_file("claude-code", tmp_path)
    file.path.parent.mkdir()
    file.path.write_bytes(original.encode())
    install(file)
    plan_uninstall(file).apply()
    assert file.path.read_bytes() == original.encode()


def test_uninstalling_deletes_a_file_that_did_not_exist(file: HookFile) -> None:
    install(file)
    plan_uninstall(file).apply()
    assert not file.path.exists()


def test_uninstalling_after_other_changes_removes_only_the_hooks(tmp_path: Path) -> None:
    file = hook_file("claude-code", tmp_path)
    file.path.parent.mkdir()
    file.path.write_text(CLAUDE_SETTINGS)
    install(file)
    file.path.write_text(file.path.read_text().replace('"secret"', '"another"'))
    plan_uninstall(file).apply()
    assert file.path.read_text() == CLAUDE_SETTINGS.replace('"secret"', '"another"')


def test_an_entry_that_the_user_moved_into_a_group_of_others_is_removed_alone(tmp_path: Path) -> None:
    file = hook_file("claude-code", tmp_path)
    file.path.parent.mkdir()
    entries = [{"type": "command", "command": command} for command in ("mine", COMMAND)]
    file.path.write_text(json.dumps({"hooks": {"Stop": [{"hooks": entries}]}}))
    plan_uninstall(file).apply()
    assert json.loads(file.path.read_bytes()) == {"hooks": {"Stop": [{"hooks": entries[:1]}]}}


def test_entries_that_the_tool_has_formatted_again_are_recognized(tmp_path: Path) -> None:
    file = hook_file("claude-code", tmp_path)
    install(file)
    file.path.write_text(json.dumps(json.loads(file.path.read_bytes())))
    assert not plan_install(file, COMMAND).is_needed


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"a": }'])
def test_invalid_settings_are_not_changed(tmp_path: Path, text: str) -> None:
    file = hook_file("claude-code", tmp_path)
    file.path.parent.mkdir()
    file.path.write_text(text)
    with pytest.raises(UsageError, match="was not changed"):
        plan_install(file, COMMAND)
    assert file.path.read_text() == text


def test_the_status_names_events_and_problems(file: HookFile) -> None:
    assert not hook_status("x", file, COMMAND).is_installed
    install(file)
    status = hook_status("x", file, COMMAND)
    assert status.events == file.events
    assert status.problems == ()
    moved = COMMAND.replace("backscroll_hook.py", "moved/backscroll_hook.py")
    plan_install(file, moved).apply()
    assert any("does not exist" in problem for problem in hook_status("x", file, COMMAND).problems)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
@pytest.mark.parametrize(
    "change", [("/python", "/no-python"), ("_hook.py", "_gone.py"), ("spool", "no/spool")]
)
def test_a_command_without_its_files_succeeds_and_prints_nothing(
    tmp_path: Path, shell: str, change: tuple[str, str]
) -> None:
    command = hook_command(tmp_path / "spool").replace(*change)
    result = subprocess.run([shell, "-c", command], input=b"{}", capture_output=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


@pytest.mark.parametrize("folder", ["/plain", "/with space", "/with'quote", "/with\"both'", "/back\\slash"])
def test_own_commands_are_recognized_in_any_folder(folder: str) -> None:
    command = f"{hook_command(Path(folder))}"
    assert is_own_command(command)
    assert missing_files(command) == []
    assert not is_own_command("python not_backscroll_hook.py")
    assert not is_own_command("cat backscroll_hook.py.bak")


def test_hooks_of_assistants_are_refused_on_windows(tmp_path: Path) -> None:
    from backscroll import History

    history = History(home=tmp_path, machine=Machine(tmp_path, system="win32"))
    with pytest.raises(UsageError, match="Windows"):
        history.hooks.plan_install("claude-code")


def test_the_commands_install_show_and_remove_hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    home = ["--home", str(tmp_path / "archive")]
    planned = backscroll(*home, "hooks", "install", "claude-code", "--dry-run")
    assert "Nothing was changed" in planned.out
    assert not (tmp_path / ".claude").exists()
    refused = backscroll(*home, "hooks", "install", "claude-code")
    assert (refused.code, (tmp_path / ".claude").exists()) == (2, False)
    assert backscroll(*home, "hooks", "install", "claude-code", "--yes").code == 0
    status, other = json.loads(backscroll(*home, "hooks", "status", "--json").out)["data"][:2]
    assert (status["target"], status["is_installed"], status["problems"]) == ("claude-code", True, [])
    assert other["is_installed"] is False
    assert str(tmp_path / "archive" / "spool") in status["command"]
    assert backscroll(*home, "hooks", "uninstall", "claude-code", "--yes").code == 0
    assert not (tmp_path / ".claude" / "settings.json").exists()


# --- lists in JSON with comments ------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
formats: list[Callable[[object], str]] = [
    json.dumps,
    lambda value: json.dumps(value, indent=2),
    lambda value: json.dumps(value, indent="\t").replace("\n", "\r\n"),
    lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
]
OWN = {"command": "own", "timeout": 5}


@given(
    others=st.dictionaries(st.text(max_size=5).filter(lambda name: name != "hooks"), values, max_size=3),
    lists=st.dictionaries(
        st.sampled_from(["Stop", "b"]), st.lists(values, min_size=1, max_size=3), min_size=1
    ),
    format_=st.sampled_from(formats),
)
def test_adding_and_removing_an_element_restores_the_text(
    others: dict[str, object], lists: dict[str, list[object]], format_: Callable[[object], str]
) -> None:
    text = format_({**others, "hooks": lists})
    added = with_element(text, ("hooks", "Stop"), OWN)
    assert parse(added)["hooks"]["Stop"] == [*lists.get("Stop", []), OWN]
    assert without_elements(added, ("hooks", "Stop"), lambda element: element == OWN) == text


@given(elements=st.lists(st.sampled_from([1, 2, OWN]), max_size=5), format_=st.sampled_from(formats))
def test_removing_elements_keeps_the_others(elements: list[object], format_: Callable[[object], str]) -> None:
    text = format_({"a": 0, "hooks": {"Stop": elements}})
    removed = without_elements(text, ("hooks", "Stop"), lambda element: element == OWN)
    rest = [element for element in elements if element != OWN]
    assert parse(removed) == ({"a": 0, "hooks": {"Stop": rest}} if rest or not elements else {"a": 0})
