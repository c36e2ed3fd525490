"""Commits and the lines that they add."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backscroll.git.log import FileChange, list_commits, read_changes, read_modifications
from backscroll.git.repository import open_repository
from tests.builders.git_repository import GitRepository

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def changes_of(checkout: GitRepository, sha: str) -> list[FileChange]:
    ((found, changes),) = read_changes(open_repository(checkout.folder), [sha])
    assert found == sha
    return changes


def test_commits_of_all_branches_are_listed_newest_first(checkout: GitRepository) -> None:
    first = checkout.commit("Start\n\nWith a body: ä", AT)
    checkout.run("checkout", "--quiet", "-b", "fix")
    second = checkout.commit("Fix", AT + HOUR, author="Kim Ong")
    checkout.run("checkout", "--quiet", "main")
    commits = list_commits(open_repository(checkout.folder))
    assert [commit.sha for commit in commits] == [second, first]
    assert commits[0].parents == (first,)
    assert (commits[0].author, commits[0].subject) == ("Kim Ong", "Fix")
    assert commits[1].message == "Start\n\nWith a body: ä"
    assert commits[1].authored_at == commits[1].committed_at == int(AT.timestamp())
    assert [commit.sha for commit in list_commits(open_repository(checkout.folder), ref="main")] == [first]


def test_a_repository_without_commits_lists_none(checkout: GitRepository) -> None:
    assert list_commits(open_repository(checkout.folder)) == []


def test_the_first_commit_adds_all_its_lines(checkout: GitRepository) -> None:
    checkout.write("a.py", "one\ntwo")
    assert changes_of(checkout, checkout.commit("Start", AT)) == [
        FileChange("a.py", None, False, (b"one", b"two"))
    ]


def test_only_added_lines_are_returned(checkout: GitRepository) -> None:
    checkout.write("a.py", "one\ntwo\nthree\n")
    checkout.commit("Start", AT)
    checkout.write("a.py", "one\n2\nthree\n++ four\n-- five\n")
    sha = checkout.commit("Change", AT + HOUR)
    assert changes_of(checkout, sha) == [FileChange("a.py", None, False, (b"2", b"++ four", b"-- five"))]


def test_content_that_looks_like_a_patch_is_content(checkout: GitRepository) -> None:
    lines = ["diff --git a/x b/x", "+++ b/x", "@@ -1 +1 @@", "a" * 40, "rename to y"]
    checkout.write("notes.txt", "\n".join(lines) + "\n")
    (change,) = changes_of(checkout, checkout.commit("Start", AT))
    assert change.path == "notes.txt"
    assert list(change.added) == [line.encode() for line in lines]


def test_a_renamed_file_has_its_old_path(checkout: GitRepository) -> None:
    checkout.write("old name.py", "".join(f"line {n}\n" for n in range(20)))
    checkout.commit("Start", AT)
    (checkout.folder / "pkg").mkdir()
    checkout.run("mv", "old name.py", "pkg/new.py")
    checkout.write("pkg/new.py", "".join(f"line {n}\n" for n in range(20)) + "more\n")
    sha = checkout.commit("Move", AT + HOUR)
    assert changes_of(checkout, sha) == [FileChange("pkg/new.py", "old name.py", False, (b"more",))]


@pytest.mark.parametrize("name", ["a b.py", "ä/ü.py", 'quo"te.py', "tab\there.py", "a b/a b.bin"])
def test_paths_with_special_characters_are_read(checkout: GitRepository, name: str) -> None:
    checkout.write(name, b"\0binary" if name.endswith(".bin") else "text\n")
    (change,) = changes_of(checkout, checkout.commit("Start", AT))
    assert change.path == name


def test_deleted_and_empty_files_add_no_lines(checkout: GitRepository) -> None:
    checkout.write("a.py", "one\n")
    checkout.commit("Start", AT)
    (checkout.folder / "a.py").unlink()
    checkout.write("empty.py", "")
    sha = checkout.commit("Change", AT + HOUR)
    assert changes_of(checkout, sha) == [
        FileChange("a.py", None, True, ()),
        FileChange("empty.py", None, False, ()),
    ]


def test_the_changes_of_many_commits_arrive_in_order_and_a_merge_has_none(checkout: GitRepository) -> None:
    shas = []
    for number in range(3):
        checkout.write("a.py", f"number {number}\n")
        shas.append(checkout.commit(f"Commit {number}", AT + number * HOUR))
    checkout.run("checkout", "--quiet", "-b", "side", "HEAD~1")
    checkout.write("b.py", "side\n")
    shas.append(checkout.commit("Side", AT + 4 * HOUR))
    checkout.run("merge", "--quiet", "-m", "Merge", "main", at=AT + 5 * HOUR)
    shas.append(checkout.head())
    found = dict(read_changes(open_repository(checkout.folder), shas))
    assert [[line for change in found.get(sha, []) for line in change.added] for sha in shas] == [
        [b"number 0"],
        [b"number 1"],
        [b"number 2"],
        [b"side"],
        [],
    ]


def test_the_configuration_of_the_user_does_not_change_what_is_read(
    checkout: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.write("ä.py", "one\n")
    sha = checkout.commit("Start", AT)
    config = tmp_path / "gitconfig"
    config.write_text(
        "[core]\n pager = false\n quotepath = on\n[diff]\n external = false\n noprefix = true\n"
        " mnemonicPrefix = true\n[color]\n ui = always\n[log]\n showSignature = true\n decorate = full\n"
        "[format]\n pretty = oneline\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    assert [commit.subject for commit in list_commits(open_repository(checkout.folder))] == ["Start"]
    assert changes_of(checkout, sha) == [FileChange("ä.py", None, False, (b"one",))]


def test_reading_does_not_change_the_repository(checkout: GitRepository) -> None:
    checkout.write("a.py", "one\n")
    sha = checkout.commit("Start", AT)
    checkout.write("a.py", "two\n")

    def state() -> dict[Path, tuple[int, int]]:
        files = [path for path in (checkout.folder / ".git").rglob("*") if path.is_file()]
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in files}

    before = state()
    list_commits(open_repository(checkout.folder))
    changes_of(checkout, sha)
    assert state() == before


def test_modifications_are_those_of_the_given_files(checkout: GitRepository) -> None:
    checkout.write("pkg/a.py", "one\n")
    checkout.write("b.py", "one\n")
    start = checkout.commit("Start", AT)
    checkout.write("pkg/a.py", "one\ntwo")
    checkout.write("b.py", "2\n")
    change = checkout.commit("Change", AT + HOUR)
    checkout.write("b.py", "3\n")
    other = checkout.commit("Other", AT + 2 * HOUR)
    (checkout.folder / "pkg/a.py").unlink()
    removal = checkout.commit("Remove", AT + 3 * HOUR)
    repository = open_repository(checkout.folder / "pkg")
    found = dict(read_modifications(repository, [start, change, other, removal], ["pkg/a.py"]))
    assert found == {
        start: None,  # adds the file
        change: [FileChange("pkg/a.py", None, False, (b"two",))],
        other: [],
        removal: [FileChange("pkg/a.py", None, True, ())],
    }
