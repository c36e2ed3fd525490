"""``backscroll stats``."""

import csv
import re
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.run_command import Result, Shell

ONE = "10000000-0000-4000-8000-000000000000"
TWO = "20000000-0000-4000-8000-000000000000"
HOSTILE = "\x1b[2J\u202egpt|`<b>`"


class StatsShell(Shell):
    """Runs ``backscroll stats`` in UTC."""

    def run(self, *arguments: str | Path, **environ: str) -> Result:
        return super().run("stats", *arguments, **{"TZ": "UTC"} | environ)


@pytest.fixture
def shell(tmp_path: Path) -> StatsShell:
    shell = StatsShell(tmp_path)
    usage = {"input_tokens": 1_000_000, "output_tokens": 10_000}
    ferry = Transcript(ONE, cwd="/home/zoe/ferry").user("a")
    ferry.run(tool_calls.bash("make").failed("no rule"), usage=usage, model="claude-opus-4-5")
    ferry.write(shell.root)
    tides = Transcript(TWO, cwd="/home/zoe/tides", seed=2).user("b")
    tides.assistant("c", usage=usage, model=HOSTILE).write(shell.root)
    return shell


def test_stats_prints_totals(shell: StatsShell) -> None:
    result = shell.run()
    assert result.code == 0
    assert result.out.startswith("2 sessions\n")
    facts = dict(re.findall(r"^(\w[\w ]*?) {2,}(.+)$", result.out, re.MULTILINE))
    assert facts["Prompts"] == "2"
    assert facts["Tokens"] == "2,020,000"
    assert facts["Cost"] == "≥$5.25 (prices of 2026-11-16)"
    assert facts["Tool calls"] == "1, 1 failed (100 %)"
    assert "No known price, excluded from the cost: gpt|`<b>` (1,010,000 tokens)." in result.out


@pytest.mark.parametrize("by", ["day", "week", "month", "source", "workspace", "model", "tool"])
def test_every_table_fits_the_width_and_agrees_with_json(by: str, shell: StatsShell) -> None:
    result = shell.run("--by", by)
    assert result.code == 0
    assert all(len(line) <= 100 for line in result.out.splitlines() if "█" in line)
    document = shell.json("--by", by)
    assert document["by"] == by
    for row in document["data"]:
        name = row["key"] if row["key"] != HOSTILE else "gpt|`<b>`"
        assert any(line.startswith(name) for line in result.out.splitlines())


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
def test_control_characters_never_reach_the_terminal(arguments: list[str], shell: StatsShell) -> None:
    result = shell.run(*arguments)
    assert result.code == 0
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", result.out)


def test_csv_has_one_line_per_row_and_the_field_names_of_json(shell: StatsShell) -> None:
    rows = list(csv.DictReader(shell.run("--by", "workspace", "--csv").out.splitlines()))
    assert {row["workspace"]: row["total_tokens"] for row in rows} == {
        "/home/zoe/ferry": "1010000",
        "/home/zoe/tides": "1010000",
    }
    (total,) = csv.DictReader(shell.run("--csv").out.splitlines())
    document = shell.json()["total"]
    assert set(total) - {"all"} == set(document) - {"key"}
    assert total["sessions"] == "2"


def test_csv_cells_are_never_formulas(tmp_path: Path) -> None:
    shell = StatsShell(tmp_path)
    Transcript(ONE).user("a").assistant("b", model="=cmd|'/c calc'!A1").write(shell.root)
    rows = list(csv.DictReader(shell.run("--by", "model", "--csv").out.splitlines()))
    assert [row["model"] for row in rows] == ["'=cmd|'/c calc'!A1"]


def test_stats_accepts_the_filters_of_list(shell: StatsShell) -> None:
    assert shell.json("--workspace", "ferry")["total"]["sessions"] == 1
    assert shell.json("--model", "opus")["total"]["total_tokens"] == 1_010_000
    assert shell.run("--since", "2031-01-01").err == "No sessions match.\n"


def test_days_are_local_or_utc(tmp_path: Path) -> None:
    shell = StatsShell(tmp_path)
    Transcript(ONE).user("a", timestamp="2026-10-03T22:30:00.000Z").write(shell.root)

    def days(*more: str) -> list[str]:
        return [row["key"] for row in shell.json("--by", "day", *more, TZ="Etc/GMT-3")["data"]]

    assert days() == ["2026-10-04"]
    assert days("--utc") == ["2026-10-03"]
    assert days("--since", "2026-10-04") == ["2026-10-04"]
    assert days("--since", "2026-10-04", "--utc") == []
    assert days("--until", "2026-10-03", "--utc") == ["2026-10-03"]


def test_explain_lists_usage_records_and_cost_of_a_session_or_day(shell: StatsShell) -> None:
    document = shell.json("--explain", ONE)
    assert document["total_tokens"] == 1_010_000
    assert document["cost_usd"] == 5.25
    assert [record["fate"] for record in document["records"]] == ["counted"]
    assert document["records"][0]["origin"]["place"] == "line 2"
    (day,) = [row["key"] for row in shell.json("--by", "day")["data"]]
    assert shell.json("--explain", day)["total_tokens"] == 2_020_000
    output = shell.run("--explain", day).out
    assert "1,000,000 × $5" in output
    assert "1,010,000 tokens, no known price: excluded from the cost" in output


def test_a_year_is_printed_as_text_markdown_and_json(shell: StatsShell) -> None:
    year = shell.json("--by", "day")["data"][0]["key"][:4]
    assert shell.run("--year", year).out.startswith(f"{year} in review\n")
    page = shell.run("--year", year, "--format", "md").out
    assert page.startswith(f"# {year} in review\n")
    assert "| Bash | 1 |" in page
    assert shell.json("--year", year)["total"]["sessions"] == 2
    assert "No sessions in 1999." in shell.run("--year", "1999").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "day", "--year", "2026"], "cannot be combined"),
        (["--csv", "--json"], "--csv can only be combined with --by"),
        (["--format", "md"], "--format md requires --year"),
        (["--year", "2026", "--since", "7d"], "cannot be combined with --since or --until"),
        (["--by", "mood"], "mood"),
    ],
)
def test_options_that_cannot_be_combined_are_a_usage_error(
    arguments: list[str], message: str, shell: StatsShell
) -> None:
    result = shell.run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_without_history_the_searched_folders_are_printed(tmp_path: Path) -> None:
    shell = StatsShell(tmp_path)
    assert "No history found." in shell.run().err
    assert "The archive is empty." in shell.run("--no-sync").err
    assert shell.json()["total"]["sessions"] == 0


def test_an_unreadable_price_table_is_a_usage_error(shell: StatsShell) -> None:
    shell.run()
    (shell.home / "config.toml").write_text('prices = "mine.toml"\n', encoding="utf-8")
    result = shell.run()
    assert result.code == 2
    assert "mine.toml cannot be read" in result.err
