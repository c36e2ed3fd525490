"""Shell commands that create commits."""

import pytest

from backscroll.commits.shell import (
    CommitCommand,
    created_hashes,
    parse_commit,
    shown_hashes,
    written_texts,
)


def parsed(command: str) -> CommitCommand:
    found = parse_commit(command)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m 'Add prices'",
        "git add -A && git commit -qam 'Add prices'",
        "cd shop; /usr/bin/git -c user.name=x commit -m 'Add prices'",
        "bash -lc 'git commit -m \"Add prices\"'",
        "bash -lc git commit -m 'Add prices'",
        "GIT_AUTHOR_DATE=now git commit -m 'Add prices'",
        "sudo -u robin git commit -m 'Add prices'",
        "if make test; then git commit -m 'Add prices'; fi",
        "git commit \\\n  -m 'Add prices'",
        "out=$(git commit -m 'Add prices')",
        "python -m pytest && git commit --message='Add prices' && git tag -m v1 v1",
        "git commit -m \"$(cat <<'EOF'\nAdd prices\n\nReason.\nEOF\n)\" && git push",
        "git commit -m \"$(cat <<'EOF'\nAdd prices\nEOF)\" && git push -m 'x'",
        "git commit -F - <<'EOF'\nAdd prices\nEOF",
        "git merge --no-ff -m 'Add prices' topic",
    ],
)
def test_the_message_of_a_commit_is_found(command: str) -> None:
    assert parsed(command).subjects == ["Add prices"]


@pytest.mark.parametrize(
    "command",
    [
        "git merge-base HEAD main",
        "git log --grep commit",
        'grep -rn "git commit" docs; git log -2',
        "git show HEAD; echo 'then run git commit'",
        "# git commit -m x\ngit status",
        "cat <<'EOF'\ngit commit -m x\nEOF",
        "git commit --dry-run",
        "git merge --ff-only origin/main",
        "git merge --abort",
        "git merge --squash topic",
        "git config alias.ci commit",
        "git commit-graph write",
    ],
)
def test_other_commands_create_no_commit(command: str) -> None:
    assert parse_commit(command) is None


def test_the_parent_of_a_revert_is_not_its_message() -> None:
    assert parsed("git revert -m 1 1a2b3c4").subjects == []


def test_the_folder_of_a_commit_is_that_of_cd_and_of_its_option() -> None:
    assert parsed("git commit -m x").folder == ""
    assert parsed("cd ../api && git commit -m x && cd ..").folder == "../api"
    assert parsed("cd /srv && git -C api commit -m x").folder == "/srv/api"


def test_a_later_command_can_show_the_new_hash() -> None:
    assert parsed("git commit -qm x && git rev-parse HEAD").shows_head
    assert parsed("git commit -qm x && git log --oneline -1").shows_head
    assert not parsed("git log -1; git commit -qm x").shows_head


def test_only_a_summary_with_a_branch_is_a_created_commit() -> None:
    output = (
        "[main (root-commit) 1a2b3c4] Start\n[detached HEAD 5d6e7f8] Next\n[9a8b7c6] Listed\ncommit 1234567\n"
    )
    assert created_hashes(output) == ["1a2b3c4", "5d6e7f8"]
    assert shown_hashes("Updating 1a2b3c4..5d6e7f8\ncommit 1234567\n") == ["5d6e7f8", "1234567"]


def test_the_text_after_a_quoted_command_is_still_written() -> None:
    (written,) = written_texts("echo 'git commit' > log; cat > a.py <<'EOF'\nvalue = 1\nEOF")
    assert (written.path, written.text) == ("log", "value = 1\n")
    assert list(written_texts("git commit -F - <<'EOF'\nAdd prices\nEOF")) == []
