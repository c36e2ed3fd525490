"""The first-parent history as hunks."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from backscroll.git.diff import read_hunks
from backscroll.git.repository import open_repository
from tests.builders.git_repository import GitRepository

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
LINES = (
    "",
    "}",
    "-- a comment",
    "+++ b/x",
    "@@ -1 +1 @@",
    "\x01commit 0 1 2",
    "diff --git a/x b/x",
    "price = 1",
)


def replay(checkout: GitRepository) -> dict[str, list[bytes]]:
    """Return the lines of all files after all commits."""
    files: dict[str, list[bytes]] = {}
    for commit in read_hunks(open_repository(checkout.folder), "HEAD"):
        for file in commit.files:
            if file.old_path is not None:
                files[file.path] = files.pop(file.old_path)
            lines = files.setdefault(file.path, [])
            for hunk in file.hunks:
                start = hunk.new_start - 1 if hunk.added else hunk.new_start
                lines[start : start + hunk.old_count] = hunk.added
            if file.is_deleted:
                assert files.pop(file.path) == []
    return files


@pytest.mark.parametrize("seed", range(3))
def test_the_hunks_of_all_commits_make_the_files(checkout: GitRepository, seed: int) -> None:
    random = Random(seed)
    files: dict[str, list[str]] = {}
    for number in range(12):
        for _ in range(random.randint(1, 3)):
            path = random.choice(["a.py", "src/b c.py", 'quote"d.py', "ä.py"])
            lines = files.setdefault(path, [])
            start = random.randint(0, len(lines))
            lines[start : start + random.randint(0, 4)] = random.choices(LINES, k=random.randint(0, 6))
            if random.random() < 0.15:
                del files[path]
                (checkout.folder / path).unlink(missing_ok=True)
            else:
                end = "" if random.random() < 0.3 else "\n"
                checkout.write(path, "\n".join(lines) + (end if lines else ""))
        checkout.commit(f"Commit {number}", AT + timedelta(hours=number))
    found = {path: lines for path, lines in replay(checkout).items() if lines}
    expected = {path: (checkout.folder / path).read_bytes() for path in files}
    assert found == {path: text.removesuffix(b"\n").split(b"\n") for path, text in expected.items() if text}


def test_a_merge_contains_what_it_merges_and_a_rename_keeps_lines(checkout: GitRepository) -> None:
    checkout.write("a.py", "".join(f"line {number}\n" for number in range(20)))
    checkout.commit("Start", AT)
    checkout.run("checkout", "--quiet", "-b", "side")
    checkout.run("mv", "a.py", "b.py")
    checkout.commit("Rename", AT + timedelta(hours=1))
    checkout.run("checkout", "--quiet", "main")
    checkout.write("other.py", "x = 1\n")
    checkout.commit("Other", AT + timedelta(hours=2))
    checkout.run("merge", "--quiet", "--no-ff", "-m", "Merge", "side", at=AT + timedelta(hours=3))
    commits = list(read_hunks(open_repository(checkout.folder), "HEAD"))
    assert [len(commit.files) for commit in commits] == [1, 1, 1]
    assert (commits[2].files[0].old_path, commits[2].files[0].path) == ("a.py", "b.py")
    assert len(replay(checkout)["b.py"]) == 20


@pytest.mark.parametrize(
    "setting",
    [
        "diff.noprefix=true",
        "diff.mnemonicPrefix=true",
        "diff.interHunkContext=10",
        "diff.orderFile=missing",
        "diff.relative=true",
        "log.showRoot=false",
        "log.diffMerges=off",
    ],
)
def test_the_configuration_does_not_change_the_hunks(checkout: GitRepository, setting: str) -> None:
    checkout.write("src/a.py", "".join(f"line {number}\n" for number in range(9)))
    checkout.commit("Start", AT)
    checkout.run("checkout", "--quiet", "-b", "side")
    checkout.write("src/a.py", "".join(f"line {number if number % 4 else 'x'}\n" for number in range(9)))
    checkout.commit("Change", AT + timedelta(hours=1))
    checkout.run("checkout", "--quiet", "main")
    checkout.run("merge", "--quiet", "--no-ff", "-m", "Merge", "side", at=AT + timedelta(hours=2))
    expected = list(read_hunks(open_repository(checkout.folder), "HEAD"))
    assert [[len(file.hunks) for file in commit.files] for commit in expected] == [[1], [3]]
    checkout.run("config", *setting.split("="))
    assert list(read_hunks(open_repository(checkout.folder), "HEAD")) == expected
