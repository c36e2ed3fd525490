"""``backscroll search`` from the file on disk to the printed matches."""

import json
import re
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing.claude_code import Transcript, resume, tool_calls
from tests.cli.run_command import Shell, backscroll
from tests.cli.terminal import in_terminal

MATCH = {
    "session_ref", "session_id", "session_index", "source", "title", "workspace_name", "message_id",
    "message_index", "role", "timestamp", "match", "highlights", "context", "line_number", "score",
    "match_count",
    "matches_all",
    "also",
}  # fmt: skip


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    ferry = Transcript("10000000-0000-4000-8000-000000000000", seed=1, cwd="/home/zoe/ferry")
    ferry.user("Why is parseHTTPRequest so flaky?").run(
        tool_calls.bash("pytest -q", "E1234 in tests/test_http.py")
    )
    ferry.assistant("It depended on the clock.").write(shell.root)
    web = Transcript("20000000-0000-4000-8000-000000000000", seed=2, cwd="/home/zoe/web")
    web.user("Make the header green").assistant("Now it is green, not flaky.").write(shell.root)
    return shell


def ids(found: Any) -> list[str]:
    return [match["session_id"][:1] for match in found["data"]]


def test_a_session_is_found_by_a_word_in_it(shell: Shell) -> None:
    found = shell.json("search", "clock")
    assert ids(found) == ["1"]
    (match,) = found["data"]
    assert set(match) >= MATCH
    assert found["pagination"]["total"] == 1
    start, end = match["highlights"][0]
    assert match["match"][start:end] == "clock"


@pytest.mark.parametrize("words", ["http", "parseHTTPRequest", "E1234", "test_http.py", "request"])
def test_identifiers_are_found_by_name_and_by_part(shell: Shell, words: str) -> None:
    assert "1" in ids(shell.json("search", words))


def test_filters_narrow_a_search(shell: Shell) -> None:
    assert sorted(ids(shell.json("search", "flaky"))) == ["1", "2"]
    assert ids(shell.json("search", "flaky", "role:user")) == ["1"]
    assert ids(shell.json("search", "flaky", "--workspace", "web")) == ["2"]
    assert ids(shell.json("search", "flaky", "--source", "cursor")) == []
    assert ids(shell.json("search", "flaky", "-green")) == ["1"]


@pytest.mark.parametrize(
    "words",
    [
        ["-clock"],
        ["NOT", "clock"],
        ["source:claude-code -clock"],
        ["--source", "claude-code", "-clock"],
        ["--since", "2000", "-clock"],
    ],
)
def test_an_excluded_word_excludes_every_session_that_contains_it(shell: Shell, words: list[str]) -> None:
    found = shell.json("search", *words)
    assert ids(found) == ["2"]
    assert found["pagination"]["total"] == 1
    messages = shell.json("search", *words, "--by", "message")
    assert sorted(set(ids(messages))) == ["1", "2"]
    assert "clock" not in json.dumps(messages)


def test_a_query_of_negations_counts_sessions_and_no_messages(shell: Shell) -> None:
    for words in (["-clock"], ["NOT clock", "since:2000"], ["-clock", "--workspace", "web"]):
        found = shell.json("search", *words)
        assert [match["match_count"] for match in found["data"]] == [1]
        assert found["pagination"]["total"] == 1
    assert "matches" not in shell.run("search", "-clock").out
    assert shell.json("search", "-clock", "green")["data"][0]["match_count"] == 2


def test_an_excluded_word_in_the_title_or_in_a_note_excludes_the_session(shell: Shell) -> None:
    shell.run("note", "20000000", "Ask the harbour master")
    assert ids(shell.json("search", "-harbour")) == ["1"]
    shell.run("rename", "10000000", "Moorings")
    assert ids(shell.json("search", "-moorings")) == ["2"]


def test_operators_are_written_in_capitals(shell: Shell) -> None:
    assert ids(shell.json("search", "flaky AND NOT green")) == ["1"]
    assert ids(shell.json("search", "flaky", "AND", "green")) == ["2"]
    assert sorted(ids(shell.json("search", "clock OR NOT flaky"))) == ["1"]


def test_a_word_that_starts_like_a_short_option_is_excluded(shell: Shell) -> None:
    assert ids(shell.json("search", "flaky", "-now")) == ["1"]
    assert ids(shell.json("search", "flaky", "-header")) == ["1"]
    assert sorted(ids(shell.json("search", "flaky", "-n5"))) == ["1", "2"]
    assert len(ids(shell.json("search", "flaky", "-n5", "-n", "1"))) == 1


def test_h_alone_prints_the_help(shell: Shell) -> None:
    assert shell.run("search", "-h").out == shell.run("search", "--help").out
    assert sorted(ids(shell.json("search", "flaky", "-h"))) == ["1", "2"]
    assert sorted(ids(json.loads(shell.run("search", "--json", "--", "-h").out))) == ["1", "2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["flaky", "--sinse", "2026"], "No such option '--sinse'."),
        (["flaky", "--since"], "Option '--since' requires an argument."),
        (["flaky", "-n"], "Option '-n' requires an argument."),
        (["flaky", "-n", "green"], "'green' is not a valid integer."),
    ],
)
def test_an_invalid_option_is_a_usage_error(shell: Shell, arguments: list[str], message: str) -> None:
    result = shell.run("search", *arguments)
    assert result.code == 2
    assert message in result.err


def test_arguments_after_two_hyphens_are_words(shell: Shell) -> None:
    found = json.loads(shell.run("search", "--json", "--", "--flaky", "-now", "-n").out)
    assert ids(found) == ["1"]


def test_a_wildcard_in_a_workspace_also_matches_subagents(shell: Shell) -> None:
    three = Transcript("30000000-0000-4000-8000-000000000000", seed=3, cwd="/home/zoe/quayside")
    three.user("Ask around").delegate("Who has the lantern?", "The keeper has it.").write(shell.root)
    for pattern in ("quay*", "/home/zoe/q*", "zoe/*side"):
        assert shell.json("search", f"keeper workspace:{pattern}")["pagination"]["total"] == 2
        assert shell.json("search", "keeper", "--workspace", pattern)["pagination"]["total"] == 2
        assert shell.json("list", "--workspace", pattern)["pagination"]["total"] == 1


def test_a_session_is_found_by_a_file_that_was_only_read(shell: Shell) -> None:
    three = Transcript("30000000-0000-4000-8000-000000000000", seed=3, cwd="/home/zoe/quay")
    three.user("Look").run(tool_calls.read("/home/zoe/quay/src/moorings.py", "x = 1")).write(shell.root)
    assert ids(shell.json("search", "file:moorings.py")) == ["3"]
    assert ids(shell.json("search", "file:src/moor*")) == ["3"]
    assert ids(shell.json("search", "file:x")) == []


def test_search_filters_by_gone_and_by_edits(shell: Shell) -> None:
    three = Transcript("30000000-0000-4000-8000-000000000000", seed=3, cwd="/home/zoe/quay")
    three.user("flaky").run(
        tool_calls.edit("/home/zoe/quay/a.py", "x = 1", "x = 2", original="x = 1\n")
    ).write(shell.root)
    assert sorted(ids(shell.json("search", "flaky"))) == ["1", "2", "3"]
    assert ids(shell.json("search", "flaky", "--has-edits")) == ["3"]
    assert sorted(ids(shell.json("search", "flaky", "-has:edits"))) == ["1", "2"]
    next(shell.root.rglob("1000*.jsonl")).unlink()
    assert ids(shell.json("search", "flaky", "--gone")) == ["1"]
    assert sorted(ids(shell.json("search", "flaky -is:gone"))) == ["2", "3"]
    assert ids(shell.json("search", "--exact", "flaky", "--gone")) == ["1"]


def test_since_and_until_include_the_given_day(shell: Shell) -> None:
    day = shell.json("search", "green")["data"][0]["timestamp"][:10]
    for since, until in (("--since", "--until"), ("since:", "until:")):
        options = [since, day, until, day] if since.startswith("-") else [f"{since}{day}", f"{until}{day}"]
        assert ids(shell.json("search", "green", *options)) == ["2"], options
        early = [until, "2020"] if since.startswith("-") else [f"{until}2020"]
        assert ids(shell.json("search", "green", *early)) == []
    assert shell.json("list", "--since", day, "--until", day)["pagination"]["total"] >= 1
    assert shell.run("list", "--until", "nonsense").code == 2


@pytest.mark.parametrize(
    ("timestamp", "day"),
    [("2026-01-09T23:30:00+00:00", "2026-01-10"), ("2026-07-09T22:30:00+00:00", "2026-07-10")],
)
def test_a_day_starts_at_local_midnight_regardless_of_daylight_saving_time(
    shell: Shell, timestamp: str, day: str
) -> None:
    at = datetime.fromisoformat(timestamp)
    Transcript("30000000-0000-4000-8000-000000000000", seed=3, start=at).user("midnight").write(shell.root)
    for options in (["--since", day, "--until", day], [f"since:{day}", f"until:{day}"]):
        found = shell.json("search", "midnight", *options, TZ="CET-1CEST,M3.5.0,M10.5.0/3")
        assert ids(found) == ["3"], options


def test_an_ambiguous_path_suffix_lists_the_candidates(shell: Shell) -> None:
    for seed, cwd in ((3, "/srv/a/x/web"), (4, "/srv/b/x/web")):
        session = Transcript(f"{seed}0000000-0000-4000-8000-000000000000", seed=seed, cwd=cwd)
        session.user("green").write(shell.root)
    assert sorted(ids(shell.json("search", "green", "--workspace", "web"))) == ["2", "3", "4"]
    assert ids(shell.json("search", "green", "--workspace", "b/x/web")) == ["4"]
    for command in (["search", "green"], ["list"]):
        result = shell.run(*command, "--workspace", "x/web")
        assert result.code == 1
        assert "/srv/a/x/web" in result.err
        assert "/srv/b/x/web" in result.err
    assert sorted(ids(shell.json("search", "green workspace:x/web"))) == ["3", "4"]


def test_matches_of_a_pattern_are_counted_by_session(shell: Shell) -> None:
    path = next(shell.root.rglob("2000*.jsonl"))
    (match,) = shell.json("search", "--exact", "green")["data"]
    assert match["session_id"] == path.stem
    assert match["match_count"] == 2


def test_the_total_of_a_pattern_is_exact_if_the_last_match_was_reached(shell: Shell) -> None:
    every = in_terminal(*shell.options, "search", "--exact", "e")
    (total,) = re.findall(r"\n1 to \d+ of (\d+), ", every)
    assert int(total) > 1
    assert "1 to 1 of at least 2, " in shell.run("search", "--exact", "e", "--limit", "1").err


def test_has_thinking_shows_the_text_of_the_thinking(shell: Shell) -> None:
    three = Transcript("30000000-0000-4000-8000-000000000000", seed=3)
    three.user("Why?").assistant("Because.", thinking="The tide was out.")
    three.user("Sure?").assistant("Yes.", thinking="").write(shell.root)
    four = Transcript("40000000-0000-4000-8000-000000000000", seed=4)
    four.user("When?").assistant("Now.", thinking="").write(shell.root)
    (match,) = shell.json("search", "has:thinking")["data"]
    assert (match["role"], match["match"], match["match_count"]) == ("thinking", "The tide was out.", 1)
    assert "│ The tide was out.\n" in shell.run("search", "has:thinking").out
    assert sorted(ids(shell.json("search", "role:thinking"))) == ["3", "4"]
    assert "│ (no text)\n" in shell.run("search", "role:thinking").out


def test_any_substring_and_any_regular_expression_is_found(shell: Shell) -> None:
    exact = shell.json("search", "--exact", "E1234 in tests/")
    assert ids(exact) == ["1"]
    assert exact["pagination"]["total"] is None
    assert exact["pagination"]["total_at_least"] == 1
    assert ids(shell.json("search", "--regex", r"E\d{4} in")) == ["1"]
    assert ids(shell.json("search", "--exact", "e1234")) == []


def test_a_substring_or_regular_expression_can_ignore_case(shell: Shell) -> None:
    assert ids(shell.json("search", "--exact", "-i", "e1234 IN tests/")) == ["1"]
    assert ids(shell.json("search", "--exact", "--ignore-case", "parsehttprequest so")) == ["1"]
    assert ids(shell.json("search", "--regex", "-i", r"e\d{4} IN")) == ["1"]
    assert ids(shell.json("search", "--regex", r"e\d{4} IN")) == []
    assert ids(shell.json("search", "-i", "CLOCK")) == ["1"]
    (match,) = shell.json("search", "--exact", "-i", "THE CLOCK.")["data"]
    assert [match["match"][start:end] for start, end in match["highlights"]] == ["the clock."]


@pytest.mark.parametrize("words", [["--regex", "("], ["--regex", ""], ["--exact", ""]])
def test_an_invalid_regular_expression_is_a_usage_error(shell: Shell, words: list[str]) -> None:
    result = shell.run("search", *words)
    assert result.code == 2
    assert "Traceback" not in result.err


def test_punctuation_alone_is_searched_exactly(shell: Shell) -> None:
    Transcript("30000000-0000-4000-8000-000000000000", seed=3).user("off we go 🚀").write(shell.root)
    assert ids(shell.json("search", "🚀")) == ["3"]
    assert ids(shell.json("search", "?")) == ["1"]
    assert ids(shell.json("search", "☂")) == []


def test_punctuation_that_is_not_found_is_explained_with_an_example(shell: Shell) -> None:
    result = shell.run("search", "☂")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("No results.\nThe query contains no words; searched for it as exact text.\n")
    assert "search flaky test" in result.err
    assert shell.run("search", "--exact", "☂").err == "No results.\n"


@pytest.mark.parametrize("query", ["", "  "])
def test_an_empty_query_is_a_usage_error_with_an_example(shell: Shell, query: str) -> None:
    for more in ((), ("--json",)):
        result = shell.run("search", query, *more)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("The query is empty. Example: 'flaky test")
    assert ids(shell.json("search", query, "--source", "claude-code")) == ["1", "2"]


def test_an_invalid_filter_is_reported_if_nothing_matches_all_words(
    shell: Shell,
) -> None:
    result = shell.run("search", "green since:yesteday role:Nobody tool:Bash")
    assert "'since:yesteday' is not a valid filter; searched for it as text." in result.err
    assert "'role:Nobody' is not a valid filter" in result.err
    assert "tool:" not in result.err
    assert "not a valid filter" not in shell.run("search", "green since:2000 -role:tool").err


@pytest.mark.parametrize("query", ["branch:*", "since:foo ferry", "role:king"])
def test_an_invalid_value_of_a_filter_is_always_reported(shell: Shell, query: str) -> None:
    name = query.split()[0]
    for options in ([], ["--json"]):
        result = shell.run("search", *options, query)
        assert f"{name!r} is not a valid filter; searched for it as text.\n" in result.err


def test_new_messages_are_found_at_once_and_deleted_ones_stay_searchable(shell: Shell) -> None:
    assert ids(shell.json("search", "lighthouse")) == []
    path = next(shell.root.rglob("2000*.jsonl"))
    more = Transcript("20000000-0000-4000-8000-000000000000", seed=5, cwd="/home/zoe/web")
    line = json.dumps(more.user("and a lighthouse").records[-1])
    with path.open("a") as file:
        file.write(line + "\n")
    assert ids(shell.json("search", "lighthouse")) == ["2"]
    path.unlink()
    assert ids(shell.json("search", "lighthouse")) == ["2"]


def test_a_message_repeated_by_a_resume_is_found_once(shell: Shell) -> None:
    first = Transcript(version="1.0.98", seed=8).user("a walrus").assistant("indeed")
    first.write(shell.root)
    resume(first).user("go on").assistant("ok").write(shell.root)
    found = shell.json("search", "indeed", "--by", "message")
    assert [match["session_id"] for match in found["data"]] == [first.session_id]


def test_a_lost_or_damaged_index_is_rebuilt(shell: Shell) -> None:
    assert ids(shell.json("search", "clock")) == ["1"]
    shutil.rmtree(shell.home / "index")
    assert ids(shell.json("search", "clock", "--no-sync")) == ["1"]
    for path in (shell.home / "index").rglob("*"):
        if path.is_file():
            path.write_bytes(b"nonsense")
    assert ids(shell.json("search", "clock")) == ["1"]


@pytest.mark.parametrize("words", ["'", '"', "-", "::", "role:", "(", "*", "\x00", "OR", "日本", "a" * 5000])
def test_any_text_can_be_searched_for(shell: Shell, words: str) -> None:
    if "\x00" in words:
        words = words.replace("\x00", "\x01")  # a command line cannot contain NUL
    result = shell.run("search", "--json", "--", words)
    assert result.code == 0, result.err
    assert result.err == ""


def test_search_prints_the_matching_line(shell: Shell) -> None:
    result = shell.run("search", "clock")
    assert "It depended on the clock." in result.out
    assert backscroll("--home", shell.home, "search").code == 2


@pytest.mark.parametrize("kind", [[], ["--exact"], ["--by", "message"]])
def test_a_page_past_the_last_result_reports_the_total(shell: Shell, kind: list[str]) -> None:
    total = shell.json("search", "flaky", "--by", "message" if kind[1:] else "session")["pagination"]["total"]
    found = shell.json("search", "flaky", *kind, "--offset", "7")
    assert (found["data"], found["pagination"]["has_more"]) == ([], False)
    assert f"({total} in total)" in shell.run("search", "flaky", *kind, "--offset", "7").err
    assert "(2 in total)" in shell.run("list", "--offset", "7").err


def test_partial_matches_are_not_counted_past_the_last_page(shell: Shell) -> None:
    found = shell.json("search", "flaky lighthouse", "--offset", "7")
    assert found["is_relaxed"]
    assert found["pagination"]["total_at_least"] == 0


def test_a_pipe_gets_only_matches(shell: Shell) -> None:
    result = shell.run("search", "flaky")
    assert " ms\n" not in result.out
    assert not result.out.endswith("\n\n")
    assert result.err == ""
    page = shell.run("search", "flaky", "-n", "1")
    assert " ms\n" not in page.out
    assert re.fullmatch(r"1 to 1 of 2, \d+ ms\n", page.err)
    nothing = shell.run("search", "nonexistent-word")
    assert (nothing.out, nothing.err) == ("", "No results.\n")


def test_a_terminal_also_gets_the_number_of_results(shell: Shell) -> None:
    assert "\n\n1 to 2 of 2, " in in_terminal(*shell.options, "search", "flaky")
    assert "No results." in in_terminal(*shell.options, "search", "nonexistent-word")


def test_results_that_do_not_fit_on_the_terminal_go_to_the_pager(shell: Shell) -> None:
    pager = "sh -c 'echo paged; cat'"
    shell.sync()
    high = in_terminal(*shell.options, "search", "flaky", lines=60, pager=pager)
    assert "paged" not in high
    low = in_terminal(*shell.options, "search", "flaky", lines=6, pager=pager)
    assert low.startswith("paged")
    assert "\n\n1 to 2 of 2, " in low
    relaxed = in_terminal(*shell.options, "search", "flaky", "header", "clock", lines=6, pager=pager)
    assert relaxed.startswith("paged\nNo message contains all words.")


def test_recalled_sessions_that_do_not_fit_on_the_terminal_go_to_the_pager(shell: Shell) -> None:
    shell.sync()
    output = in_terminal(*shell.options, "recall", "flaky", lines=6, pager="sh -c 'echo paged; cat'")
    assert output.startswith("paged")
