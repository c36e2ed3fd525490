"""Calls of `git commit` and the commits that they made."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from backscroll.render.commits import commit_lines
from backscroll.render.terminal_text import Style
from backscroll.testing.claude_code import tool_calls
from tests.commits.conftest import START, Workplace

Code = Callable[[str, int], str]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("git merge-base HEAD origin/main", "{sha}"),
        ("git fetch && git merge origin/main", "Updating 0000000..{short}\nFast-forward\n a.py | 1 +"),
        ('grep -rn "git commit" docs; git log -1', "docs/x.md: run git commit\ncommit {sha}\n"),
        ('git show --stat HEAD; echo "then run git commit"', "commit {sha}\nAuthor: Robin Vale\n"),
        ("git commit -m 'Nothing'; git log -1", "nothing to commit, working tree clean\ncommit {sha}\n"),
        ("git commit -qm 'Other' && git log --oneline -3", "1234567 Other\n{short} Add prices\n"),
    ],
)
def test_a_hash_that_git_only_shows_is_no_evidence(
    workplace: Workplace, code: Code, command: str, output: str
) -> None:
    workplace.checkout.write("src/prices.py", code("price", 3))
    sha = workplace.checkout.commit("Add prices", START - timedelta(days=3))
    session = workplace.session(0)
    session.shell(command, output.format(sha=sha, short=sha[:7]))
    assert workplace.refs(sha) == []


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("git commit -qF message.txt && git rev-parse HEAD", "{sha}\n"),
        ("git commit -qF message.txt; git log --oneline -2", "{short} Generate the schema\n1234567 Start\n"),
    ],
)
def test_a_quiet_commit_is_proven_by_the_hash_that_a_later_command_shows(
    workplace: Workplace, command: str, output: str
) -> None:
    session = workplace.session(0)
    workplace.checkout.write("generated.sql", "create table price (amount integer not null);\n")
    session.transcript.assistant(tools=[tool_calls.bash(command)])
    session.transcript.wait(1)
    sha = workplace.checkout.commit("Generate the schema", session.now)
    result = tool_calls.bash(command, output.format(sha=sha, short=sha[:7]))
    session.transcript.result(session.transcript.tool_ids[-1], result.content)
    (first,) = workplace.commits()[sha].sessions
    assert first.session_ref == session.ref
    assert [each.detail for each in first.evidence if each.kind == "commit"] == [
        f"git printed {sha if 'rev-parse' in command else sha[:7]}"
    ]


@pytest.mark.parametrize(
    ("command", "is_printed"),
    [("git commit -am 'Merge the topic'", True), ("git merge --no-ff topic", False)],
)
def test_a_merge_that_a_session_made_has_the_session(
    workplace: Workplace, code: Code, command: str, is_printed: bool
) -> None:
    checkout = workplace.checkout
    checkout.commit("Start", START - timedelta(days=3))
    checkout.run("checkout", "--quiet", "-b", "topic")
    checkout.write("src/prices.py", code("price", 3))
    checkout.commit("Add prices", START - timedelta(days=2))
    checkout.run("checkout", "--quiet", "main")
    session = workplace.session(0)
    session.transcript.assistant(tools=[tool_calls.bash(command)])
    session.transcript.wait(1)
    checkout.run("merge", "--no-ff", "--no-edit", "topic", at=session.now)
    sha = checkout.head()
    output = f"[main {sha[:7]}] Merge the topic" if is_printed else "Merge made by the 'ort' strategy.\n"
    session.transcript.result(session.transcript.tool_ids[-1], tool_calls.bash(command, output).content)
    with workplace.history() as history:
        details = history.get_commit(sha, checkout.folder)
    assert details.is_merge
    assert [linked.session_ref for linked in details.sessions] == [session.ref]
    assert sha not in workplace.commits()


def test_a_merge_of_the_user_says_that_its_lines_are_not_compared(workplace: Workplace) -> None:
    checkout = workplace.checkout
    checkout.commit("Start", START)
    checkout.run("checkout", "--quiet", "-b", "topic")
    checkout.commit("Topic", START)
    checkout.run("checkout", "--quiet", "main")
    checkout.run("merge", "--no-ff", "--no-edit", "topic", at=START + timedelta(hours=1))
    workplace.session(2).shell("git merge --no-ff other", "Merge made by the 'ort' strategy.\n")
    with workplace.history() as history:
        details = history.get_commit("HEAD", checkout.folder)
    assert [*commit_lines(details, {}, style=Style(is_colored=False))][3:] == [
        "No session was found for this commit.",
        "The lines of a merge are not compared. See the commits that it merges.",
    ]


def test_commits_are_in_the_order_of_the_shown_time(workplace: Workplace) -> None:
    checkout = workplace.checkout
    checkout.commit("Day 0", START)
    checkout.commit("Day 10", START + timedelta(days=10))
    checkout.commit("Day 2", START + timedelta(days=2))
    # A rebase keeps the author's time: the child of day 10 is of day 2.
    assert [commit.subject for commit in workplace.commits().values()] == ["Day 10", "Day 2", "Day 0"]
