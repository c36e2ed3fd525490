"""``list``, ``show``, ``sync`` and ``archive`` as text and as JSON."""

import json
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript, resume, tool_calls
from backscroll.testing.cursor_cli import Home
from tests.builders.cursor_cli.stores import STORES
from tests.cli.run_command import Shell, backscroll
from tests.cli.terminal import in_terminal

SUMMARY = {
    "ref", "id", "index", "source", "platform", "title", "workspace_path", "workspace_name", "message_count",
    "created_at", "updated_at", "first_message_preview", "git_branch", "models", "version", "agent_ids",
    "parent_ref", "interaction_count", "acceptance_rate", "total_tokens", "total_changes", "completeness",
    "is_gone",
}  # fmt: skip
MESSAGE = {
    "id", "position", "role", "content", "timestamp", "timestamp_source", "model", "parent_id", "response_id",
    "agent_id", "is_active", "tool_call_id", "tool_name", "tool_params", "tool_result", "status", "decision",
    "attachments", "cwd", "git_branch", "stop_reason", "is_sidechain", "copied_from", "usage", "origin",
}  # fmt: skip


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    for seed in range(3):
        session = Transcript(
            f"{seed}0000000-0000-4000-8000-000000000000", seed=seed, cwd=f"/home/zoe/p{seed}"
        )
        session.user(f"question {seed}").run(tool_calls.bash("ls", "a.py"), text="Looking.").assistant(
            "Done."
        )
        session.write(shell.root)
    return shell


def test_list_json_has_the_fields_of_the_contract(shell: Shell) -> None:
    page = shell.json("list", "--limit", "2")
    assert page["pagination"] == {"total": 3, "limit": 2, "offset": 0, "has_more": True}
    assert all(set(summary) >= SUMMARY for summary in page["data"])
    assert [summary["index"] for summary in page["data"]] == [1, 2]
    last = shell.json("list", "--limit", "2", "--offset", "2")
    assert [summary["index"] for summary in last["data"]] == [3]
    assert last["pagination"]["has_more"] is False


def test_a_session_is_shown_with_every_message(shell: Shell) -> None:
    shown = shell.json("show", "10000000")
    assert set(shown) >= SUMMARY | {"messages"}
    assert all(set(message) >= MESSAGE for message in shown["messages"])
    assert [m["role"] for m in shown["messages"]] == ["user", "assistant", "tool", "assistant"]
    tool = shown["messages"][2]
    assert (tool["tool_name"], tool["tool_result"], tool["status"]) == ("Bash", "a.py", "completed")
    assert shown["total_tokens"] == sum(sum(m["usage"].values()) for m in shown["messages"] if m["usage"])


@pytest.mark.parametrize(
    "ref", ["claude-code:1000", "1000", "10000000-0000-4000-8000-000000000000", "cursor:10000000"]
)
def test_a_session_is_found_by_any_form_of_its_ref(shell: Shell, ref: str) -> None:
    assert shell.json("show", ref)["id"].startswith("1")


def test_a_number_is_an_index_of_the_list(shell: Shell) -> None:
    listed = shell.json("list")["data"]
    assert shell.json("show", "2")["id"] == listed[1]["id"]


@pytest.mark.parametrize(
    "options", [["--workspace", "p0"], ["--until", "now"], ["--offset", "1"], ["--subagents"]]
)
def test_a_filter_does_not_change_the_index_of_a_session(shell: Shell, options: list[str]) -> None:
    indexes = {summary["id"]: summary["index"] for summary in shell.json("list")["data"]}
    for listed in shell.json("list", *options)["data"]:
        assert listed["index"] == indexes[listed["id"]]
        assert shell.json("show", str(listed["index"]))["id"] == listed["id"]


def test_show_search_and_annotations_return_the_index_of_the_list(shell: Shell) -> None:
    indexes = {summary["id"]: summary["index"] for summary in shell.json("list")["data"]}
    assert sorted(indexes.values()) == [1, 2, 3]
    for id_, index in indexes.items():
        assert shell.json("show", id_)["index"] == index
        assert shell.json("star", id_)["index"] == index
        (match,) = shell.json("search", "question", "--workspace", f"p{id_[0]}")["data"]
        assert (match["session_id"], match["session_index"]) == (id_, index)


def test_show_has_no_filters(shell: Shell) -> None:
    result = shell.run("show", "1", "--gone")
    assert (result.code, "--gone" in result.err) == (2, True)


@pytest.mark.parametrize("command", ["export", "secrets"])
def test_refs_and_filters_cannot_be_combined(shell: Shell, command: str) -> None:
    result = shell.run(command, "1", "--workspace", "p0")
    assert (result.code, result.out, "filters" in result.err) == (2, "", True)


def test_an_id_that_starts_with_zero_is_not_an_index(shell: Shell) -> None:
    Transcript("00000001-0000-4000-8000-000000000000", seed=9).user("Hello").write(shell.root)
    assert shell.json("show", "00000001")["id"] == "00000001-0000-4000-8000-000000000000"


@pytest.mark.parametrize("ref", ["1" * 5000, "9" * 19, "²", "१"])
def test_a_number_out_of_range_is_an_unknown_ref(shell: Shell, ref: str) -> None:
    result = shell.run("show", ref)
    assert (result.code, "Traceback" in result.err) == (1, False)


def test_an_id_is_case_insensitive(shell: Shell) -> None:
    session = Transcript("abcdef00-0000-4000-8000-000000000000", seed=9)
    session.user("Hello").write(shell.root)
    assert shell.json("show", "ABCDEF00")["id"] == "abcdef00-0000-4000-8000-000000000000"


def test_an_unknown_ref_is_reported_and_an_ambiguous_one_lists_candidates(shell: Shell) -> None:
    Transcript("10000000-0000-4000-8000-0000000000ff", seed=9).user("x").write(shell.root)
    unknown = shell.run("show", "zzz")
    assert (unknown.code, unknown.out) == (1, "")
    assert "zzz" in unknown.err
    ambiguous = shell.run("show", "claude-code:10000000")
    assert ambiguous.code == 1
    assert ambiguous.err.count("claude-code:10000000") >= 3


def test_filters_narrow_the_list(shell: Shell) -> None:
    assert [s["title"] for s in shell.json("list", "--workspace", "p1")["data"]] == ["question 1"]
    assert [s["title"] for s in shell.json("list", "--workspace", "/home/zoe/p1")["data"]] == ["question 1"]
    assert [s["title"] for s in shell.json("list", "--workspace", "zoe/p1")["data"]] == ["question 1"]
    assert shell.json("list", "--workspace", "%")["data"] == []
    assert shell.json("list", "--source", "cursor")["data"] == []
    assert shell.json("list", "--since", "2030-01-01")["data"] == []


def test_list_and_show_print_titles_turns_and_tool_calls(shell: Shell) -> None:
    listed = shell.run("list")
    assert "question 2" in listed.out
    shown = shell.run("show", "1")
    assert "── 1 · You" in shown.out
    assert "  ▸ Bash  ls · 1 line" in shown.out


def test_control_characters_are_removed(shell: Shell) -> None:
    hostile = "\x1b]0;title\x07\x1b[31mred\x1b[0m \u202eevil\u200b end"
    Transcript("90000000-0000-4000-8000-000000000000", seed=7).user(hostile).assistant(hostile).write(
        shell.root
    )
    for result in (shell.run("list"), shell.run("show", "90000000")):
        assert "\x1b" not in result.out
        assert "\u202e" not in result.out
        assert "red evil end" in result.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor"],
        ["doctor", "--json"],
        ["doctor", "--shape"],
        ["doctor", "--shape", "--json"],
        ["list"],
        ["open", "ab"],
        ["show", "ab"],
        ["stats", "--by", "workspace"],
        ["sync"],
    ],
)
def test_control_characters_in_names_never_reach_the_terminal(tmp_path: Path, arguments: list[str]) -> None:
    shell = Shell(tmp_path)
    evil = "a\x1b[7m\x1b]0;b\x07\u202ec"
    session = Transcript("abcdef00-0000-4000-8000-000000000000", cwd=f"/home/zoe/{evil}", branch=evil)
    path = session.user(evil).write(shell.root)
    with path.open("a") as file:
        file.write(json.dumps({"type": evil, "uuid": "1", evil: evil}) + "\n")
    path.with_name("abcdef01-0000-4000-8000-00000000000\x07.jsonl").write_text('{"type": "other"}\n')
    output = in_terminal(*shell.options, *arguments, NO_COLOR="1")
    assert not [code for code in ("\x1b[7m", "\x1b]", "\x07", "\u202e") if code in output]


def test_no_sync_reads_only_the_archive(shell: Shell) -> None:
    assert shell.json("list", "--no-sync")["data"] == []
    shell.sync()
    assert len(shell.json("list", "--no-sync")["data"]) == 3


def test_sync_prints_what_changed(shell: Shell) -> None:
    assert "3 new" in shell.run("sync").out
    assert "Up to date." in shell.run("sync").out
    next(shell.root.rglob("2000*.jsonl")).unlink()
    assert "Synced: 1 deleted by the tool." in shell.run("sync").out
    assert [s["is_gone"] for s in shell.json("list", "--gone")["data"]] == [True]


def test_a_deleted_file_is_extracted_byte_for_byte(shell: Shell, tmp_path: Path) -> None:
    shell.sync()
    path = next(shell.root.rglob("2000*.jsonl"))
    data = path.read_bytes()
    path.unlink()
    result = shell.run("archive", "extract", "2000", "-o", str(tmp_path / "out"))
    assert result.code == 0, result.err
    assert (tmp_path / "out" / path.name).read_bytes() == data
    again = shell.run("archive", "extract", "2000", "-o", str(tmp_path / "out"))
    assert (again.code, "exists" in again.err) == (1, True)


def test_archive_path_status_and_verify_describe_the_archive(shell: Shell) -> None:
    shell.sync()
    assert shell.run("archive", "path").out == f"{shell.home / 'archive.db'}\n"
    assert shell.json("archive", "status")["sessions"] == 3
    assert shell.run("archive", "verify").out == "The archive is intact.\n"


def test_a_file_that_is_not_an_archive_is_reported(shell: Shell) -> None:
    shell.home.mkdir()
    (shell.home / "archive.db").write_bytes(b"nonsense" * 500)
    result = shell.run("list")
    assert (result.code, result.out) == (1, "")
    assert "is not an archive" in result.err
    assert "Traceback" not in result.err


def test_a_subagent_that_a_resume_copied_can_be_shown(tmp_path: Path) -> None:
    first = Transcript(version="1.0.98").user("List the callers")
    first.delegate("Find all callers", "Two of them.")
    path = first.assistant("Done.").write(tmp_path / "claude")
    second = resume(first)
    second.user("And the others?").assistant("None.").write(tmp_path / "claude")
    shell = Shell(tmp_path)
    listed = json.loads(shell.run("list", "--subagents", "--json").out)["data"]
    (agent,) = [session for session in listed if session["parent_ref"] is not None]
    shown = json.loads(shell.run("show", agent["ref"], "--json").out)
    assert shown["parent_ref"] == agent["parent_ref"] == f"claude-code:{path.stem}"
    copy = json.loads(shell.run("show", f"{second.session_id}/{shown['id'][:10]}", "--json").out)
    assert (copy["id"], copy["parent_ref"]) == (shown["id"], f"claude-code:{second.session_id}")
    assert [m["content"] for m in copy["messages"]] == [m["content"] for m in shown["messages"]]
    assert shell.run("show", f"77777777/{shown['id']}").code == 1


def test_a_prefix_names_the_session_and_not_a_subagent_whose_id_starts_with_it(tmp_path: Path) -> None:
    home = Home(tmp_path / "cursor")
    chat = STORES["subagents"](home)
    options = ("--home", tmp_path / "home", "--root", f"cursor-cli={home.root}")

    def shown_id(ref: str) -> str:
        result = backscroll(*options, "show", ref, "--json")
        assert result.code == 0, result.err
        return str(json.loads(result.out)["id"])

    assert shown_id(chat.id[:8]) == chat.id
    assert shown_id(f"{chat.id[:8]}/explore") == f"{chat.id}-explore-1"
    assert backscroll(*options, "show", f"{chat.id[:8]}/").code == 1
    listed = backscroll(*options, "list", "--subagents", "--columns", "id").out.split()
    assert sorted(listed) == [chat.id, f"{chat.id}-explore-1"]
