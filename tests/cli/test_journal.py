"""``backscroll journal``."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.builders.coding_session import CodingSession
from tests.builders.git_repository import GitRepository
from tests.cli.run_command import Shell

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

SESSION = "5e551011-0000-4000-8000-000000000001"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Return a synced history with one session, which changed a file of a repository."""
    shell = Shell(tmp_path)
    checkout = GitRepository(shell.folder / "shop")
    checkout.write("prices.py", "first_price = 1\n")
    checkout.commit("Start", datetime(2026, 3, 1, 9, tzinfo=UTC))
    session = CodingSession(checkout, SESSION, datetime(2026, 3, 2, 9, tzinfo=UTC))
    session.prompt("Add VAT, please")
    session.edit("prices.py", "first_price = 1\n", "first_price = 1\nvat_rate_of_this_country = 0.25\n")
    session.transcript.assistant("I left out reduced rates, because the shop sells no books.")
    session.commit("Add VAT")
    session.save(shell.root)
    shell.sync()
    return shell


def test_json_has_the_entry_and_its_path(shell: Shell) -> None:
    repository = shell.folder / "shop"
    document = shell.json("journal", "HEAD", "--repo", repository, TZ="UTC")
    assert list(document)[:3] == ["sha", "path", "is_new"]
    assert document["is_new"] is True and document["is_complete"] is True
    assert Path(document["path"]).name == "2026-03-02-journal.md"
    assert "because the shop sells no books" in document["sections"]["decisions"]
    assert {
        "speaker": "user",
        "text": "Add VAT, please",
        "at": "2026-03-02T09:00:05.759Z",
        "session_ref": f"claude-code:{SESSION}",
        "message_index": 0,
        "has_inferred_time": False,
    } in document["quotes"]
    again = shell.json("journal", "--repo", repository, "--no-sync", TZ="UTC")
    assert (again["is_new"], again["sha"], again["sections"]) == (
        False,
        document["sha"],
        document["sections"],
    )


def test_a_commit_is_written_and_printed(shell: Shell) -> None:
    repository = shell.folder / "shop"
    result = shell.run("journal", "HEAD", "--repo", repository, "--print", "--no-sync")
    assert result.out.startswith("### Summary")
    assert result.err.startswith("Wrote the entry of ")
    again = shell.run("journal", "HEAD", "--repo", repository, "--no-sync")
    assert " is already in " in again.out


def test_a_period_is_filled_and_summarized(shell: Shell) -> None:
    repository = shell.folder / "shop"
    result = shell.run(
        "journal", "--month", "2026-03", "--repo", repository, "--journal", shell.folder / "j", "--no-sync"
    )
    first, second = result.out.splitlines()
    assert first == f"2 entries written. Journal: {shell.folder / 'j'}"
    assert second == f"Summary: {shell.folder / 'j/summaries/monthly/2026-03-summary.md'}"
    document = shell.json(
        "journal", "--since", "2026-01-01", "--repo", repository, "--journal", shell.folder / "j"
    )
    assert (document["written"], document["existing"]) == ([], 2)


def test_notes_and_the_file_of_a_day(shell: Shell) -> None:
    options = ("--repo", shell.folder / "shop", "--journal", shell.folder / "j")
    note = shell.json("journal", "reflect", "It", "works", *options)
    assert (note["kind"], note["text"]) == ("reflection", "It works")
    assert shell.run("journal", "capture", "Waiting for Kim", *options).code == 0
    shown = shell.run("journal", "show", *options).out
    assert "It works" in shown and "Waiting for Kim" in shown and "<!--" not in shown
    assert shell.json("journal", "show", "2020-01-01", *options)["text"] is None
    assert shell.run("journal", "path", *options).out.strip() == str(shell.folder / "j")


def test_wrong_usage_is_explained(shell: Shell) -> None:
    repository = shell.folder / "shop"
    for arguments, message in [
        (["--day", "soon"], "'soon' is not a day."),
        (["--day", "today", "--week", "today"], "Use one of --day"),
        (["HEAD~1", "--month", "2026-03"], "not both"),
        (["HEAD", "--week"], "not both"),
        (["HEAD", "--since", "2026-03"], "not both"),
        (["nonesuch"], "No commit of "),
        (["reflect"], "There is no text."),
    ]:
        result = shell.run("journal", *arguments, "--repo", repository)
        assert result.code in (1, 2) and message in result.err, arguments
        assert "Traceback" not in result.err
    elsewhere = shell.run("journal", "--repo", shell.folder, "--no-sync")
    assert elsewhere.code == 1 and "not in a git repository" in elsewhere.err


def test_quiet_prints_nothing_and_logs_errors(shell: Shell) -> None:
    done = shell.run("journal", "HEAD", "--quiet", "--repo", shell.folder / "shop")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert len(list((shell.home / "journal").rglob("*-journal.md"))) == 1
    failed = shell.run("journal", "HEAD", "--quiet", "--repo", shell.folder)
    assert (failed.code, failed.out, failed.err) == (0, "", "")
    assert "is not in a git repository" in (shell.home / "journal.log").read_text()


def test_a_model_that_is_missing_leaves_the_extracted_entry(shell: Shell) -> None:
    result = shell.run(
        "journal", "--repo", shell.folder / "shop", "--model", "nonesuch", "--json", "--no-sync",
        LLM_USER_PATH=str(shell.folder / "llm"),
    )  # fmt: skip
    assert "The entry was extracted without a model." in result.err
    document = json.loads(result.out)
    assert document["is_new"] is True and document["model"] is None
    filled = shell.run(
        "journal", "--since", "2026", "--repo", shell.folder / "shop", "--model", "nonesuch", "--no-sync",
        "--journal", shell.folder / "j", LLM_USER_PATH=str(shell.folder / "llm"),
    )  # fmt: skip
    assert filled.err.count("The entry was extracted without a model.") == 1
    assert filled.out.startswith("2 entries written.")


def test_help_is_that_of_the_group_or_of_the_default_command(shell: Shell) -> None:
    assert "Commands:" in shell.run("journal", "-h").out
    assert "Usage: backscroll journal write" in shell.run("journal", "HEAD", "--help").out
