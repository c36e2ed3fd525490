"""The sessions that are found for commits."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from backscroll.commits import link
from backscroll.commits.scan import SessionWork, load_sessions
from backscroll.model.commit import Evidence
from backscroll.testing.claude_code import tool_calls
from tests.builders.git_repository import GitRepository
from tests.cli.unprivileged import run_unprivileged
from tests.commits.conftest import START, Workplace

Code = Callable[[str, int], str]


def weights(evidence: tuple[Evidence, ...]) -> dict[str, float]:
    return {each.kind: each.weight for each in evidence}


def test_a_commit_of_the_assistant_has_its_session_with_all_evidence(
    workplace: Workplace, code: Code
) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", code("price", 3))
    sha = session.commit("Add prices")
    (linked,) = workplace.commits()[sha].sessions
    assert linked.session_ref == session.ref
    assert linked.session_id == session.id
    assert set(weights(linked.evidence)) == {"commit", "content", "files", "time", "workspace", "branch"}
    assert linked.score == pytest.approx(sum(weights(linked.evidence).values()), abs=0.001)
    assert linked.score > 0.95


def test_a_commit_of_the_user_has_the_session_that_wrote_its_lines(workplace: Workplace, code: Code) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", code("price", 3))
    sha = workplace.checkout.commit("Add prices", START + timedelta(minutes=20))
    (linked,) = workplace.commits()[sha].sessions
    assert linked.session_ref == session.ref
    assert "commit" not in weights(linked.evidence)
    assert weights(linked.evidence)["content"] > 0.25


def test_a_commit_of_the_user_alone_has_no_session(workplace: Workplace, code: Code) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", code("price", 3))
    session.commit("Add prices")
    session.wait(5)
    session.prompt("Explain the prices")
    workplace.checkout.write("README.md", "How to run the shop: install it, then start the server.\n")
    at_the_same_time = workplace.checkout.commit("Explain how to run it", session.now)
    edited = (workplace.checkout.folder / "src/prices.py").read_text() + "LIMIT_OF_THE_USER = 1_000_000\n"
    workplace.checkout.write("src/prices.py", edited)
    same_file = workplace.checkout.commit("Add a limit", session.now + timedelta(minutes=1))
    workplace.checkout.write("notes.txt", "Bought milk and a new keyboard for the office.\n")
    days_later = workplace.checkout.commit("Notes", session.now + timedelta(days=3))
    found = workplace.commits()
    assert [found[sha].sessions for sha in (at_the_same_time, same_file, days_later)] == [(), (), ()]


def test_moving_and_reformatting_committed_lines_is_no_claim(workplace: Workplace, code: Code) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", code("price", 8))
    session.commit("Add prices")
    text = (workplace.checkout.folder / "src/prices.py").read_text()
    half = len(text) // 2
    workplace.checkout.write("src/prices.py", text[:half])
    workplace.checkout.write("src/discounts.py", text[half:])
    moved = workplace.checkout.commit("Split the module", START + timedelta(days=1))
    workplace.checkout.write("src/prices.py", text[:half].replace("    ", "        "))
    reformatted = workplace.checkout.commit("Indent by eight", START + timedelta(days=2))
    found = workplace.commits()
    assert (found[moved].sessions, found[reformatted].sessions) == ((), ())


@pytest.mark.parametrize("is_branch_kept", [True, False])
def test_a_squash_has_all_sessions_of_its_commits(
    workplace: Workplace, code: Code, is_branch_kept: bool
) -> None:
    checkout = workplace.checkout
    checkout.commit("Start", START - timedelta(days=1))
    checkout.run("checkout", "--quiet", "-b", "feature")
    first, second = workplace.session(0, branch="feature"), workplace.session(30, branch="feature")
    first.write("src/prices.py", code("price", 5))
    first.commit("Add prices")
    second.write("src/orders.py", code("order", 5))
    second.commit("Add orders")
    checkout.run("checkout", "--quiet", "main")
    checkout.run("merge", "--quiet", "--squash", "feature")
    sha = checkout.commit("Shop features", START + timedelta(days=7))
    if not is_branch_kept:
        checkout.run("branch", "--quiet", "-D", "feature")
    assert set(workplace.refs(sha)) == {first.ref, second.ref}


def test_a_rebased_commit_keeps_its_session(workplace: Workplace, code: Code) -> None:
    checkout = workplace.checkout
    checkout.commit("Start", START - timedelta(days=1))
    checkout.run("checkout", "--quiet", "-b", "feature")
    session = workplace.session(0, branch="feature")
    session.write("src/prices.py", code("price", 3))
    before = session.commit("Add prices")
    checkout.run("checkout", "--quiet", "main")
    checkout.write("README.md", "The shop of the harbour, open every day of the week.\n")
    other = checkout.commit("Describe the shop", START + timedelta(hours=20))
    checkout.run("checkout", "--quiet", "feature")
    checkout.run("rebase", "--quiet", "main")
    after = checkout.head()
    assert after != before
    assert workplace.refs(after) == [session.ref]
    assert workplace.refs(other) == []


def test_a_cherry_picked_commit_keeps_its_session(workplace: Workplace, code: Code) -> None:
    checkout = workplace.checkout
    checkout.commit("Start", START - timedelta(days=1))
    checkout.run("checkout", "--quiet", "-b", "feature")
    session = workplace.session(0, branch="feature")
    session.write("src/prices.py", code("price", 3))
    original = session.commit("Add prices")
    checkout.run("checkout", "--quiet", "main")
    checkout.run("cherry-pick", "-x", original)
    found = workplace.commits()
    for sha in (original, checkout.head()):
        assert [linked.session_ref for linked in found[sha].sessions] == [session.ref]


def test_an_amended_commit_has_the_session_that_amended_it_too(workplace: Workplace, code: Code) -> None:
    first, second = workplace.session(0), workplace.session(3)
    first.write("src/prices.py", code("price", 3))
    first.commit("Add prices")
    second.write("src/orders.py", code("order", 3))
    workplace.checkout.run("add", "--all")
    workplace.checkout.run("commit", "--quiet", "--amend", "--no-edit")
    assert set(workplace.refs(workplace.checkout.head())) == {first.ref, second.ref}


def test_two_interleaved_sessions_get_their_own_commits(workplace: Workplace, code: Code) -> None:
    one, two = workplace.session(0), workplace.session(0.01)
    expected = {}
    for number in range(4):
        for session, name in ((one, "price"), (two, "order")):
            session.wait(5)
            session.write(f"src/{name}_{number}.py", code(f"{name}{number}", 2))
            expected[session.commit(f"Add {name} {number}")] = session.ref
    found = workplace.commits()
    assert {sha: found[sha].sessions[0].session_ref for sha in expected} == expected


def test_interleaved_sessions_are_distinguished_when_the_user_commits(
    workplace: Workplace, code: Code
) -> None:
    one, two = workplace.session(0), workplace.session(0.01)
    for session, name in ((one, "price"), (two, "order")):
        session.wait(5)
        session.write(f"src/{name}.py", code(name, 4))
    workplace.checkout.run("add", "src/price.py")
    workplace.checkout.run("commit", "--quiet", "-m", "Prices", at=START + timedelta(minutes=9))
    prices = workplace.checkout.head()
    orders = workplace.checkout.commit("Orders", START + timedelta(minutes=10))
    assert (workplace.refs(prices), workplace.refs(orders)) == ([one.ref], [two.ref])


def test_one_session_is_found_in_three_repositories(workplace: Workplace, code: Code) -> None:
    others = [GitRepository(workplace.folder / "work" / name) for name in ("api", "site")]
    session = workplace.session(0)
    shas = []
    for checkout in (workplace.checkout, *others):
        session.write("src/main.py", code(checkout.folder.name, 3), checkout=checkout)
        shas.append(checkout.commit("Start", session.now))
    for sha, checkout in zip(shas, (workplace.checkout, *others), strict=True):
        assert workplace.refs(sha, checkout.folder) == [session.ref]


def test_a_commit_in_a_worktree_has_the_session_that_worked_there(workplace: Workplace, code: Code) -> None:
    workplace.checkout.commit("Start", START - timedelta(days=1))
    tree = workplace.checkout.worktree(workplace.folder / "work" / "shop-fix", "fix")
    there = workplace.session(0, checkout=tree, branch="fix")
    here = workplace.session(0)
    there.write("src/prices.py", code("price", 3))
    here.write("src/orders.py", code("order", 3))
    sha = tree.commit("Add prices", START + timedelta(minutes=10))
    (linked,) = workplace.commits()[sha].sessions
    assert linked.session_ref == there.ref
    assert {"worktree", "branch"} <= set(weights(linked.evidence))
    assert workplace.refs(sha, tree.folder) == [there.ref]


def test_reformatting_after_the_edit_does_not_hide_the_session(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.write(
        "src/shop.js", "const title = 'Harbour shop'\nconst limit = { small: 'ten', large: 'many' };\n"
    )
    formatted = 'const title = "Harbour shop";\n\nconst limit = {small: "ten", large: "many"};\n'
    workplace.checkout.write("src/shop.js", formatted)
    sha = workplace.checkout.commit("Add the shop", START + timedelta(minutes=5))
    (linked,) = workplace.commits()[sha].sessions
    assert weights(linked.evidence)["content"] > 0.25


def test_a_file_that_was_moved_before_the_commit_keeps_its_session(workplace: Workplace, code: Code) -> None:
    session = workplace.session(0)
    session.write("prices.py", code("price", 4))
    (workplace.checkout.folder / "src").mkdir()
    (workplace.checkout.folder / "prices.py").rename(workplace.checkout.folder / "src" / "cost.py")
    sha = workplace.checkout.commit("Add costs", START + timedelta(days=9))
    assert workplace.refs(sha) == [session.ref]


def test_another_clone_in_another_folder_has_the_same_sessions(workplace: Workplace, code: Code) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", code("price", 3))
    by_assistant = session.commit("Add prices")
    session.write("src/orders.py", code("order", 3))
    by_user = workplace.checkout.commit("Add orders", session.now)
    bare = workplace.checkout.bare_clone(workplace.folder / "elsewhere" / "copy.git")
    for sha in (by_assistant, by_user):
        assert workplace.refs(sha, bare) == [session.ref]
    (linked,) = workplace.commits(bare)[by_user].sessions
    assert "workspace" in weights(linked.evidence)


def test_the_last_session_that_wrote_a_line_is_first(workplace: Workplace, code: Code) -> None:
    early, late = workplace.session(0), workplace.session(2)
    early.write("src/prices.py", code("price", 3))
    (workplace.checkout.folder / "src/prices.py").unlink()
    late.write("src/prices.py", code("price", 3))
    sha = workplace.checkout.commit("Add prices", late.now)
    assert workplace.refs(sha)[0] == late.ref


def test_the_session_that_commits_is_before_the_one_that_wrote(workplace: Workplace, code: Code) -> None:
    writer, committer = workplace.session(0), workplace.session(0.5)
    writer.write("src/prices.py", code("price", 3))
    sha = committer.commit("Add prices")
    assert workplace.refs(sha) == [committer.ref, writer.ref]


def test_a_quiet_commit_is_found_by_message_and_time(workplace: Workplace) -> None:
    session, other = workplace.session(0), workplace.session(0)
    session.shell("make generate")
    other.shell("make test")
    workplace.checkout.write("generated.sql", "create table price (amount integer not null);\n")
    sha = session.commit("Generate the schema", is_quiet=True)
    (linked,) = workplace.commits()[sha].sessions
    assert linked.session_ref == session.ref
    assert weights(linked.evidence)["commit"] > 0.35


def test_a_file_changed_by_a_command_is_evidence(workplace: Workplace, code: Code) -> None:
    workplace.checkout.write("src/prices.py", code("price", 3))
    workplace.checkout.commit("Start", START - timedelta(hours=1))
    session = workplace.session(0)
    session.shell("sed -i 's/price/cost/g' src/prices.py")
    workplace.checkout.write("src/prices.py", code("cost", 3))
    sha = workplace.checkout.commit("Rename", session.now)
    assert workplace.refs(sha) == [session.ref]


@pytest.mark.parametrize("count", [2, 60])
def test_every_file_of_a_commit_is_evidence_and_files_of_other_sessions_are_not(
    workplace: Workplace, code: Code, count: int
) -> None:
    other = workplace.session(0)
    other.write("src/other.py", code("other", 3))
    other.commit("Add another module")
    session = workplace.session(1)
    for number in range(count):
        session.write(f"src/naïve_{number}.py", code(f"module_{number}", 1))
    sha = session.commit("Add modules")
    (linked,) = workplace.commits()[sha].sessions
    assert linked.session_ref == session.ref
    (files,) = [each.detail for each in linked.evidence if each.kind == "files"]
    assert files.startswith(f"{count} of {count} files: src/naïve_0.py")


def test_a_here_document_counts_as_written_text(workplace: Workplace, code: Code) -> None:
    session = workplace.session(0)
    text = code("price", 3)
    session.shell(f"mkdir -p src && cat > src/prices.py <<'EOF'\n{text}EOF\npython -m pytest")
    workplace.checkout.write("src/prices.py", text)
    sha = workplace.checkout.commit("Add prices", session.now)
    (linked,) = workplace.commits()[sha].sessions
    assert weights(linked.evidence)["content"] > 0.25


def test_the_work_of_a_subagent_belongs_to_its_session(workplace: Workplace, code: Code) -> None:
    session = workplace.session(0)
    path = workplace.checkout.folder / "src/prices.py"
    text = code("price", 3)
    session.transcript.delegate("Add prices", "Done.", calls=[tool_calls.write(str(path), text)])
    workplace.checkout.write("src/prices.py", text)
    sha = workplace.checkout.commit("Add prices", session.now)
    assert workplace.refs(sha) == [session.ref]


def test_work_after_the_commit_is_no_evidence(workplace: Workplace, code: Code) -> None:
    workplace.checkout.write("src/prices.py", code("price", 3))
    sha = workplace.checkout.commit("Add prices", START - timedelta(hours=1))
    session = workplace.session(0)
    session.write("src/prices.py", code("price", 3))
    assert workplace.refs(sha) == []


def test_a_repository_without_commits_or_sessions_lists_none(workplace: Workplace) -> None:
    assert workplace.commits() == {}
    sha = workplace.checkout.commit("Start", START)
    assert workplace.commits()[sha].sessions == ()


def test_merges_are_not_listed(workplace: Workplace) -> None:
    checkout = workplace.checkout
    checkout.commit("Start", START)
    checkout.run("checkout", "--quiet", "-b", "side")
    checkout.commit("Side", START + timedelta(hours=1))
    checkout.run("checkout", "--quiet", "main")
    checkout.commit("Main", START + timedelta(hours=2))
    checkout.run("merge", "--quiet", "-m", "Merge", "side", at=START + timedelta(hours=3))
    assert [commit.subject for commit in workplace.commits().values()] == ["Main", "Side", "Start"]


def test_links_are_stored_and_updated_when_a_session_is_added(workplace: Workplace, code: Code) -> None:
    workplace.checkout.write("src/prices.py", code("price", 3))
    sha = workplace.checkout.commit("Add prices", START + timedelta(hours=1))
    assert workplace.refs(sha) == []
    session = workplace.session(0.5)
    path = str(workplace.checkout.folder / "src/prices.py")
    session.transcript.run(tool_calls.write(path, code("price", 3)))
    assert workplace.refs(sha) == [session.ref]
    with workplace.history() as history:
        history.archive_admin.forget(session.ref)
    workplace.sessions.clear()
    assert workplace.refs(sha) == []


def test_few_new_commits_need_only_some_sessions(
    workplace: Workplace, code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, other = workplace.checkout, GitRepository(workplace.folder / "work" / "other")
    written, quiet, named = workplace.session(0), workplace.session(24 * 80), workplace.session(24 * 5)
    for number in range(4):
        unrelated = workplace.session(24 * (10 + number), checkout=other)
        unrelated.write(f"src/part{number}.py", code(f"part{number}", 2))
    path = str(checkout.folder / "src/prices.py")
    written.transcript.run(tool_calls.write(path, code("price", 3)))  # committed by the user, months later
    named.write("notes.md", "A note that is not committed\n")
    quiet.write("src/rates.py", code("rate", 1))
    quiet.commit("Add rates")
    checkout.write("src/prices.py", code("price", 3))
    checkout.commit("Add prices", START + timedelta(days=90))
    checkout.write("src/other.py", code("other", 1))
    checkout.commit(f"Other\n\nSession: {named.id}", START + timedelta(days=91))
    loaded: list[int] = []

    def load(*arguments: Any) -> list[SessionWork]:
        found = load_sessions(*arguments)
        loaded.append(len(found))
        return found

    monkeypatch.setattr(link, "load_sessions", load)
    some = workplace.commits()
    assert [linked.session_ref for commit in some.values() for linked in commit.sessions[:1]] == [
        named.ref,
        written.ref,
        quiet.ref,
    ]
    with closing(sqlite3.connect(workplace.home / "archive.db")) as db, db:
        db.execute("delete from commit_link")
    monkeypatch.setattr(link, "_MAX_NEW_COMMITS", 0)
    assert workplace.commits() == some
    assert loaded == [3, 7]


def test_a_read_only_archive_finds_the_same_sessions(workplace: Workplace, code: Code) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", code("price", 3))
    session.commit("Add prices")
    workplace.history().close()
    paths = [workplace.home, *workplace.home.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    options = (
        "--home",
        workplace.home,
        "commits",
        "--no-sync",
        "--json",
        "--repo",
        workplace.checkout.folder,
    )
    try:
        result = run_unprivileged(*options)
    finally:
        for path in paths:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert (result.code, result.err) == (0, "")
    (commit,) = json.loads(result.out)["data"]
    assert [linked["session_ref"] for linked in commit["sessions"]] == [session.ref]


def test_a_commit_message_in_a_file_is_found(workplace: Workplace) -> None:
    session, other = workplace.session(0), workplace.session(0)
    session.transcript.run(tool_calls.write("/tmp/message.txt", "Generate the schema\n\nWith a reason.\n"))
    workplace.checkout.write("generated.sql", "create table price (amount integer not null);\n")
    session.shell("git commit -q -a -F /tmp/message.txt")
    other.shell("git commit -q -a -F /tmp/other.txt")
    sha = workplace.checkout.commit("Generate the schema", session.now)
    first, *_ = workplace.commits()[sha].sessions
    assert first.session_ref == session.ref
    (call,) = (each for each in first.evidence if each.kind == "commit")
    assert call.detail == "ran git commit with the message 'Generate the schema'"


def test_a_call_without_a_message_belongs_to_the_next_commit_only(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.shell("make generate && git commit -q -a -F message.txt")
    workplace.checkout.write("generated.sql", "create table price (amount integer not null);\n")
    own = workplace.checkout.commit("Generate the schema", session.now)
    workplace.checkout.write("README.md", "How to run the shop: install it, then start the server.\n")
    by_hand = workplace.checkout.commit("Explain how to run it", session.now + timedelta(minutes=1))
    found = workplace.commits()
    assert [linked.session_ref for linked in found[own].sessions] == [session.ref]
    assert found[by_hand].sessions == ()


def test_the_number_of_a_pull_request_does_not_hide_the_session(workplace: Workplace) -> None:
    session = workplace.session(0)
    session.shell('git commit -q -m "Generate the schema"')
    workplace.checkout.write("generated.sql", "create table price (amount integer not null);\n")
    sha = workplace.checkout.commit("Generate the schema (#12)", session.now + timedelta(hours=3))
    assert workplace.refs(sha) == [session.ref]


def test_a_quiet_amend_is_found_by_the_time_of_the_commit(workplace: Workplace) -> None:
    workplace.checkout.write("generated.sql", "create table price (amount integer not null);\n")
    workplace.checkout.commit("Generate the schema", START - timedelta(days=1))
    session = workplace.session(0)
    session.shell("git commit -q --amend --no-edit")
    workplace.checkout.write("generated.sql", "create table cost (amount integer not null);\n")
    workplace.checkout.run("add", "--all")
    # Git takes the time of the author from the commit that it amends.
    workplace.checkout.run("commit", "--quiet", "--amend", "--no-edit", at=session.now)
    assert workplace.refs(workplace.checkout.head()) == [session.ref]


def test_an_edited_file_is_enough_while_the_session_is_active(workplace: Workplace, code: Code) -> None:
    workplace.checkout.write("src/prices.py", code("price", 2))
    workplace.checkout.commit("Start", START - timedelta(hours=1))
    session = workplace.session(0)
    session.write("src/prices.py", code("cost", 2))
    workplace.checkout.write("src/prices.py", code("amount", 2))  # the user changes every line again
    sha = workplace.checkout.commit("Rename", session.now + timedelta(minutes=2))
    assert workplace.refs(sha) == [session.ref]
    workplace.checkout.write("src/prices.py", code("value", 2))
    later = workplace.checkout.commit("Rename again", session.now + timedelta(hours=2))
    assert workplace.refs(later) == []


@pytest.mark.parametrize("in_background", [False, True])
def test_a_commit_that_a_subagent_reports_has_its_session(
    workplace: Workplace, code: Code, in_background: bool
) -> None:
    """The file of the subagent is missing: its report is the only evidence."""
    session = workplace.session(0)
    workplace.checkout.write("src/prices.py", code("price", 3))
    sha = workplace.checkout.commit("Add prices", session.now + timedelta(minutes=1))
    report = f"## Done\n\n**Commits:**\n\n- `{sha[:9]}`: Add prices\n"
    if in_background:
        session.wait(2)
        session.transcript.delegate_in_background("Add prices", report)
    else:
        session.transcript.delegate("Add prices", report)
    session.transcript.agents.clear()
    (linked,) = workplace.commits()[sha].sessions
    assert linked.session_ref == session.ref
    assert f"a subagent reported {sha[:9]}" in [each.detail for each in linked.evidence]


def test_an_older_commit_that_a_subagent_mentions_has_no_session(workplace: Workplace, code: Code) -> None:
    workplace.checkout.write("src/prices.py", code("price", 3))
    sha = workplace.checkout.commit("Add prices", START - timedelta(minutes=1))
    session = workplace.session(0)
    session.transcript.delegate("Find the commit", f"The error came with {sha[:9]}.")
    session.transcript.agents.clear()
    assert workplace.commits()[sha].sessions == ()
