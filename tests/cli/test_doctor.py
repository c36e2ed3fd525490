"""``backscroll doctor`` as a person and as a program sees it."""

import json
import os
from pathlib import Path

import pytest

from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.running import backscroll


def written(root: Path) -> str:
    Transcript().user("a secret question").run(tool_calls.bash("ls", "secret-output")).assistant(
        "an answer"
    ).write(root)
    return f"claude-code={root}"


def test_it_accounts_for_every_record(tmp_path: Path) -> None:
    ran = backscroll("--root", written(tmp_path), "doctor")
    assert ran.code == 0, ran.err
    assert "sessions   1" in ran.out
    assert "records    4 = 4 parsed + 0 carrying no message + 0 problems" in ran.out
    assert "Everything was understood." in ran.out


def test_json_is_one_document_and_nothing_else(tmp_path: Path) -> None:
    ran = backscroll("--root", written(tmp_path), "doctor", "--json")
    document = json.loads(ran.out)
    (place,) = document["places"]
    assert document["is_understood"] is True
    assert (place["source"], place["sessions"], place["messages"]) == ("claude-code", 1, 3)
    assert place["records"] == place["parsed"] + place["ignored"] + place["problems"] == 4
    assert ran.err == ""


def test_what_was_not_understood_is_named_and_exits_with_three(tmp_path: Path) -> None:
    path = Transcript().user("a").state("brand-new", x=1).write(tmp_path)
    with path.open("ab") as file:
        file.write(b"{broken\n")
    ran = backscroll("--root", f"claude-code={tmp_path}", "doctor")
    assert ran.code == 3
    assert "record type brand-new" in ran.out
    assert "line 3: is not JSON" in ran.out


def test_a_file_that_cannot_be_read_is_a_problem_and_not_a_crash(tmp_path: Path) -> None:
    database = tmp_path / "User" / "globalStorage" / "state.vscdb"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"this is no database" * 100)
    ran = backscroll("--root", f"cursor={tmp_path}", "doctor")
    assert ran.code == 3
    assert "Traceback" not in ran.out + ran.err


def test_the_shape_holds_no_content(tmp_path: Path) -> None:
    ran = backscroll("--root", written(tmp_path), "doctor", "--shape")
    assert ran.code == 0
    assert "message.content" in ran.out
    assert "secret" not in ran.out


def test_secrets_in_a_tools_database_never_come_out(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    home.composer([cursor.user("hello"), cursor.assistant("hi")])
    home.put_secrets()
    home.write()
    for more in ([], ["--json"], ["--shape"], ["--shape", "--json"]):
        ran = backscroll("--root", f"cursor={tmp_path}", "doctor", *more)
        assert cursor.SECRET not in ran.out + ran.err


def test_without_any_history_it_says_where_it_looked_and_offers_a_made_up_one(tmp_path: Path) -> None:
    ran = backscroll("doctor", HOME=str(tmp_path))
    assert ran.code == 0
    assert "~/.claude" in ran.out
    assert "backscroll demo" in ran.out


def test_roots_can_be_named_by_the_environment(tmp_path: Path) -> None:
    ran = backscroll("doctor", "--json", BACKSCROLL_ROOTS=written(tmp_path))
    assert [place["path"] for place in json.loads(ran.out)["places"]] == [str(tmp_path)]


def test_a_root_that_makes_no_sense_is_wrong_usage() -> None:
    for root in ("nonsense", "no-such-source=/tmp", "=", "claude-code="):
        ran = backscroll("--root", root, "doctor")
        assert ran.code == 2, root
        assert ran.err
        assert "Traceback" not in ran.err


def test_an_unknown_command_is_wrong_usage() -> None:
    ran = backscroll("docter")
    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize("command", ["doctor", "sync"])
def test_what_a_tool_will_delete_is_told_to_programs_by_name(tmp_path: Path, command: str) -> None:
    session = Transcript().user("a")
    path = session.write(tmp_path / "claude")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    home, root = f"--home={tmp_path / 'home'}", f"--root=claude-code={tmp_path / 'claude'}"
    (told,) = json.loads(backscroll(home, root, command, "--json").out)["retention"]
    assert (told["days"], told["is_default"], told["expiring"]) == (30, True, [session.session_id])
    assert told.keys() == {"days", "is_default", "settings", "expiring", "diff", "trouble"}
