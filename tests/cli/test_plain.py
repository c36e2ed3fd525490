"""A plain sync is understood without what reads every command line, and says the same."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from backscroll.cli.app import app
from backscroll.cli.setup import parse_sync_arguments
from backscroll.testing.claude_code import Transcript
from tests.cli.running import Shell, backscroll


@pytest.mark.parametrize(
    ("words", "home", "roots", "as_json"),
    [
        ("sync", None, (), False),
        ("sync --json", None, (), True),
        ("--home a sync", "a", (), False),
        ("--home=a --home b sync", "b", (), False),
        ("--root x=y --root=cursor=z sync --json", None, ("x=y", "cursor=z"), True),
        ("--root x=--y sync", None, ("x=--y",), False),
    ],
)
def test_plain_words_are_understood(
    words: str, home: str | None, roots: tuple[str, ...], as_json: bool
) -> None:
    found = parse_sync_arguments(words.split())
    assert found is not None
    setup, is_json = found
    assert (setup.home, setup.roots, is_json) == (Path(home) if home else None, roots, as_json)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "list",
        "--help",
        "-h sync",
        "sync --help",
        "sync --json --json",
        "sync more",
        "--home",
        "--home sync",
        "--home= sync",
        "--home --root sync",
        "--hom a sync",
        "-- sync",
        "--verbose sync",
    ],
)
def test_whatever_else_is_asked_for_is_left_to_what_reads_every_command_line(words: str) -> None:
    assert parse_sync_arguments(words.split()) is None


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_it_says_the_same_either_way(more: list[str], tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    path = Transcript(seed=1).user("a").assistant("b").write(shell.root)
    Transcript(seed=2).user("c").write(shell.root)
    shell.run("sync")
    path.unlink()
    shell.run("sync")
    ran = shell.run("sync", *more)
    through = CliRunner().invoke(app, [*shell.options, "sync", *more])
    assert (ran.code, ran.err) == (through.exit_code, through.stderr)
    # When a week began is told to the millisecond.
    told = [[line for line in out.splitlines() if '"since"' not in line] for out in (ran.out, through.stdout)]
    assert told[0] == told[1]
    assert "vanished" in ran.out


def test_a_wrong_root_is_told_as_everywhere() -> None:
    plain, other = backscroll("--root", "nonsense", "sync"), backscroll("--root", "nonsense", "list")
    assert (plain.code, plain.err) == (other.code, other.err)
    assert plain.code == 2
    assert "SOURCE=DIR" in plain.err


def test_a_home_that_cannot_be_is_told_as_everywhere(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    plain, other = (backscroll("--home", tmp_path / "file" / "home", word) for word in ("sync", "list"))
    assert (plain.code, plain.err) == (other.code, other.err)
    assert plain.code == 1
    assert "is not a folder" in plain.err
