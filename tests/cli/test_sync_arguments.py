"""``sync`` without click: the parsed arguments and the output are the same."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from backscroll.cli.app import app
from backscroll.cli.startup import parse_sync_arguments
from backscroll.testing.claude_code import Transcript
from tests.cli.run_command import Shell, backscroll


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
def test_sync_arguments_are_parsed(
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
def test_other_command_lines_are_left_to_click(words: str) -> None:
    assert parse_sync_arguments(words.split()) is None


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_sync_prints_the_same_with_and_without_click(more: list[str], tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    path = Transcript(seed=1).user("a").assistant("b").write(shell.root)
    Transcript(seed=2).user("c").write(shell.root)
    shell.run("sync")
    path.unlink()
    shell.run("sync")
    result = shell.run("sync", *more)
    with_click = CliRunner().invoke(app, [*shell.options, "sync", *more])
    assert (result.code, result.err) == (with_click.exit_code, with_click.stderr)
    # "since" differs by milliseconds.
    lines = [
        [line for line in out.splitlines() if '"since"' not in line]
        for out in (result.out, with_click.stdout)
    ]
    assert lines[0] == lines[1]
    assert ("vanished" if more else "deleted by the tool") in result.out


def test_an_invalid_root_is_reported_as_in_other_commands() -> None:
    sync, other = backscroll("--root", "nonsense", "sync"), backscroll("--root", "nonsense", "list")
    assert (sync.code, sync.err) == (other.code, other.err)
    assert sync.code == 2
    assert "SOURCE=DIR" in sync.err


def test_an_invalid_home_is_reported_as_in_other_commands(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sync, other = (backscroll("--home", tmp_path / "file" / "home", word) for word in ("sync", "list"))
    assert (sync.code, sync.err) == (other.code, other.err)
    assert sync.code == 1
    assert "is not a folder" in sync.err
