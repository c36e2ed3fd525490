"""Lines that sessions wrote, committed and kept."""

from datetime import UTC, timedelta
from pathlib import Path

import pytest

from backscroll.model.commit import SurvivalRow
from backscroll.testing.claude_code import tool_calls
from tests.builders.git_repository import GitRepository
from tests.commits.conftest import START, Workplace


def lines(prefix: str, *numbers: int) -> str:
    """Return one line for each number."""
    return "".join(f"{prefix}_{number} = {number}\n" for number in numbers)


def survival(workplace: Workplace, repository: Path | None = None, **options: object) -> list[SurvivalRow]:
    with workplace.history() as history:
        found = history.commits.survival(repository or workplace.checkout.folder, zone=UTC, **options)  # type: ignore[arg-type]
    return list(found)


def counts(rows: list[SurvivalRow]) -> dict[str | None, tuple[int, int, int]]:
    return {row.key: (row.lines_written, row.lines_committed, row.lines_alive) for row in rows}


def test_lines_are_written_then_committed_then_alive(workplace: Workplace) -> None:
    first, second = workplace.session(0), workplace.session(5)
    first.write("src/prices.py", lines("price", 1, 2, 3, 4, 5))
    first.commit("Add prices")
    second.edit("src/prices.py", lines("price", 2, 3), lines("cost", 2))  # replaces two lines by one
    second.commit("Rename one")
    second.write("src/notes.py", lines("note", 1, 2))  # never committed
    assert counts(survival(workplace)) == {first.ref: (5, 5, 3), second.ref: (3, 1, 1)}


def test_lines_that_the_user_changes_or_repeats_are_not_alive(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", lines("price", 1, 2, 3))
    session.commit("Add prices")
    workplace.checkout.write("src/prices.py", lines("price", 1) + lines("other", 2))
    workplace.checkout.commit("By hand", START + timedelta(days=1))
    assert counts(survival(workplace)) == {session.ref: (3, 3, 1)}
    workplace.checkout.write("src/prices.py", lines("price", 1) + lines("other", 2) + lines("price", 3))
    workplace.checkout.commit("The same text again, by hand", START + timedelta(days=2))
    assert counts(survival(workplace)) == {session.ref: (3, 3, 1)}


def test_moved_renamed_and_reformatted_lines_stay_alive(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", lines("price", 1, 2, 3, 4))
    session.commit("Add prices")
    checkout = workplace.checkout
    checkout.run("mv", "src/prices.py", "src/costs.py")
    checkout.commit("Rename", START + timedelta(days=1))
    checkout.write("src/costs.py", lines("price", 1, 2))
    checkout.write("src/more.py", lines("price", 3, 4))
    checkout.commit("Split", START + timedelta(days=2))
    checkout.write("src/more.py", lines("price", 3, 4).replace(" = ", "  =  "))
    checkout.commit("Format", START + timedelta(days=3))
    assert counts(survival(workplace)) == {session.ref: (4, 4, 4)}
    checkout.run("rm", "--quiet", "src/costs.py")
    checkout.commit("Remove", START + timedelta(days=4))
    assert counts(survival(workplace)) == {session.ref: (4, 4, 2)}


@pytest.mark.parametrize("is_squashed", [True, False])
def test_lines_of_a_merged_branch_are_alive(workplace: Workplace, is_squashed: bool) -> None:
    checkout = workplace.checkout
    checkout.commit("Start", START - timedelta(days=1))
    checkout.run("checkout", "--quiet", "-b", "feature")
    session = workplace.session(0, branch="feature")
    session.write("src/prices.py", lines("price", 1, 2, 3))
    session.commit("Add prices")
    session.edit("src/prices.py", lines("price", 3), lines("price", 4))
    session.commit("Replace one")
    checkout.run("checkout", "--quiet", "main")
    expected = {session.ref: (4, 0, 0)}
    assert counts(survival(workplace)) == expected
    if is_squashed:
        checkout.run("merge", "--quiet", "--squash", "feature")
        checkout.commit("Prices", START + timedelta(days=1))
        expected = {session.ref: (4, 3, 3)}  # the squash does not contain the replaced line
    else:
        checkout.run("merge", "--quiet", "--no-ff", "-m", "Merge", "feature", at=START + timedelta(days=1))
        expected = {session.ref: (4, 3, 3)}
    assert counts(survival(workplace)) == expected
    assert counts(survival(workplace, ref="feature")) == {session.ref: (4, 4, 3)}


def test_rows_by_month_and_model_add_up_to_the_same(workplace: Workplace) -> None:
    first, second = workplace.session(0), workplace.session(24 * 35)
    first.write("src/prices.py", lines("price", 1, 2, 3))
    first.commit("Add prices")
    second.write("src/orders.py", lines("order", 1, 2))
    second.commit("Add orders")
    months = survival(workplace, by="month")
    assert counts(months) == {"2026-03": (3, 3, 3), "2026-04": (2, 2, 2)}
    models = survival(workplace, by="model")
    assert [(row.lines_written, row.lines_alive) for row in models] == [(5, 5)]
    assert models[0].key is not None and models[0].key.startswith("claude-")
    assert counts(survival(workplace, since=START + timedelta(days=2))) == {second.ref: (2, 2, 2)}


def test_the_cost_is_that_of_the_sessions(workplace: Workplace) -> None:
    session, other = workplace.session(0), workplace.session(1)
    for each in (session, other):
        each.transcript.assistant(
            "Done.", usage={"input_tokens": 1_000_000, "output_tokens": 100_000}, model="claude-sonnet-4-5"
        )
    session.write("src/prices.py", lines("price", 1, 2, 3, 4))
    session.commit("Add prices")
    with workplace.history() as history:
        spent = history.statistics.explain_session(session.ref).usd
    (row,) = survival(workplace)
    assert row.cost_usd == pytest.approx(spent)
    assert row.cost_usd is not None and row.cost_usd > 1
    assert row.cost_per_alive_line == pytest.approx(row.cost_usd / 4)


def test_only_files_of_the_repository_count(workplace: Workplace) -> None:
    other = GitRepository(workplace.folder / "work" / "other")
    session = workplace.session(0)
    session.write("src/prices.py", lines("price", 1, 2, 3))
    session.write("src/prices.py", lines("page", 1, 2), checkout=other)
    session.commit("Add prices")
    other.commit("Add pages", session.now)
    assert counts(survival(workplace)) == {session.ref: (3, 3, 3)}
    assert counts(survival(workplace, other.folder)) == {session.ref: (2, 2, 2)}
    clone = workplace.checkout.bare_clone(workplace.folder / "elsewhere" / "shop.git")
    assert counts(survival(workplace, clone)) == {session.ref: (3, 3, 3)}


def test_a_line_of_a_script_counts_if_it_is_committed(workplace: Workplace) -> None:
    session = workplace.session(0)
    text = lines("price_of_the_whole_season", 1, 2, 3)
    script = "text = '''\n" + text + "'''\nopen('src/prices.py', 'w').write(text)\n"
    session.shell(f"python3 - <<'EOF'\n{script}EOF")
    workplace.checkout.write("src/prices.py", text)
    session.commit("Add prices")
    assert counts(survival(workplace)) == {session.ref: (3, 3, 3)}


def test_a_subagent_writes_for_its_session(workplace: Workplace) -> None:
    session = workplace.session(0)
    path = workplace.checkout.folder / "src/prices.py"
    text = lines("price", 1, 2)
    session.transcript.delegate("Add prices", "Done.", calls=[tool_calls.write(str(path), text)])
    workplace.checkout.write("src/prices.py", text)
    session.commit("Add prices")
    assert counts(survival(workplace)) == {session.ref: (2, 2, 2)}


def test_a_repository_without_commits_has_no_lines_alive(workplace: Workplace) -> None:
    assert survival(workplace) == []
    session = workplace.session(0)
    session.write("src/prices.py", lines("price", 1, 2))
    assert counts(survival(workplace)) == {session.ref: (2, 0, 0)}


def test_every_repetition_of_a_line_counts(workplace: Workplace) -> None:
    session = workplace.session(0)
    parts = [f"def price_{number}(value):\n    check(value)\n    return value + 1\n\n" for number in range(5)]
    session.write("src/prices.py", "".join(parts))
    session.commit("Add prices")
    assert counts(survival(workplace)) == {session.ref: (15, 15, 15)}
    workplace.checkout.write("src/prices.py", "".join(parts[:2]))
    workplace.checkout.commit("Remove three", START + timedelta(days=1))
    assert counts(survival(workplace)) == {session.ref: (15, 15, 6)}
    workplace.checkout.write("src/prices.py", "".join(parts[:2]) + "    check(value)\n")
    workplace.checkout.commit("One line by hand", START + timedelta(days=2))
    assert counts(survival(workplace)) == {session.ref: (15, 15, 6)}


def test_lines_in_a_submodule_do_not_count(workplace: Workplace) -> None:
    library = GitRepository(workplace.folder / "library")
    library.commit("Start", START - timedelta(days=2))
    workplace.checkout.run(
        *("-c", "protocol.file.allow=always", "submodule", "--quiet"),
        *("add", str(library.folder), "vendor/library"),
    )
    workplace.checkout.commit("Add the library", START - timedelta(days=1))
    session = workplace.session(0)
    session.write("vendor/library/tool.py", lines("tool", 1, 2, 3))
    inner = GitRepository(workplace.checkout.folder / "vendor/library", is_existing=True)
    inner.commit("Add the tool", session.now)
    workplace.checkout.commit("Update the library", session.now)
    assert survival(workplace) == []
    assert counts(survival(workplace, inner.folder)) == {session.ref: (3, 3, 3)}
