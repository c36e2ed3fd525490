"""The changed lines of a commit, with the lines around them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.git.diff import read_diff, read_sizes
from backscroll.git.repository import open_repository
from backscroll.model.message import Edit, Hunk
from tests.builders.git_repository import GitRepository
from tests.example_counts import fewer_examples

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
LINES = [f"line {number}" for number in range(1, 21)]


def diff_of(checkout: GitRepository, max_lines: int = 1000) -> list[Edit]:
    return list(read_diff(open_repository(checkout.folder), checkout.head(), max_lines=max_lines))


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_a_hunk_has_three_unchanged_lines_around_it(checkout: GitRepository) -> None:
    checkout.write("a.py", text(LINES))
    checkout.commit("Start", AT)
    checkout.write("a.py", text([*LINES[:9], "ten", "and a half", *LINES[10:]]))
    checkout.commit("Change", AT)
    around = tuple(LINES[6:9]), tuple(LINES[10:13])
    hunk = Hunk(
        removed=(*around[0], "line 10", *around[1]),
        added=(*around[0], "ten", "and a half", *around[1]),
        old_start=7,
        new_start=7,
    )
    assert diff_of(checkout) == [Edit(path="a.py", hunks=(hunk,))]


def test_new_deleted_renamed_and_binary_files(checkout: GitRepository) -> None:
    checkout.write("a.py", text(LINES))
    checkout.write("old.txt", "gone\n")
    checkout.commit("Start", AT)
    checkout.run("mv", "a.py", "ünï \tcode.py")
    checkout.write("ünï \tcode.py", text([*LINES[:-1], "last"]))
    checkout.run("rm", "-q", "old.txt")
    checkout.write("new.txt", "+++ b/no header\n--- a/neither")  # without a newline at the end
    checkout.write("image.png", b"\x89PNG\0\1\2")
    checkout.commit("Change", AT)
    found = {edit.path: edit for edit in diff_of(checkout)}
    assert {
        path: (edit.kind, edit.hunks[0].removed, edit.hunks[0].added) for path, edit in found.items()
    } == {
        "new.txt": ("create", (), ("+++ b/no header", "--- a/neither")),
        "old.txt": ("delete", ("gone",), ()),
        "ünï \tcode.py": ("update", tuple(LINES[-4:]), (*LINES[-4:-1], "last")),
    }


def test_files_that_exceed_the_number_of_lines_are_left_out(checkout: GitRepository) -> None:
    checkout.write("a.txt", "one\n")
    checkout.write("b.txt", text(LINES))
    checkout.commit("Start", AT)
    assert [edit.path for edit in diff_of(checkout)] == ["a.txt", "b.txt"]
    assert [edit.path for edit in diff_of(checkout, max_lines=12)] == ["a.txt"]
    assert diff_of(checkout, max_lines=0) == []


def test_a_merge_and_an_empty_commit_have_no_diff(checkout: GitRepository) -> None:
    checkout.write("a.txt", "one\n")
    checkout.commit("Start", AT)
    checkout.commit("Nothing", AT)
    assert diff_of(checkout) == []


@fewer_examples(2)
@given(
    before=st.lists(st.sampled_from(["a", "b", "", "-", "+x", "@@ -1 +1 @@", "diff --git a/x b/x", "\\ no"])),
    after=st.lists(st.sampled_from(["a", "b", "", "-", "+x", "@@ -1 +1 @@", "diff --git a/x b/x", "\\ no"])),
)
def test_a_diff_has_as_many_lines_as_git_counts(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], after: list[str]
) -> None:
    folder: Path = tmp_path_factory.mktemp("diff") / "project"
    checkout = GitRepository(folder)
    checkout.write("a.txt", text(before))
    checkout.commit("Start", AT)
    checkout.write("a.txt", text(after))
    checkout.commit("Change", AT)
    sizes = read_sizes(open_repository(folder), checkout.head())
    edits = diff_of(checkout)
    if not sizes:
        assert not edits
        return
    (edit,), (size,) = edits, sizes
    rebuilt = list(before)
    for hunk in reversed(edit.hunks):
        assert hunk.old_start is not None
        start = hunk.old_start - 1 if hunk.removed else hunk.old_start
        assert rebuilt[start : start + len(hunk.removed)] == list(hunk.removed)
        rebuilt[start : start + len(hunk.removed)] = hunk.added
    assert rebuilt == after
    unchanged = edit.removed - (size.removed or 0)
    assert edit.added - (size.added or 0) == unchanged >= 0
