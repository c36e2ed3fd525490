"""``backscroll doctor`` as text and as JSON."""

import json
import os
import shlex
from pathlib import Path

import pytest

from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.run_command import Shell, backscroll

ONE = "10000000-0000-4000-8000-000000000001"


def write_session(root: Path) -> str:
    """Write a session and return the value for --root."""
    Transcript().user("a secret question").run(tool_calls.bash("ls", "secret-output")).assistant(
        "an answer"
    ).write(root)
    return f"claude-code={root}"


def test_every_record_is_counted(tmp_path: Path) -> None:
    result = backscroll("--root", write_session(tmp_path), "doctor")
    assert result.code == 0, result.err
    assert "sessions   1" in result.out
    assert "records    4 = 4 parsed + 0 ignored + 0 problems" in result.out
    assert "No problems found." in result.out


def test_json_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    result = backscroll("--root", write_session(tmp_path), "doctor", "--json")
    document = json.loads(result.out)
    (root,) = document["places"]
    assert document["is_understood"] is True
    assert (root["source"], root["sessions"], root["messages"]) == ("claude-code", 1, 3)
    assert root["records"] == root["parsed"] + root["ignored"] + root["problems"] == 4
    assert result.err == ""


def test_unparsed_records_are_listed_and_the_exit_code_is_three(tmp_path: Path) -> None:
    path = Transcript().user("a").state("brand-new", x=1).write(tmp_path)
    with path.open("ab") as file:
        file.write(b"{broken\n")
    result = backscroll("--root", f"claude-code={tmp_path}", "doctor")
    assert result.code == 3
    assert "record type brand-new" in result.out
    assert "line 3: is not JSON" in result.out


def test_a_single_problem_is_counted_in_the_singular(tmp_path: Path) -> None:
    with Transcript().user("a").write(tmp_path).open("ab") as file:
        file.write(b"{broken\n")
    result = backscroll("--root", f"claude-code={tmp_path}", "doctor")
    assert "  sessions   1 (1 partial), 1 message\n" in result.out
    assert "  records    2 = 1 parsed + 0 ignored + 1 problem\n" in result.out


def test_a_file_that_cannot_be_read_is_a_problem_and_not_a_crash(tmp_path: Path) -> None:
    database = tmp_path / "User" / "globalStorage" / "state.vscdb"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"this is not a database" * 100)
    result = backscroll("--root", f"cursor={tmp_path}", "doctor")
    assert result.code == 3
    assert "Traceback" not in result.out + result.err


def test_the_shape_contains_no_values(tmp_path: Path) -> None:
    result = backscroll("--root", write_session(tmp_path), "doctor", "--shape")
    assert result.code == 0
    assert "message.content" in result.out
    assert "secret" not in result.out


def test_secrets_in_a_tools_database_are_never_printed(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    home.composer([cursor.user("hello"), cursor.assistant("hi")])
    home.put_secrets()
    home.write()
    for more in ([], ["--json"], ["--shape"], ["--shape", "--json"]):
        result = backscroll("--root", f"cursor={tmp_path}", "doctor", *more)
        assert cursor.SECRET not in result.out + result.err


def test_without_history_the_searched_folders_and_the_demo_are_named(tmp_path: Path) -> None:
    result = backscroll("doctor", HOME=str(tmp_path))
    assert result.code == 0
    assert "~/.claude" in result.out
    assert "backscroll demo" in result.out


def test_roots_can_be_set_in_the_environment(tmp_path: Path) -> None:
    result = backscroll("doctor", "--json", BACKSCROLL_ROOTS=write_session(tmp_path))
    assert [root["path"] for root in json.loads(result.out)["places"]] == [str(tmp_path)]


def test_an_invalid_root_is_a_usage_error() -> None:
    for root in ("nonsense", "no-such-source=/tmp", "=", "claude-code="):
        result = backscroll("--root", root, "doctor")
        assert result.code == 2, root
        assert result.err
        assert "Traceback" not in result.err


def test_an_unknown_command_is_a_usage_error() -> None:
    result = backscroll("docter")
    assert (result.code, result.out) == (2, "")


@pytest.mark.parametrize("command", ["doctor", "sync"])
def test_json_names_the_sessions_that_a_tool_will_delete(tmp_path: Path, command: str) -> None:
    session = Transcript().user("a")
    path = session.write(tmp_path / "claude")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    home, root = f"--home={tmp_path / 'home'}", f"--root=claude-code={tmp_path / 'claude'}"
    (retention,) = json.loads(backscroll(home, root, command, "--json").out)["retention"]
    assert (retention["days"], retention["is_default"], retention["expiring"]) == (
        30,
        True,
        [session.session_id],
    )
    assert retention.keys() == {"days", "is_default", "settings", "expiring", "diff", "trouble"}


def test_moved_prints_the_command_that_moves_the_sessions(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    old, new = tmp_path / "projects" / "my ferry", tmp_path / "work" / "my ferry"
    old.mkdir(parents=True)
    Transcript(session_id=ONE, cwd=str(old)).user("Where is the quay?").assistant("There.").write(shell.root)
    assert "The folders of all sessions exist." in shell.run("doctor", "--moved").out
    new.parent.mkdir()
    old.rename(new)
    result = shell.run("doctor", "--moved")
    assert result.code == 0
    assert f"{old} no longer exists (1 session: claude-code)." in result.out
    (entry,) = shell.json("doctor", "--moved")["data"]
    assert entry["new_path"] == str(new)
    assert entry["command"] in result.out
    words = shlex.split(entry["command"])
    assert shell.run(*words[1:], "--yes").code == 0
    assert shell.json("doctor", "--moved")["data"] == []


def test_search_needs_moved(tmp_path: Path) -> None:
    result = Shell(tmp_path).run("doctor", "--search", tmp_path)
    assert (result.code, "--search needs --moved" in result.err) == (2, True)
