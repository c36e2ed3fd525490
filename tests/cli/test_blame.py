"""``backscroll blame``."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.builders.coding_session import CodingSession
from tests.builders.git_repository import GitRepository
from tests.cli.run_command import Shell
from tests.cli.terminal import in_terminal, without_escapes

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

SESSION = "5e551011-0000-4000-8000-000000000001"
LONG_LINE = f"description = '{'harbour ' * 20}'"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return a synced history with one session, which changed a file of a repository."""
    shell = Shell(tmp_path_factory.mktemp("blame"))
    checkout = GitRepository(shell.folder / "shop")
    checkout.write("prices.py", "first_price = 1\n")
    checkout.commit("Start", datetime(2026, 3, 1, 9, tzinfo=UTC))
    session = CodingSession(checkout, SESSION, datetime(2026, 3, 2, 9, tzinfo=UTC))
    session.prompt("Add VAT,\nplease")
    session.edit("prices.py", "first_price = 1\n", f"first_price = 1\nvat_rate\t= 0.25\n{LONG_LINE}\n")
    session.commit("Add VAT")
    session.save(shell.root)
    shell.sync()
    return shell


def test_json_has_one_object_for_each_line(shell: Shell) -> None:
    document = shell.json("blame", shell.folder / "shop" / "prices.py:1-2")
    first, second = document["data"]
    assert (first["line"], first["text"], first["session_ref"], first["prompt"]) == (
        1,
        "first_price = 1",
        None,
        None,
    )
    assert len(first["sha"]) == 40
    assert (second["line"], second["session_ref"]) == (2, f"claude-code:{SESSION}")
    assert second["prompt"] == "Add VAT,\nplease"
    assert second["message_id"]
    assert (second["author"], second["at"][:10], second["subject"]) == ("Robin Vale", "2026-03-02", "Add VAT")
    assert document["is_complete"] is True


def test_a_pipe_gets_lines_with_tabs(shell: Shell) -> None:
    result = shell.run("blame", "prices.py", "--repo", shell.folder / "shop")
    first, second, _ = (line.split("\t", 5) for line in result.out.splitlines())
    assert (first[0], first[2:]) == ("1", ["", "", "", "first_price = 1"])
    assert (second[2], second[4:]) == (f"claude-code:{SESSION}", ["Add VAT, please", "vat_rate\t= 0.25"])


@pytest.mark.parametrize("columns", [40, 80])
def test_a_terminal_shows_groups_that_fit_its_width(shell: Shell, columns: int) -> None:
    arguments = (*shell.options, "blame", "prices.py", "--repo", shell.folder / "shop")
    lines = without_escapes(in_terminal(*arguments, columns=columns)).splitlines()
    assert max(map(len, lines)) <= columns
    head, first, empty, second, prompt, *rest = lines
    assert head[9:].startswith("  2026-03-01  (no session)  Ro")
    assert (first, empty) == ("1  first_price = 1", "")
    assert ("2026-03-02  " in second) == (columns == 80)
    assert "  claude-code:5e551011" in second
    assert prompt == "> Add VAT, please"
    assert rest[0] == "2  vat_rate    = 0.25"
    assert rest[1].endswith("…")


def test_errors_say_what_to_do(shell: Shell, tmp_path: Path) -> None:
    shop = shell.folder / "shop"
    (shop / "new.py").write_text("x = 1\n")
    (shop / "with:12").write_text("x = 1\n")
    outside = tmp_path / "a.py"
    outside.write_text("x = 1\n")
    expected = {
        shop / "prices.py:9": "prices.py has 3 lines, not 9.",
        shop / "prices.py:3-2": "3-2 is not a range of lines. Lines count from 1.",
        shop / "new.py": "new.py is not tracked by git. Run 'git add new.py' to track it.",
        shop / "with:12": "with:12 is not tracked by git. Run 'git add with:12' to track it.",
        outside: "is not in a git repository. Pass --repo DIR to name a repository.",
        tmp_path / "missing" / "b.py": "missing/b.py does not exist.",
    }
    for file, text in expected.items():
        result = shell.run("blame", file)
        assert (result.code, result.out) == (1 if "range" not in text and "lines," not in text else 2, "")
        assert text in result.err
    result = shell.run("blame", shop / "prices.py", PATH="/nowhere")
    assert result.code == 1
    assert "git is not installed" in result.err
