"""Calls of `git commit` and the commits that they made."""

from collections.abc import Callable
from datetime import timedelta

import pytest

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
