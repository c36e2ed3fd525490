"""Sessions of one repository are not credited in another one; those of its clones are."""

import shutil
from collections.abc import Callable
from datetime import UTC, timedelta
from pathlib import Path

import pytest

from backscroll.model.commit import CommitSummary
from tests.builders.git_repository import GitRepository
from tests.commits.conftest import START, Workplace

Code = Callable[[str, int], str]

SHARED = 'import React, { useState, useEffect } from "react";\n\nexport default function App() {\n'
SHOP = SHARED + "  const [basket, setBasket] = useState([]);\n  return <Basket items={basket} />;\n}\n"
BIRDS = SHARED + "  const [birds, setBirds] = useState([]);\n  return <BirdList birds={birds} />;\n}\n"


@pytest.fixture
def birds(workplace: Workplace) -> GitRepository:
    """Another repository, of the user alone."""
    repository = GitRepository(workplace.folder / "work" / "birds")
    repository.commit("Begin", START - timedelta(days=9))
    return repository


def blamed(workplace: Workplace, path: str, folder: Path) -> set[str | None]:
    with workplace.history() as history:
        return {line.session_ref for line in history.blame_file(path, folder)}


def survivors(workplace: Workplace, folder: Path) -> list[str | None]:
    with workplace.history() as history:
        return [row.key for row in history.commits.survival(folder, zone=UTC)]


def details(commit: CommitSummary) -> dict[str, str]:
    (linked,) = commit.sessions
    return {each.kind: each.detail for each in linked.evidence}


def test_an_equal_message_in_another_repository_is_no_link(
    workplace: Workplace, birds: GitRepository
) -> None:
    session = workplace.session(0)
    for message in ("Initial commit", "Update README.md"):
        session.write("README.md", f"# The shop, {message}\n")
        session.commit(message)
    shas = []
    for day, message in enumerate(("Initial commit", "Update README.md"), start=20):
        birds.write("README.md", f"Birds of the northern coast, {message}\n")
        shas.append(birds.commit(message, START + timedelta(days=day)))
    found = workplace.commits(birds.folder)
    assert [found[sha].sessions for sha in shas] == [(), ()]
    shutil.rmtree(workplace.checkout.folder)  # now the session's repository is unknown
    shutil.rmtree(workplace.home)
    found = workplace.commits(birds.folder)
    assert [found[sha].sessions for sha in shas] == [(), ()]


def test_a_quiet_commit_at_the_same_time_in_another_repository_is_no_link(
    workplace: Workplace, birds: GitRepository
) -> None:
    workplace.checkout.commit("Start", START - timedelta(days=1))
    session = workplace.session(0)
    session.shell("git commit -q --amend --no-edit")
    birds.write("list.txt", "entirely different notes about birds\n")
    sha = birds.commit("Notes", session.now)
    assert workplace.refs(sha, birds.folder) == []


def test_a_command_that_enters_another_repository_commits_there(
    workplace: Workplace, birds: GitRepository
) -> None:
    workplace.checkout.commit("Start", START - timedelta(days=1))
    session = workplace.session(0)
    session.shell("cd ../birds && make list && git commit -q -a --no-edit")
    birds.write("list.txt", "a generated list of all birds\n")
    sha = birds.commit("Generate the list", session.now)
    assert workplace.refs(sha, birds.folder) == [session.ref]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_equal_lines_of_another_repository_are_not_credited(
    workplace: Workplace, birds: GitRepository, is_deleted: bool
) -> None:
    session = workplace.session(0)
    session.write("src/App.tsx", SHOP)
    session.commit("Shop page")
    birds.write("src/App.tsx", BIRDS)
    sha = birds.commit("Birds page by hand", START + timedelta(days=40))
    if is_deleted:
        shutil.rmtree(workplace.checkout.folder)
    assert workplace.commits(birds.folder)[sha].sessions == ()
    assert blamed(workplace, "src/App.tsx", birds.folder) == {None}
    assert survivors(workplace, birds.folder) == []


def test_a_deleted_folder_with_one_equal_path_is_not_a_checkout(workplace: Workplace, code: Code) -> None:
    session = workplace.session(0)
    session.write("src/prices.py", code("price", 3))
    one = workplace.checkout.commit("Add prices", session.now)
    clone = workplace.folder / "elsewhere" / "copy.git"
    workplace.checkout.bare_clone(clone)
    GitRepository(clone, is_existing=True).run("remote", "remove", "origin")
    away = workplace.checkout.folder.rename(workplace.folder / "away")
    assert "workspace" not in details(workplace.commits(clone)[one])
    away.rename(workplace.checkout.folder)
    session.write("src/orders.py", code("order", 3))
    two = workplace.checkout.commit("Add orders", session.now)
    workplace.checkout.run("push", "--quiet", str(clone), "main")
    workplace.checkout.folder.rename(away)
    found = details(workplace.commits(clone)[two])
    assert found["workspace"] == f"worked in {workplace.checkout.folder}, which has the same files"


def test_a_renamed_repository_keeps_the_sessions_of_files_at_its_root(workplace: Workplace) -> None:
    checkout = workplace.checkout
    checkout.write("main.py", "import sys\n\n\ndef main():\n    print('hello world')\n")
    checkout.commit("Start", START - timedelta(days=1))
    committed, pending = workplace.session(0), workplace.session(1)
    committed.edit("main.py", "    print(", "    sys.exit(run(sys.argv[1:]))\n    print(")
    sha = committed.commit("Exit with a code")
    pending.edit("main.py", "import sys\n", "import sys\nimport argparse_extended\n")
    before = blamed(workplace, "main.py", checkout.folder)
    assert before == {None, committed.ref, pending.ref}
    moved = checkout.folder.rename(checkout.folder.parent / "renamed")
    assert blamed(workplace, "main.py", moved) == before
    assert set(survivors(workplace, moved)) == {committed.ref, pending.ref}
    assert details(workplace.commits(moved)[sha])["workspace"].endswith("shop, a clone of the repository")


@pytest.mark.parametrize("is_shallow", [False, True])
def test_another_clone_on_this_machine_has_the_same_sessions(
    workplace: Workplace, code: Code, is_shallow: bool
) -> None:
    workplace.checkout.commit("Start", START - timedelta(days=1))
    session = workplace.session(0)
    session.write("setup.py", code("price", 3))
    sha = workplace.checkout.commit("Add prices", session.now)
    clone = workplace.folder / "other name"
    depth = ["--depth=1"] if is_shallow else []
    workplace.checkout.run("clone", "-q", *depth, workplace.checkout.folder.as_uri(), str(clone))
    assert workplace.refs(sha, clone) == [session.ref]
    assert blamed(workplace, "setup.py", clone) == {session.ref}
    assert survivors(workplace, clone) == [session.ref]
