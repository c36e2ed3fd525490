"""The account of everything below the roots."""

from pathlib import Path

import pytest

from backscroll.ingest.audit import audit
from backscroll.model.audit import AuditedRoot
from backscroll.testing.claude_code import Prompt, Transcript
from backscroll.testing.claude_code.side_files import write_prompts
from tests.histories import HISTORIES, History


def place(history: History, root: Path) -> AuditedRoot:
    (found,) = audit([(history.source(), root)]).places
    return found


@pytest.mark.parametrize("history", HISTORIES, ids=repr)
def test_the_sum_is_right_for_every_history(history: History, tmp_path: Path) -> None:
    found = place(history, history.write(tmp_path / "root"))
    assert found.exists
    assert found.is_balanced
    assert found.records == sum(found.kinds.values())


def test_a_session_found_twice_is_counted_once(tmp_path: Path) -> None:
    session = Transcript().user("a").assistant("b")
    session.write(tmp_path)
    write_prompts(tmp_path, [Prompt("a", session_id=session.session_id), Prompt("x", session_id="gone")])
    (history,) = [one for one in HISTORIES if repr(one) == "claude-code 2.0.0"]
    found = place(history, tmp_path)
    assert (found.sessions, found.completeness) == (2, {"complete": 1, "lossy": 1})
    assert found.messages == 3


def test_progress_goes_from_nothing_to_everything(tmp_path: Path) -> None:
    Transcript().user("a").write(tmp_path)
    Transcript(seed=1).user("b").write(tmp_path)
    steps: list[tuple[int, int]] = []
    audit([(HISTORIES[0].source(), tmp_path)], lambda done, total: steps.append((done, total)))
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert steps[-1][0] == steps[-1][1]


def test_a_root_that_is_not_there_is_told_and_empty(tmp_path: Path) -> None:
    found = place(HISTORIES[0], tmp_path / "nowhere")
    assert (found.exists, found.records, found.units) == (False, 0, {})
