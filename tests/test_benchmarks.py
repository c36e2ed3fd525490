"""Benchmark runner: result tables, the archive check, process measurements and the retrieval corpus."""

import sys
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import locomo, result_table
from benchmarks.__main__ import BENCHMARKS
from benchmarks.archive_check import find_differences
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.measurement import run_process
from benchmarks.result_table import PeerResult, Result, markdown, table, write_results
from benchmarks.retrieval import corpus
from benchmarks.retrieval.bm25 import Bm25
from benchmarks.retrieval.history import archived_id, synced_corpus

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing import claude_code
from tests.builders.claude_code.bulk.history import write_history as write_claude_history

CONTRIBUTING = Path(__file__).parent.parent / "CONTRIBUTING.md"


class SmallContext(BenchmarkContext):
    """Benchmark context with 12 sessions instead of 1,000."""

    def __init__(self, folder: Path) -> None:
        super().__init__("S", keep=True)
        self.home, self.root = folder / "home", folder / "claude"
        write_claude_history(self.root, sessions=12, seed=3, bytes_target=600_000)
        with History(roots=[NamedRoot("claude-code", self.root)], home=self.home) as history:
            history.sync()


def sync_result(value: float, *, target_ratio: float | None = None) -> Result:
    return Result(
        key="sync",
        label="First sync",
        value=value,
        unit="MB/s",
        target=100,
        target_ratio=target_ratio,
        higher_is_better=True,
    )


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_is_a_module_and_is_documented(name: str) -> None:
    assert callable(import_module(f"benchmarks.{name}").measure)
    assert f"`{name}`" in CONTRIBUTING.read_text()


def test_a_target_is_met_only_when_the_ratio_to_the_other_program_is_reached() -> None:
    peer_results = [PeerResult(peer="agentsview", key="sync", value=40, cpu_seconds=3.5)]
    assert "| yes |" in markdown([sync_result(120)], [])
    assert "| no |" in markdown([sync_result(80)], [])
    assert "| yes |" in markdown([sync_result(120, target_ratio=2.5)], peer_results)
    assert "| no |" in markdown([sync_result(120, target_ratio=3.5)], peer_results)


def test_the_table_contains_the_results_of_other_programs() -> None:
    peer_results = [
        PeerResult(peer="agentsview", key="sync", value=40, cpu_seconds=3.5),
        PeerResult(peer="fast-resume", key="sync", value=240),
    ]
    assert "3.0× (target 3×)" in table([sync_result(120, target_ratio=3)], peer_results)
    row = markdown([sync_result(120, target_ratio=3)], peer_results).splitlines()[-1]
    assert row == (
        "| First sync | 120 MB/s |  | 100 MB/s | yes | 40 MB/s | 3.5 s | 3.0× (target 3×) | 240 MB/s |"
    )


def test_results_replace_the_previous_results_of_the_same_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_table, "RESULTS_FOLDER", tmp_path)
    for text in ("seven apples", "eight apples"):
        write_results("S", text)
    write_results("L", "nine apples")
    assert (tmp_path / "S.md").read_text() == "# Benchmark results: history S\n\neight apples\n"
    assert (tmp_path / "L.md").read_text() == "# Benchmark results: history L\n\nnine apples\n"


def test_an_independent_count_matches_the_archive(tmp_path: Path) -> None:
    assert find_differences(SmallContext(tmp_path)) == []


def test_an_independent_count_reports_messages_missing_from_the_archive(tmp_path: Path) -> None:
    context = SmallContext(tmp_path)
    claude_code.Transcript("10000000-0000-4000-8000-000000000000", seed=1).user("More").write(context.root)
    differences = "\n".join(find_differences(context))
    assert "sessions: " in differences
    assert "user messages: " in differences


def test_memory_is_summed_over_a_process_and_its_children() -> None:
    allocate = "data = b'x' * 60_000_000"
    child = f"import time; {allocate}; time.sleep(1)"
    parent = f"import subprocess, sys; {allocate}; subprocess.run([sys.executable, '-c', {child!r}])"
    assert run_process([sys.executable, "-c", parent], sample_memory=True).peak_bytes > 120_000_000


def test_a_failed_process_is_not_a_measurement() -> None:
    with pytest.raises(RuntimeError, match="exited with 3: too bad"):
        run_process([sys.executable, "-c", "import sys; sys.stderr.write('too bad'); sys.exit(3)"])


def test_every_question_of_the_retrieval_corpus_names_a_written_session() -> None:
    sessions = {session.id: session for session in corpus.load_sessions()}
    questions = [question for half in corpus.HALVES for question in corpus.load_questions(half)]
    assert len(sessions) >= 120
    assert len(questions) >= 80
    assert {question.session for question in questions} <= sessions.keys()
    assert len({question.session for question in questions}) == len(questions)
    assert all(2 <= len(question.keywords.split()) <= 5 for question in questions)


@pytest.mark.parametrize("half", corpus.HALVES)
def test_the_half_of_a_retrieval_question_depends_only_on_its_session(half: corpus.Half) -> None:
    assert {corpus.half_of(question.session) for question in corpus.load_questions(half)} == {half}


def test_the_retrieval_corpus_is_searchable_after_a_sync() -> None:
    expected_ids = {archived_id(session) for session in corpus.load_sessions()}
    with synced_corpus(scale=0.02) as history:
        assert expected_ids <= {summary.id for summary in history.all_sessions()}
        found = {match.session_id for match in history.search_sessions("Etikettendrucker").data}
    (session,) = (each for each in corpus.load_sessions() if each.id == "de-druckserver-haenger")
    assert archived_id(session) in found


def test_bm25_ranks_a_short_document_with_all_words_first() -> None:
    bm25 = Bm25({"short": "Redis timeout", "long": "Redis " + "other " * 50 + "timeout", "none": "日本語"})
    assert bm25.rank("redis timeout") == ["short", "long"]
    assert bm25.rank("本語") == ["none"]


def test_a_locomo_question_is_answered_by_the_session_with_its_evidence() -> None:
    turns = {
        1: [("Ann", "I adopted a grey cat."), ("Bo", "How lovely!")],
        2: [("Ann", "My boat sank."), ("Bo", "Oh no!")],
    }
    conversation: dict[str, object] = {"speaker_a": "Ann", "speaker_b": "Bo"}
    for number, spoken in turns.items():
        conversation[f"session_{number}_date_time"] = f"1:56 pm on {number} May, 2023"
        conversation[f"session_{number}"] = [
            {"speaker": speaker, "dia_id": f"D{number}:{position}", "text": text}
            for position, (speaker, text) in enumerate(spoken, 1)
        ]
    questions = [
        {"question": "What happened to the boat?", "answer": "It sank", "evidence": ["D2:1"], "category": 1},
        {"question": "Is Ann rich?", "answer": "Unknown", "evidence": [], "category": 3},
    ]
    (query,) = locomo.answer_ranks([{"conversation": conversation, "qa": questions}])
    assert query.rank == 1


def test_evidence_can_name_several_sessions_in_one_entry() -> None:
    assert locomo.evidence_sessions(["D1:3", "D8:6; D9:17", "D:11:26", "D"]) == {1, 8, 9, 11}
