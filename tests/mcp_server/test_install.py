"""The server is added to and removed from a client's settings, and nothing else changes."""

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
from backscroll.config.jsonc import NotJsonError, parse, with_member, without_member
from backscroll.errors import DestinationError, UsageError
from backscroll.history.history import History
from backscroll.mcp.install import plan_install
from tests.cli.run_command import backscroll
from tests.mcp_server.server_client import start_stdio_server

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


def test_comments_and_other_entries_do_not_change() -> None:
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
    assert parse(changed)["mcpServers"]["backscroll"] == ENTRY
    assert without_member(changed, "mcpServers", "backscroll") == COMMENTED


def test_adding_or_removing_twice_changes_nothing() -> None:
    once = with_member(COMMENTED, "mcpServers", "backscroll", ENTRY)
    assert with_member(once, "mcpServers", "backscroll", ENTRY) == once
    assert without_member(COMMENTED, "mcpServers", "backscroll") == COMMENTED


def test_an_existing_entry_is_replaced() -> None:
    once = with_member(COMMENTED, "mcpServers", "backscroll", {"command": "elsewhere"})
    again = with_member(once, "mcpServers", "backscroll", ENTRY)
    assert again == with_member(COMMENTED, "mcpServers", "backscroll", ENTRY)


def test_an_entry_for_a_server_over_http_is_replaced(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    path = tmp_path / ".cursor" / "mcp.json"
    path.parent.mkdir()
    entry = {"url": "http://127.0.0.1:8/mcp", "headers": {"Authorization": "Bearer x"}, "env": {"A": "1"}}
    path.write_text(json.dumps({"mcpServers": {"backscroll": entry}}))
    change = plan_install(History.mcp_clients(machine)["cursor"], ["backscroll", "mcp"])
    assert json.loads(change.after or b"")["mcpServers"]["backscroll"] == {
        "env": {"A": "1"},
        "command": "backscroll",
        "args": ["mcp"],
    }
    assert '-   "url": …' in change.lines
    assert "Bearer" not in "".join(change.lines)


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
def test_the_server_can_be_added_to_and_removed_from_any_file(text: str) -> None:
    before = parse(text) if "{" in text else {}
    added = with_member(text, "mcpServers", "backscroll", ENTRY)
    servers = before.get("mcpServers", {})
    assert parse(added) == {**before, "mcpServers": {**servers, "backscroll": ENTRY}}
    assert ("\r\n" in added) == ("\r\n" in text)
    assert not re.search(r"(?<!\r)\n", added) or "\r\n" not in text
    removed = parse(without_member(added, "mcpServers", "backscroll"))
    assert removed == {**before, "mcpServers": servers}


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
def test_any_settings_keep_their_other_values_and_comments(
    others: dict[str, Any], servers: dict[str, Any] | None, indent: int | str | None, is_commented: bool
) -> None:
    before = others if servers is None else {**others, "mcpServers": servers}
    text = json.dumps(before, indent=indent, ensure_ascii=False)
    if is_commented and indent is not None:
        text = "// first\n" + re.sub(r",\n", ", // why\n", text)
    comment_count = text.count("// why")
    added = with_member(text, "mcpServers", "backscroll", ENTRY)
    assert parse(added) == {**before, "mcpServers": {**(servers or {}), "backscroll": ENTRY}}
    assert added.count("// why") == comment_count
    other_servers = {name: entry for name, entry in (servers or {}).items() if name != "backscroll"}
    removed = without_member(added, "mcpServers", "backscroll")
    assert parse(removed) == {**before, "mcpServers": other_servers}


@pytest.mark.parametrize(
    "text",
    ["[]", "?", '{"a": }', '{"a" 1}', '{"a": 1', "{} {}", '{"mcpServers": []}', '{"a": 1 "b": 2}'],
)
def test_an_invalid_file_is_an_error(text: str) -> None:
    with pytest.raises(NotJsonError):
        with_member(text, "mcpServers", "backscroll", ENTRY)


@pytest.mark.parametrize(
    ("client", "system", "environ", "path"),
    [
        ("claude-code", "linux", {}, ".claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/x/claude"}, "/x/claude/.claude.json"),
        ("cursor", "darwin", {}, ".cursor/mcp.json"),
        ("claude-desktop", "darwin", {}, "Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", {}, "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("claude-desktop", "linux", {}, ".config/Claude/claude_desktop_config.json"),
    ],
)
def test_each_client_has_its_settings_path(
    client: str, system: str, environ: dict[str, str], path: str
) -> None:
    machine = Machine(Path("/home/zoe"), environ, system)
    assert History.mcp_clients(machine)[client].settings == Path("/home/zoe") / path


def test_install_shows_the_change_writes_a_backup_and_can_be_undone(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(COMMENTED)
    file.chmod(0o640)
    result = backscroll("--home", tmp_path / "home", "mcp", "install", "cursor", "--yes", HOME=str(tmp_path))
    assert result.code == 0, result.err
    assert result.out.startswith(f'{file}:\n+ "backscroll": {{\n+   "command": ')
    assert "Restart Cursor" in result.out
    entry = parse(file.read_text())["mcpServers"]["backscroll"]
    assert Path(entry["command"]).is_file()
    assert entry["args"] == ["--home", str(tmp_path / "home"), "mcp"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    (backup,) = file.parent.glob("mcp.json.before-backscroll-*")
    assert backup.read_text() == COMMENTED
    again = backscroll("--home", tmp_path / "home", "mcp", "install", "cursor", "--yes", HOME=str(tmp_path))
    assert "already contains the server" in again.out
    removed = backscroll("mcp", "uninstall", "cursor", "--yes", HOME=str(tmp_path))
    assert removed.code == 0
    assert file.read_text() == COMMENTED
    assert (
        "does not contain the server"
        in backscroll("mcp", "uninstall", "cursor", "--yes", HOME=str(tmp_path)).out
    )


SECRETS = {"oauthAccount": {"emailAddress": "zoe@example.org"}, "primaryApiKey": "sk-ant-1234"}
SECRET_WORDS = ("zoe@example.org", "sk-ant-1234", "Bearer 5678", "hunter2")


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "many lines"])
@pytest.mark.parametrize("is_installed", [False, True], ids=["new entry", "changed entry"])
def test_install_and_uninstall_print_only_the_entry(
    tmp_path: Path, indent: int | None, is_installed: bool
) -> None:
    old_entry = {"command": "npx", "args": ["--header", "Bearer 5678"], "env": {"PASSWORD": "hunter2"}}
    servers = {"files": {"command": "files", "env": {"PASSWORD": "hunter2"}}}
    servers |= {"backscroll": old_entry} if is_installed else {}
    file = tmp_path / ".claude.json"
    file.write_text(json.dumps({**SECRETS, "mcpServers": servers, "userID": "sk-ant-1234"}, indent=indent))
    installed = backscroll("mcp", "install", "claude-code", "--yes", HOME=str(tmp_path))
    entry = parse(file.read_text())["mcpServers"]["backscroll"]
    mark = " " if is_installed else "+"
    shown = installed.out.partition("Wrote ")[0].splitlines()
    assert shown == [
        f"{file}:",
        f'{mark} "backscroll": {{',
        *(['-   "command": …'] if is_installed else ['+   "type": "stdio"']),
        f'+   "command": "{entry["command"]}"',
        *(['-   "args": …'] if is_installed else []),
        '+   "args": ["mcp"]',
        *(['+   "type": "stdio"'] if is_installed else []),
        f"{mark} }}",
    ]
    removed = backscroll("mcp", "uninstall", "claude-code", "--yes", HOME=str(tmp_path))
    assert removed.out.splitlines()[:2] == [f"{file}:", '- "backscroll": {…}']
    assert not any(word in installed.out + removed.out for word in SECRET_WORDS)


def test_uninstall_accepts_a_file_without_content(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_text("// nothing yet\n")
    result = backscroll("mcp", "uninstall", "claude-code", "--yes", HOME=str(tmp_path))
    assert (result.code, "does not contain the server" in result.out) == (0, True)


def test_nothing_changes_without_confirmation(tmp_path: Path) -> None:
    result = backscroll("mcp", "install", "claude-code", HOME=str(tmp_path))
    assert result.code != 0
    assert list(tmp_path.iterdir()) == []


def test_without_a_terminal_install_requires_yes(tmp_path: Path) -> None:
    result = backscroll("mcp", "install", "claude-code", HOME=str(tmp_path))
    assert (result.code, result.err.strip()) == (
        2,
        "Not a terminal: pass --yes to confirm.",
    )


def test_windows_line_endings_are_kept() -> None:
    text = '{\r\n  "mcpServers": {\r\n    "other": {"command": "x"}, // keep\r\n  }\r\n}\r\n'
    added = with_member(text, "mcpServers", "backscroll", {"command": "b", "args": ["mcp"]})
    assert added.count("\n") == added.count("\r\n") == added.count("\r")
    assert "// keep\r\n" in added
    assert without_member(added, "mcpServers", "backscroll") == text


def test_fields_that_the_user_added_to_the_entry_are_kept(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"backscroll": {"command": "old", "args": [], "env": {"TZ": "UTC"}}}}')
    plan_install(History.mcp_clients(Machine(tmp_path))["cursor"], ["backscroll", "mcp"]).apply()
    entry = parse(file.read_text())["mcpServers"]["backscroll"]
    assert entry == {"command": "backscroll", "args": ["mcp"], "env": {"TZ": "UTC"}}
    assert not plan_install(History.mcp_clients(Machine(tmp_path))["cursor"], ["backscroll", "mcp"]).is_needed


def test_a_write_protected_file_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_text("{}")
    (tmp_path / ".claude.json").chmod(0o444)
    with pytest.raises(DestinationError, match="is write-protected"):
        plan_install(History.mcp_clients(Machine(tmp_path))["claude-code"], ["backscroll", "mcp"]).apply()
    assert [path.name for path in tmp_path.iterdir()] == [".claude.json"]


def test_a_file_with_too_many_levels_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_text('{"a": ' + "[" * 100_000)
    with pytest.raises(UsageError, match="was not changed"):
        plan_install(History.mcp_clients(Machine(tmp_path))["claude-code"], ["backscroll", "mcp"])


@pytest.mark.parametrize("is_environment", [False, True])
def test_the_entry_has_absolute_paths_of_archive_and_roots(
    tmp_path: Path, is_environment: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    variables = {"BACKSCROLL_HOME": "my archive", "BACKSCROLL_ROOTS": "claude-code=some/claude"}
    flags = [] if is_environment else ["--home", "my archive", "--root", "claude-code=some/claude"]
    environ = variables if is_environment else {}
    result = backscroll(*flags, "mcp", "install", "cursor", "--print", HOME=str(tmp_path), **environ)
    assert json.loads(result.out)["mcpServers"]["backscroll"]["args"] == [
        "--home", str(tmp_path / "my archive"), "--root", f"claude-code={tmp_path}/some/claude", "mcp",
    ]  # fmt: skip


def test_print_does_not_write_the_settings(tmp_path: Path) -> None:
    result = backscroll("mcp", "install", "claude-desktop", "--print", HOME=str(tmp_path))
    assert json.loads(result.out)["mcpServers"]["backscroll"]["args"] == ["mcp"]
    assert list(tmp_path.iterdir()) == []


def test_settings_that_cannot_be_parsed_are_not_changed(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_text('{"a": ')
    result = backscroll("mcp", "install", "claude-code", "--yes", HOME=str(tmp_path))
    assert result.code == 2
    assert "so it was not changed: a value is missing in line 1" in result.err
    assert [path.name for path in tmp_path.iterdir()] == [".claude.json"]


def test_a_file_that_changed_in_the_meantime_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / ".claude.json"
    file.write_text("{}")
    change = plan_install(History.mcp_clients(Machine(tmp_path))["claude-code"], ["backscroll", "mcp"])
    file.write_text('{"a": 1}')
    with pytest.raises(DestinationError, match="was changed by another program"):
        change.apply()
    assert [path.name for path in tmp_path.iterdir()] == [".claude.json"]
    with pytest.raises(UsageError):
        file.write_bytes(b"\xff\xfe")
        plan_install(History.mcp_clients(Machine(tmp_path))["claude-code"], ["backscroll", "mcp"])


def test_a_link_to_the_settings_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "claude.json").write_text("{}")
    (tmp_path / ".claude.json").symlink_to(tmp_path / "dotfiles" / "claude.json")
    plan_install(History.mcp_clients(Machine(tmp_path))["claude-code"], ["backscroll", "mcp"]).apply()
    assert (tmp_path / ".claude.json").is_symlink()
    assert "backscroll" in (tmp_path / "dotfiles" / "claude.json").read_text()


def test_install_does_not_import_the_server() -> None:
    slow_modules = {"mcp", "pydantic", "anyio", "sqlite3"}
    code = f"import backscroll.cli.commands.mcp, sys; print(sorted({slow_modules} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_the_installed_command_starts_the_server(environ: dict[str, str], tmp_path: Path) -> None:
    home = environ["BACKSCROLL_HOME"]
    backscroll("--home", home, "mcp", "install", "cursor", "--yes", HOME=str(tmp_path))
    entry = json.loads((tmp_path / ".cursor" / "mcp.json").read_text())["mcpServers"]["backscroll"]
    with start_stdio_server(
        {"HOME": str(tmp_path)}, command=[entry["command"], *entry["args"]]
    ) as mcp_client:
        assert "1 to 1 of 46 sessions" in mcp_client.text("list_sessions", limit=1)


def test_install_with_allow_writes_adds_the_option_and_an_install_without_it_removes_it(
    tmp_path: Path,
) -> None:
    settings = tmp_path / ".cursor" / "mcp.json"
    for options, arguments in (
        ((), ["mcp"]),
        (("--allow-writes",), ["mcp", "--allow-writes"]),
        ((), ["mcp"]),
    ):
        backscroll("mcp", "install", "cursor", "--yes", *options, HOME=str(tmp_path))
        assert json.loads(settings.read_text())["mcpServers"]["backscroll"]["args"] == arguments
