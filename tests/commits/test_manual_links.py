"""Links between sessions and commits that the user makes or removes."""

import shutil
from collections.abc import Callable
from datetime import timedelta

import pytest

from backscroll.errors import SessionNotFoundError
from backscroll.history.history import History
from tests.commits.conftest import START, Workplace

Code = Callable[[str, int], str]


def refs(history: History, sha: str, workplace: Workplace) -> list[str]:
    found = history.get_commit(sha, workplace.checkout.folder)
    (listed,) = (
        each
        for each in history.list_commits(workplace.checkout.folder, limit=None).data
        if each.sha == found.sha
    )
    assert listed.sessions == found.sessions
    return [each.session_ref for each in found.sessions]


@pytest.fixture
def linked(workplace: Workplace, code: Code) -> str:
    """A commit of the first session. The second one discussed it."""
    workplace.checkout.commit("Start", START - timedelta(days=1))
    session = workplace.session(0)
    session.write("src/prices.py", code("price", 3))
    sha = session.commit("Add prices")
    workplace.session(0)
    return sha


def test_a_link_by_hand_is_first_and_one_that_is_removed_is_gone(workplace: Workplace, linked: str) -> None:
    first, second = workplace.sessions
    with workplace.history() as history:
        assert refs(history, linked, workplace) == [first.ref]
        history.commits.link(linked, second.ref, workplace.checkout.folder)
        assert refs(history, linked, workplace) == [second.ref, first.ref]
        (best, _) = history.get_commit(linked, workplace.checkout.folder).sessions
        assert (best.score, [each.kind for each in best.evidence]) == (1.0, ["manual"])
        history.commits.unlink(linked, first.ref, workplace.checkout.folder)
        assert refs(history, linked, workplace) == [second.ref]
        history.commits.unlink(linked, second.ref, workplace.checkout.folder)
        assert refs(history, linked, workplace) == []
        history.commits.link(linked, first.ref, workplace.checkout.folder)
        assert refs(history, linked, workplace) == [first.ref]
        (found,) = history.get_commit(linked, workplace.checkout.folder).sessions
        assert "commit" in {each.kind for each in found.evidence}
        assert sum(each.weight for each in found.evidence) == pytest.approx(1.0)
        with pytest.raises(SessionNotFoundError):
            history.commits.link(linked, "nobody", workplace.checkout.folder)


def test_links_survive_a_rebase_and_an_amend_of_the_commit(workplace: Workplace, linked: str) -> None:
    first, second = workplace.sessions
    checkout = workplace.checkout
    with workplace.history() as history:
        history.commits.link(linked, second.ref, checkout.folder)
        history.commits.unlink(linked, first.ref, checkout.folder)
        checkout.run("commit", "--amend", "--quiet", "-m", "Add all prices", at=None)
        amended = checkout.head()
        assert amended != linked
        assert refs(history, amended, workplace) == [second.ref]
        checkout.run("checkout", "--quiet", "-b", "other", "HEAD~1")
        checkout.write("other.py", "another_line = 1\n")
        checkout.commit("Other", START + timedelta(days=1))
        checkout.run("cherry-pick", amended)
        assert checkout.head() not in (linked, amended)
        assert refs(history, checkout.head(), workplace) == [second.ref]


def test_links_survive_a_rebuild_a_repair_and_a_backup(workplace: Workplace, linked: str) -> None:
    _, second = workplace.sessions
    with workplace.history() as history:
        history.commits.link(linked, second.ref, workplace.checkout.folder)
        history.archive_admin.rebuild()
        assert refs(history, linked, workplace)[0] == second.ref
        history.archive_admin.repair()
        assert refs(history, linked, workplace)[0] == second.ref
        backup = history.create_backup(workplace.folder / "backup.zip")
        assert backup is not None
    shutil.rmtree(workplace.home)
    with workplace.history() as history:
        assert second.ref not in refs(history, linked, workplace)
        history.restore_backup(workplace.folder / "backup.zip")
        assert refs(history, linked, workplace)[0] == second.ref


def test_a_forgotten_session_has_no_links(workplace: Workplace, linked: str) -> None:
    _, second = workplace.sessions
    with workplace.history() as history:
        history.commits.link(linked, second.ref, workplace.checkout.folder)
        history.archive_admin.forget(second.ref)
        assert second.ref not in refs(history, linked, workplace)
