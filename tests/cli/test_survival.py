"""``backscroll survival``."""

import shutil
from datetime import UTC, datetime

import pytest

from tests.builders.coding_session import CodingSession
from tests.builders.git_repository import GitRepository
from tests.cli.run_command import Shell
from tests.cli.terminal import in_terminal, without_escapes

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

REF = "claude-code:5e551011-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return a synced history: a session wrote four lines, three were committed, two are left."""
    shell = Shell(tmp_path_factory.mktemp("survival"))
    checkout = GitRepository(shell.folder / "shop")
    session = CodingSession(checkout, REF.partition(":")[2], datetime(2026, 3, 2, 9, tzinfo=UTC))
    session.prompt("Add prices")
    session.transcript.assistant("Yes.", usage={"input_tokens": 2_000_000}, model="claude-sonnet-4-5")
    session.write("prices.py", "price_1 = 1\nprice_2 = 2\nprice_3 = 3\n")
    session.commit("Add prices")
    session.write("orders.py", "order_1 = 1\n")
    checkout.write("prices.py", "price_1 = 1\nprice_2 = 2\n")
    checkout.run("commit", "--quiet", "-am", "Remove one", at=datetime(2026, 3, 3, tzinfo=UTC))
    session.save(shell.root)
    shell.sync()
    return shell


def test_json_has_the_fields_of_the_contract(shell: Shell) -> None:
    (row,) = shell.json("survival", "--repo", shell.folder / "shop")["data"]
    assert (row["key"], row["lines_written"], row["lines_committed"], row["lines_alive"]) == (REF, 4, 3, 2)
    assert row["priced_lines_alive"] == 2
    assert row["cost_per_alive_line_usd"] == pytest.approx(row["cost_usd"] / 2)


def test_a_pipe_gets_lines_with_tabs(shell: Shell) -> None:
    result = shell.run("survival", "--by", "month", "--repo", shell.folder / "shop")
    month, written, committed, alive, cost, per_line = result.out.rstrip("\n").split("\t")
    assert (month, written, committed, alive) == ("2026-03", "4", "3", "2")
    assert float(cost) == pytest.approx(2 * float(per_line))


@pytest.mark.parametrize("columns", [60, 80])
def test_a_terminal_shows_a_table_that_fits(shell: Shell, columns: int) -> None:
    arguments = (*shell.options, "survival", "--repo", shell.folder / "shop")
    heading, row, _, *note = without_escapes(in_terminal(*arguments, columns=columns)).splitlines()
    assert " ".join(note) == "Cost per line: divided by the 2 alive lines of sessions with a known cost."
    assert max(map(len, note)) <= columns
    assert len(heading) == len(row) <= columns
    assert heading.split() == ["session", "written", "committed", "alive", "cost", "per", "line"]
    assert row.split()[-5:-2] == ["4", "3", "2"]


def test_a_repository_without_sessions_says_so(shell: Shell) -> None:
    other = GitRepository(shell.folder / "empty")
    result = shell.run("survival", "--repo", other.folder)
    assert (result.code, result.out) == (0, "")
    assert "No session wrote lines into this repository." in result.err
    result = shell.run("survival", "--repo", shell.folder)
    assert result.code == 1
    assert "is not in a git repository" in result.err
