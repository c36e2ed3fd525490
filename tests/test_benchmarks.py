"""What is measured is measured, said and compared as the page about it promises."""

import sys
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import page
from benchmarks.__main__ import QUESTIONS
from benchmarks.check import disagreements
from benchmarks.figures import Beside, Figure, markdown, table
from benchmarks.measure import run
from benchmarks.stage import Stage

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.testing import claude_code


class Small(Stage):
    """A history of a few sessions in place of a thousand."""

    def __init__(self, folder: Path) -> None:
        super().__init__("S", keep=True)
        self.home, self.root = folder / "home", folder / "claude"
        claude_code.history(self.root, sessions=12, seed=3, bytes_target=600_000)
        with History(roots=[NamedRoot("claude-code", self.root)], home=self.home) as history:
            history.sync()


def figure(value: float, *, times: float | None = None) -> Figure:
    return Figure(
        key="sync", what="a sync", value=value, unit="MB/s", wanted=100, times=times, more_is_better=True
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_is_a_module_and_stands_on_the_page(name: str) -> None:
    assert callable(import_module(f"benchmarks.{name}").figures)
    assert f"| {name} |" in page.PAGE.read_text()


def test_a_target_is_met_only_when_the_other_program_is_as_far_behind_as_wanted() -> None:
    beside = [Beside(peer="agentsview", key="sync", value=40, processor=3.5)]
    assert "| yes |" in markdown([figure(120)], [])
    assert "| no |" in markdown([figure(80)], [])
    assert "| yes |" in markdown([figure(120, times=2.5)], beside)
    assert "| no |" in markdown([figure(120, times=3.5)], beside)


def test_the_table_says_what_others_needed() -> None:
    beside = [
        Beside(peer="agentsview", key="sync", value=40, processor=3.5),
        Beside(peer="fast-resume", key="sync", value=240),
    ]
    assert "3.0× (wanted 3×)" in table([figure(120, times=3)], beside)
    row = markdown([figure(120, times=3)], beside).splitlines()[-1]
    assert row == "| a sync | 120 MB/s |  | 100 MB/s | yes | 40 MB/s | 3.5 s | 3.0× (wanted 3×) | 240 MB/s |"


def test_figures_take_the_place_of_the_last_ones_of_their_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "performance.md"
    copy.write_text(page.PAGE.read_text())
    monkeypatch.setattr(page, "PAGE", copy)
    for told in ("seven apples", "eight apples"):
        page.write("S", told)
    page.write("L", "nine apples")
    text = copy.read_text()
    assert "seven apples" not in text
    assert text.index("eight apples") < text.index("nine apples") < text.index("## The others")


def test_an_independent_count_agrees_with_the_archive(tmp_path: Path) -> None:
    assert disagreements(Small(tmp_path)) == []


def test_an_independent_count_notices_what_the_archive_lacks(tmp_path: Path) -> None:
    stage = Small(tmp_path)
    claude_code.Transcript("10000000-0000-4000-8000-000000000000", seed=1).user("More").write(stage.root)
    told = "\n".join(disagreements(stage))
    assert "sessions: " in told
    assert "user messages: " in told


def test_memory_is_summed_over_a_program_and_its_children() -> None:
    kept = "kept = b'x' * 60_000_000"
    child = f"import time; {kept}; time.sleep(1)"
    parent = f"import subprocess, sys; {kept}; subprocess.run([sys.executable, '-c', {child!r}])"
    assert run([sys.executable, "-c", parent], memory=True).memory > 120_000_000


def test_a_program_that_fails_is_not_a_measurement() -> None:
    with pytest.raises(RuntimeError, match="ended with 3: too bad"):
        run([sys.executable, "-c", "import sys; sys.stderr.write('too bad'); sys.exit(3)"])
