"""``backscroll stats``: the real command."""

import csv
import re
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.running import Ran, Shell

ONE = "10000000-0000-4000-8000-000000000000"
TWO = "20000000-0000-4000-8000-000000000000"
HOSTILE = "\x1b[2J\u202egpt|`<b>`"


class Figuring(Shell):
    """``backscroll stats`` where it is always Greenwich time."""

    def run(self, *arguments: str | Path, **environ: str) -> Ran:
        return super().run("stats", *arguments, **{"TZ": "UTC"} | environ)


@pytest.fixture
def shell(tmp_path: Path) -> Figuring:
    shell = Figuring(tmp_path)
    usage = {"input_tokens": 1_000_000, "output_tokens": 10_000}
    one = Transcript(ONE, cwd="/home/zoe/ferry").user("a")
    one.run(tool_calls.bash("make").failed("no rule"), usage=usage, model="claude-opus-4-5")
    one.write(shell.root)
    two = Transcript(TWO, cwd="/home/zoe/tides", seed=2).user("b")
    two.assistant("c", usage=usage, model=HOSTILE).write(shell.root)
    return shell


def test_the_sum_of_everything_is_a_page_of_facts(shell: Figuring) -> None:
    ran = shell.run()
    assert ran.code == 0
    assert ran.out.startswith("2 sessions\n")
    facts = dict(re.findall(r"^(\w[\w ]*?) {2,}(.+)$", ran.out, re.MULTILINE))
    assert facts["Prompts"] == "2"
    assert facts["Tokens"] == "2,020,000"
    assert facts["Cost"] == "≥$5.25 at prices of 2026-11-16"
    assert facts["Tool calls"] == "1, 1 failed (100 %)"
    assert "Without a known price, and in no cost: gpt|`<b>` with 1,010,000 tokens." in ran.out


@pytest.mark.parametrize("by", ["day", "week", "month", "source", "workspace", "model", "tool"])
def test_every_table_fits_and_says_the_same_as_json(by: str, shell: Figuring) -> None:
    ran = shell.run("--by", by)
    assert ran.code == 0
    assert all(len(line) <= 100 for line in ran.out.splitlines() if "█" in line)
    document = shell.json("--by", by)
    assert document["by"] == by
    for row in document["data"]:
        name = row["key"] if row["key"] != HOSTILE else "gpt|`<b>`"
        assert any(line.startswith(name) for line in ran.out.splitlines())


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--by", "model"],
        ["--by", "model", "--csv"],
        ["--explain", TWO],
        ["--year", "2026"],
        ["--year", "2026", "--format", "md"],
    ],
    ids=" ".join,
)
def test_what_a_history_holds_cannot_reach_the_terminal(arguments: list[str], shell: Figuring) -> None:
    ran = shell.run(*arguments)
    assert ran.code == 0
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", ran.out)


def test_csv_has_a_line_for_each_row_with_the_names_of_json(shell: Figuring) -> None:
    rows = list(csv.DictReader(shell.run("--by", "workspace", "--csv").out.splitlines()))
    assert {row["workspace"]: row["total_tokens"] for row in rows} == {
        "/home/zoe/ferry": "1010000",
        "/home/zoe/tides": "1010000",
    }
    (total,) = csv.DictReader(shell.run("--csv").out.splitlines())
    document = shell.json()["total"]
    assert set(total) - {"all"} == set(document) - {"key"}
    assert total["sessions"] == "2"


def test_no_cell_of_csv_is_taken_for_a_formula(tmp_path: Path) -> None:
    shell = Figuring(tmp_path)
    Transcript(ONE).user("a").assistant("b", model="=cmd|'/c calc'!A1").write(shell.root)
    rows = list(csv.DictReader(shell.run("--by", "model", "--csv").out.splitlines()))
    assert [row["model"] for row in rows] == ["'=cmd|'/c calc'!A1"]


def test_filters_are_those_of_the_list(shell: Figuring) -> None:
    assert shell.json("--workspace", "ferry")["total"]["sessions"] == 1
    assert shell.json("--model", "opus")["total"]["total_tokens"] == 1_010_000
    assert shell.run("--since", "2031-01-01").out == "No session fits.\n"


def test_days_are_those_of_the_machine_or_of_utc(tmp_path: Path) -> None:
    shell = Figuring(tmp_path)
    Transcript(ONE).user("a", timestamp="2026-10-03T22:30:00.000Z").write(shell.root)

    def days(*more: str) -> list[str]:
        return [row["key"] for row in shell.json("--by", "day", *more, TZ="Etc/GMT-3")["data"]]

    assert days() == ["2026-10-04"]
    assert days("--utc") == ["2026-10-03"]
    assert days("--since", "2026-10-04") == ["2026-10-04"]
    assert days("--since", "2026-10-04", "--utc") == []
    assert days("--until", "2026-10-03", "--utc") == ["2026-10-03"]


def test_a_session_and_a_day_are_explained_down_to_the_cost(shell: Figuring) -> None:
    document = shell.json("--explain", ONE)
    assert document["total_tokens"] == 1_010_000
    assert document["cost_usd"] == 5.25
    assert [one["fate"] for one in document["records"]] == ["counted"]
    assert document["records"][0]["origin"]["place"] == "line 2"
    (day,) = [row["key"] for row in shell.json("--by", "day")["data"]]
    assert shell.json("--explain", day)["total_tokens"] == 2_020_000
    told = shell.run("--explain", day).out
    assert "1,000,000 × $5" in told
    assert "1,010,000 tokens without a known price, in no cost" in told


def test_a_year_is_told_as_text_markdown_and_json(shell: Figuring) -> None:
    year = shell.json("--by", "day")["data"][0]["key"][:4]
    assert shell.run("--year", year).out.startswith(f"{year} in review\n")
    page = shell.run("--year", year, "--format", "md").out
    assert page.startswith(f"# {year} in review\n")
    assert "| Bash | 1 |" in page
    assert shell.json("--year", year)["total"]["sessions"] == 2
    assert "Nothing was said in this year." in shell.run("--year", "1999").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--by", "day", "--year", "2026"], "do not go together"),
        (["--csv", "--json"], "--csv goes with --by"),
        (["--format", "md"], "--format md goes with --year"),
        (["--year", "2026", "--since", "7d"], "leave --since and --until out"),
        (["--by", "mood"], "mood"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    arguments: list[str], said: str, shell: Figuring
) -> None:
    ran = shell.run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_somebody_without_a_history_is_told_where_was_looked(tmp_path: Path) -> None:
    shell = Figuring(tmp_path)
    assert shell.run().out.startswith("No history was found.")
    assert shell.run("--no-sync").out.startswith("The archive is empty.")
    assert shell.json()["total"]["sessions"] == 0


def test_a_price_table_that_cannot_be_understood_is_wrong_usage(shell: Figuring) -> None:
    shell.run()
    (shell.home / "config.toml").write_text('prices = "mine.toml"\n', encoding="utf-8")
    ran = shell.run()
    assert ran.code == 2
    assert "mine.toml cannot be read" in ran.err
