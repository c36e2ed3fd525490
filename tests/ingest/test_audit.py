"""Audit of the roots: every record is counted as understood, ignored or a problem."""

from pathlib import Path

import pytest

from backscroll.ingest.audit import audit
from backscroll.model.problem import AuditedRoot
from backscroll.testing.claude_code import Prompt, Transcript
from backscroll.testing.claude_code.side_files import write_prompts
from tests.histories import HISTORIES, History


def audit_root(history: History, root: Path) -> AuditedRoot:
    (audited,) = audit([(history.source(), root)]).places
    return audited


@pytest.mark.parametrize("history", HISTORIES, ids=repr)
def test_the_record_counts_add_up_for_every_history(history: History, tmp_path: Path) -> None:
    audited = audit_root(history, history.write(tmp_path / "root"))
    assert audited.exists
    assert audited.is_balanced
    assert audited.records == sum(audited.kinds.values())


def test_a_session_in_two_files_is_counted_once(tmp_path: Path) -> None:
    session = Transcript().user("a").assistant("b")
    session.write(tmp_path)
    write_prompts(tmp_path, [Prompt("a", session_id=session.session_id), Prompt("x", session_id="gone")])
    (history,) = [history for history in HISTORIES if repr(history) == "claude-code 2.0.0"]
    audited = audit_root(history, tmp_path)
    assert (audited.sessions, audited.completeness) == (2, {"complete": 1, "lossy": 1})
    assert audited.messages == 3


def test_progress_increases_to_the_total(tmp_path: Path) -> None:
    Transcript().user("a").write(tmp_path)
    Transcript(seed=1).user("b").write(tmp_path)
    steps: list[tuple[int, int]] = []
    audit([(HISTORIES[0].source(), tmp_path)], lambda done, total: steps.append((done, total)))
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert steps[-1][0] == steps[-1][1]


def test_a_missing_root_is_reported_as_missing_and_empty(tmp_path: Path) -> None:
    audited = audit_root(HISTORIES[0], tmp_path / "nowhere")
    assert (audited.exists, audited.records, audited.units) == (False, 0, {})
