"""The server is put into a client's settings and taken out, and nothing else in them changes."""

import json
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.config import Machine
from backscroll.errors import DestinationError, UsageError
from backscroll.mcp.install import CLIENTS, installation
from backscroll.mcp.jsonc import NotJsonError, decoded, with_member, without_member
from tests.cli.run_command import backscroll
from tests.mcp_server.serving import over_stdio

ENTRY = {"command": "/bin/backscroll", "args": ["mcp"]}
COMMENTED = """\
// my servers
{
    "theme": "dark", // at night
    "mcpServers": {
        /* the old one */
        "files": {"command": "files", "args": ["--all",]}, // keep
    },
    "url": "https://example.org/*not a comment*/",
}
"""


def test_comments_and_other_entries_stay_as_they_are() -> None:
    changed = with_member(COMMENTED, "mcpServers", "backscroll", ENTRY)
    assert changed == COMMENTED.replace(
        "// keep\n",
        "// keep\n"
        '        "backscroll": {\n'
        '            "command": "/bin/backscroll",\n'
        '            "args": [\n'
        '                "mcp"\n'
        "            ]\n"
        "        },\n",
    )
    assert decoded(changed)["mcpServers"]["backscroll"] == ENTRY
    assert without_member(changed, "mcpServers", "backscroll") == COMMENTED


def test_a_second_time_changes_nothing() -> None:
    once = with_member(COMMENTED, "mcpServers", "backscroll", ENTRY)
    assert with_member(once, "mcpServers", "backscroll", ENTRY) == once
    assert without_member(COMMENTED, "mcpServers", "backscroll") == COMMENTED


def test_an_entry_of_another_place_is_replaced() -> None:
    once = with_member(COMMENTED, "mcpServers", "backscroll", {"command": "elsewhere"})
    again = with_member(once, "mcpServers", "backscroll", ENTRY)
    assert again == with_member(COMMENTED, "mcpServers", "backscroll", ENTRY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "\ufeff",
        "// nothing yet\n",
        "{}",
        "{ }",
        "{\n}\n",
        '{\r\n\t"a": 1\r\n}\r\n',
        '{"mcpServers": {}}',
        '{"mcpServers": {"a": {}}}',
        '{"mcpServers": {\n  // none\n}}',
        '{"a": {}, "mcpServers": {"b": 1,},}',
    ],
)
def test_whatever_is_there_it_is_added_and_can_be_taken_out(text: str) -> None:
    before = decoded(text) if "{" in text else {}
    added = with_member(text, "mcpServers", "backscroll", ENTRY)
    servers = before.get("mcpServers", {})
    assert decoded(added) == {**before, "mcpServers": {**servers, "backscroll": ENTRY}}
    assert ("\r\n" in added) == ("\r\n" in text)
    assert not re.search(r"(?<!\r)\n", added) or "\r\n" not in text
    gone = decoded(without_member(added, "mcpServers", "backscroll"))
    assert gone == {**before, "mcpServers": servers}


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["//", "/*", '"', "},{"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(max_size=6).filter(lambda name: name != "mcpServers"), VALUES, max_size=4),
    st.none() | st.dictionaries(st.text(max_size=6), VALUES, max_size=3),
    st.sampled_from([None, 1, 2, 4, "\t"]),
    st.booleans(),
)
def test_any_settings_keep_what_they_say(
    others: dict[str, Any], servers: dict[str, Any] | None, indent: int | str | None, is_commented: bool
) -> None:
    before = others if servers is None else {**others, "mcpServers": servers}
    text = json.dumps(before, indent=indent, ensure_ascii=False)
    if is_commented and indent is not None:
        text = "// first\n" + re.sub(r",\n", ", // why\n", text)
    marks = text.count("// why")
    added = with_member(text, "mcpServers", "backscroll", ENTRY)
    assert decoded(added) == {**before, "mcpServers": {**(servers or {}), "backscroll": ENTRY}}
    assert added.count("// why") == marks
    without = {name: one for name, one in (servers or {}).items() if name != "backscroll"}
    gone = without_member(added, "mcpServers", "backscroll")
    assert decoded(gone) == {**before, "mcpServers": without}


@pytest.mark.parametrize(
    "text",
    ["[]", "?", '{"a": }', '{"a" 1}', '{"a": 1', "{} {}", '{"mcpServers": []}', '{"a": 1 "b": 2}'],
)
def test_what_is_no_json_object_is_not_touched(text: str) -> None:
    with pytest.raises(NotJsonError):
        with_member(text, "mcpServers", "backscroll", ENTRY)


@pytest.mark.parametrize(
    ("client", "system", "environ", "place"),
    [
        ("claude-code", "linux", {}, ".claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/x/claude"}, "/x/claude/.claude.json"),
        ("cursor", "darwin", {}, ".cursor/mcp.json"),
        ("claude-desktop", "darwin", {}, "Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", {}, "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("claude-desktop", "linux", {}, ".config/Claude/claude_desktop_config.json"),
    ],
)
def test_each_client_keeps_its_settings_in_its_place(
    client: str, system: str, environ: dict[str, str], place: str
) -> None:
    machine = Machine(Path("/home/zoe"), environ, system)
    assert CLIENTS[client].settings(machine) == Path("/home/zoe") / place


def test_the_command_shows_the_change_keeps_a_copy_and_can_be_undone(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(COMMENTED)
    file.chmod(0o640)
    done = backscroll("--home", tmp_path / "home", "mcp", "install", "cursor", "--yes", HOME=str(tmp_path))
    assert done.code == 0, done.err
    assert '+        "backscroll": {' in done.out
    assert "Restart Cursor" in done.out
    entry = decoded(file.read_text())["mcpServers"]["backscroll"]
    assert Path(entry["command"]).is_file()
    assert entry["args"] == ["--home", str(tmp_path / "home"), "mcp"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    (kept,) = file.parent.glob("mcp.json.before-backscroll-*")
    assert kept.read_text() == COMMENTED
    again = backscroll("--home", tmp_path / "home", "mcp", "install", "cursor", "--yes", HOME=str(tmp_path))
    assert "already contains the server" in again.out
    out = backscroll("mcp", "uninstall", "cursor", "--yes", HOME=str(tmp_path))
    assert out.code == 0
    assert file.read_text() == COMMENTED
    assert (
        "does not contain the server"
        in backscroll("mcp", "uninstall", "cursor", "--yes", HOME=str(tmp_path)).out
    )


def test_unless_it_is_agreed_to_nothing_changes(tmp_path: Path) -> None:
    done = backscroll("mcp", "install", "claude-code", HOME=str(tmp_path))
    assert done.code != 0
    assert list(tmp_path.iterdir()) == []


def test_without_a_terminal_install_requires_yes(tmp_path: Path) -> None:
    done = backscroll("mcp", "install", "claude-code", HOME=str(tmp_path))
    assert (done.code, done.err.strip()) == (
        1,
        "Not a terminal: pass --yes to confirm. Nothing was changed.",
    )


def test_lines_that_end_as_windows_has_them_all_end_so_afterwards() -> None:
    text = '{\r\n  "mcpServers": {\r\n    "other": {"command": "x"}, // keep\r\n  }\r\n}\r\n'
    there = with_member(text, "mcpServers", "backscroll", {"command": "b", "args": ["mcp"]})
    assert there.count("\n") == there.count("\r\n") == there.count("\r")
    assert "// keep\r\n" in there
    assert without_member(there, "mcpServers", "backscroll") == text


def test_what_somebody_added_to_the_entry_stays(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"backscroll": {"command": "old", "args": [], "env": {"TZ": "UTC"}}}}')
    installation(CLIENTS["cursor"], Machine(tmp_path), ["backscroll", "mcp"]).make()
    entry = decoded(file.read_text())["mcpServers"]["backscroll"]
    assert entry == {"command": "backscroll", "args": ["mcp"], "env": {"TZ": "UTC"}}
    assert not installation(CLIENTS["cursor"], Machine(tmp_path), ["backscroll", "mcp"]).is_needed


def test_a_file_that_nobody_may_write_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_text("{}")
    (tmp_path / ".claude.json").chmod(0o444)
    with pytest.raises(DestinationError, match="is write-protected"):
        installation(CLIENTS["claude-code"], Machine(tmp_path), ["backscroll", "mcp"]).make()
    assert [path.name for path in tmp_path.iterdir()] == [".claude.json"]


def test_what_is_nested_without_end_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_text('{"a": ' + "[" * 100_000)
    with pytest.raises(UsageError, match="was not changed"):
        installation(CLIENTS["claude-code"], Machine(tmp_path), ["backscroll", "mcp"])


@pytest.mark.parametrize("is_environment", [False, True])
def test_archive_and_roots_are_passed_on_as_they_are_found_from_anywhere(
    tmp_path: Path, is_environment: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = {"BACKSCROLL_HOME": "my archive", "BACKSCROLL_ROOTS": "claude-code=some/claude"}
    flags = [] if is_environment else ["--home", "my archive", "--root", "claude-code=some/claude"]
    more = named if is_environment else {}
    done = backscroll(*flags, "mcp", "install", "cursor", "--print", HOME=str(tmp_path), **more)
    assert json.loads(done.out)["mcpServers"]["backscroll"]["args"] == [
        "--home", str(tmp_path / "my archive"), "--root", f"claude-code={tmp_path}/some/claude", "mcp",
    ]  # fmt: skip


def test_what_is_only_printed_is_not_written(tmp_path: Path) -> None:
    done = backscroll("mcp", "install", "claude-desktop", "--print", HOME=str(tmp_path))
    assert json.loads(done.out)["mcpServers"]["backscroll"]["args"] == ["mcp"]
    assert list(tmp_path.iterdir()) == []


def test_settings_that_cannot_be_understood_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_text('{"a": ')
    done = backscroll("mcp", "install", "claude-code", "--yes", HOME=str(tmp_path))
    assert done.code == 2
    assert "so it was not changed: a value is missing in line 1" in done.err
    assert [path.name for path in tmp_path.iterdir()] == [".claude.json"]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / ".claude.json"
    file.write_text("{}")
    change = installation(CLIENTS["claude-code"], Machine(tmp_path), ["backscroll", "mcp"])
    file.write_text('{"a": 1}')
    with pytest.raises(DestinationError, match="was changed by another program"):
        change.make()
    assert [path.name for path in tmp_path.iterdir()] == [".claude.json"]
    with pytest.raises(UsageError):
        file.write_bytes(b"\xff\xfe")
        installation(CLIENTS["claude-code"], Machine(tmp_path), ["backscroll", "mcp"])


def test_a_link_to_the_settings_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "claude.json").write_text("{}")
    (tmp_path / ".claude.json").symlink_to(tmp_path / "dotfiles" / "claude.json")
    installation(CLIENTS["claude-code"], Machine(tmp_path), ["backscroll", "mcp"]).make()
    assert (tmp_path / ".claude.json").is_symlink()
    assert "backscroll" in (tmp_path / "dotfiles" / "claude.json").read_text()


def test_settings_are_changed_without_loading_the_server() -> None:
    heavy = {"mcp", "pydantic", "anyio", "sqlite3"}
    code = f"import backscroll.cli.commands.mcp, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_was_installed_can_be_started(environ: dict[str, str], tmp_path: Path) -> None:
    home = environ["BACKSCROLL_HOME"]
    backscroll("--home", home, "mcp", "install", "cursor", "--yes", HOME=str(tmp_path))
    entry = json.loads((tmp_path / ".cursor" / "mcp.json").read_text())["mcpServers"]["backscroll"]
    with over_stdio({"HOME": str(tmp_path)}, command=[entry["command"], *entry["args"]]) as asking:
        assert asking.document("list_sessions", limit=1)["data"]
