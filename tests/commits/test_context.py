"""Sessions that were open at the time of a commit without a session."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.mcp.tools.arguments import SessionsForCommit
from backscroll.mcp.tools.commits import sessions_for_commit
from backscroll.render.commits import commit_document, commit_lines, commits_document, commits_lines
from backscroll.render.terminal_text import Style
from tests.builders.git_repository import GitRepository
from tests.commits.conftest import START, Workplace

PLAIN = Style(is_colored=False)


@pytest.fixture
def typed(workplace: Workplace) -> str:
    """The commit of the user, 20 minutes after a discussion began and 50 after its parent."""
    workplace.checkout.write("a.py", "first_line = 1\n")
    workplace.checkout.commit("Start", START - timedelta(minutes=30))
    discussion = workplace.session(0)
    discussion.transcript.assistant("Use a table.")
    discussion.wait(10)
    discussion.prompt("And then?")
    discussion.wait(60)
    discussion.prompt("After the commit")
    workplace.checkout.write("a.py", "first_line = 1\nsecond_line = 2\n")
    return workplace.checkout.commit("Typed", START + timedelta(minutes=20))


def context(history: History, sha: str, workplace: Workplace, **options: int) -> list[tuple[str, int, int]]:
    found = history.get_commit(sha, workplace.checkout.folder, **options)
    (listed,) = (
        commit
        for commit in history.list_commits(workplace.checkout.folder, **options).data
        if commit.sha == sha
    )
    assert listed.context == found.context and not found.sessions
    return [(each.session_ref, each.first, each.last) for each in found.context]


def test_a_commit_without_a_session_names_a_discussion_before_it(workplace: Workplace, typed: str) -> None:
    with workplace.history() as history:
        messages = history.get_session(workplace.sessions[0].ref).messages
        last = next(place for place, message in enumerate(messages) if message.content == "And then?")
        assert context(history, typed, workplace) == [(workplace.sessions[0].ref, 0, last)]
        assert context(history, typed, workplace, window=15) == [(workplace.sessions[0].ref, last, last)]
        assert context(history, typed, workplace, window=5) == []
        assert context(history, typed, workplace, window=0) == []
        with pytest.raises(UsageError, match="minutes"):
            history.list_commits(workplace.checkout.folder, window=-1)
        lines = history.blame_file("a.py", workplace.checkout.folder)
        assert {line.session_ref for line in lines} == {None}


def test_the_window_starts_at_the_parent_commit(workplace: Workplace, typed: str) -> None:
    workplace.checkout.write("a.py", "first_line = 1\nsecond_line = 2\nthird_line = 3\n")
    later = workplace.checkout.commit("Typed again", START + timedelta(minutes=22))
    with workplace.history() as history:
        assert context(history, later, workplace) == []


def test_the_configuration_sets_the_window(workplace: Workplace, typed: str) -> None:
    workplace.home.mkdir()
    (workplace.home / "config.toml").write_text("[commits]\nwindow = 5\n")
    with workplace.history() as history:
        assert context(history, typed, workplace) == []
        assert context(history, typed, workplace, window=30)
    (workplace.home / "config.toml").write_text('[commits]\nwindow = "long"\n')
    with pytest.raises(UsageError, match=r"commits\.window"):
        workplace.history()


def test_worktrees_and_clones_count_and_other_repositories_do_not(
    workplace: Workplace, typed: str, tmp_path: Path
) -> None:
    tree = workplace.checkout.worktree(tmp_path / "work" / "shop-topic", "topic")
    clone = tmp_path / "work" / "copy"
    workplace.checkout.run("clone", "--quiet", str(workplace.checkout.folder), str(clone))
    other = GitRepository(tmp_path / "work" / "other")
    other.commit("Start", START)
    checkouts = [tree, GitRepository(clone, is_existing=True), other]
    _, *sessions = workplace.sessions[0], *(workplace.session(0.1, checkout=each) for each in checkouts)
    with workplace.history() as history:
        found = {ref for ref, _, _ in context(history, typed, workplace)}
    assert found == {workplace.sessions[0].ref, sessions[0].ref, sessions[1].ref}


def test_a_commit_with_a_session_has_no_context(workplace: Workplace) -> None:
    writing, talking = workplace.session(0), workplace.session(0)
    writing.write("a.py", "first_line_of_the_file = 1\n")
    sha = writing.commit("Add a file")
    with workplace.history() as history:
        found = history.get_commit(sha, workplace.checkout.folder)
    assert [each.session_ref for each in found.sessions] == [writing.ref]
    assert found.context == ()
    assert talking.ref != writing.ref


def test_every_interface_says_that_the_session_was_also_open(workplace: Workplace, typed: str) -> None:
    with workplace.history() as history:
        details = history.get_commit(typed, workplace.checkout.folder)
        page = history.list_commits(workplace.checkout.folder)
        titles = {summary.ref: summary for summary in history.list_sessions().data}
        call = SimpleNamespace(
            history=history,
            report_progress=None,
            redact_text=lambda text, *_: text,
            learn_secrets=lambda *_: None,
            redact_summary=lambda one: one,
        )
        arguments = SessionsForCommit(repository=str(workplace.checkout.folder), revision=typed)
        answer = sessions_for_commit(call, arguments)  # type: ignore[arg-type]
    (opened,) = details.context
    expected = {
        "session_ref": opened.session_ref,
        "session_id": opened.session_id,
        "from": 0,
        "to": opened.last,
    }
    assert commit_document(details)["context"] == [expected]
    assert [commit["context"] for commit in commits_document(page)["data"]] == [[expected], []]
    name = "claude-code:5e551011  Task 1"
    assert f"    {name}  also open at the time" in commits_lines(page.data, titles, style=PLAIN)
    assert [*commit_lines(details, titles, style=PLAIN)][-2:] == [
        "Also open at the time:",
        f"  {name}  messages 0 to {opened.last}",
    ]
    assert f"also open at the time: claude-code:5e551011 · Task 1 [0] to [{opened.last}]" in answer.text
    assert answer.document["context"][0]["ref"] == opened.session_ref
