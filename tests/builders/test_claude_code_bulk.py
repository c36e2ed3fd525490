"""Generated histories have the sizes and proportions that were measured in published ones."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from benchmarks.history_figures import HistoryFigures, count_history

from tests.builders.claude_code.bulk.history import write_history
from tests.builders.claude_code.bulk.text_pool import cut_escaped

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


@dataclass
class Measurements:
    """Sizes and counts of a history."""

    file_sizes: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    by_type: Counter[str] = field(default_factory=Counter)
    by_field: Counter[str] = field(default_factory=Counter)
    text: Counter[str] = field(default_factory=Counter)
    blocks: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    inputs: Counter[str] = field(default_factory=Counter)
    words: set[str] = field(default_factory=set)
    compressed: int = 0
    two_ids: int = 0
    without_message: int = 0
    orphans: int = 0
    compactions: int = 0


def is_near(value: float, expected: float, *, tolerance: float = 0.3) -> bool:
    return expected * (1 - tolerance) <= value <= expected * (1 + tolerance)


def quantile(values: list[int], share: float) -> int:
    return sorted(values)[int(len(values) * share)]


def encoded_size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def session_files(root: Path) -> Iterator[Path]:
    return (path for path in root.glob("projects/*/*.jsonl") if not path.stem.startswith("agent-"))


def content_blocks(message: dict[str, Any]) -> Iterable[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def measure(root: Path) -> Measurements:
    measured = Measurements()
    for path in session_files(root):
        lines = path.read_bytes().splitlines()
        measured.file_sizes.append(path.stat().st_size)
        measured.compressed += len(zstd.compress(path.read_bytes(), 3))
        measured.counts.append(len(lines))
        records = [json.loads(line) for line in lines]
        uuids = {record.get("uuid") for record in records}
        measured.two_ids += len({record.get("sessionId") for record in records} - {None}) > 1
        measured.without_message += not any("message" in record for record in records)
        measured.orphans += any(record.get("parentUuid") not in uuids | {None} for record in records)
        for line, record in zip(lines, records, strict=True):
            measured.records.append(len(line))
            measured.by_type[record["type"]] += len(line)
            measured.compactions += record.get("subtype") == "compact_boundary"
            count_record(measured, record)
    return measured


def count_record(measured: Measurements, record: dict[str, Any]) -> None:
    for name in ("message", "toolUseResult"):
        if name in record:
            measured.by_field[name] += encoded_size(record[name])
    for block in content_blocks(record["message"]) if "message" in record else ():
        kind = f"{record['type']} {block['type']}"
        measured.blocks[kind] += 1
        match block["type"]:
            case "tool_use":
                measured.tools[block["name"]] += 1
                measured.text[kind] += encoded_size(block["input"])
                measured.inputs[f"{record['sessionId']} {block['input']}"] += 1
            case "tool_result" if isinstance(block["content"], str):
                measured.results.append(len(block["content"]))
                measured.text[kind] += len(block["content"])
                if measured.text[kind] < 2_000_000:
                    measured.words.update(re.findall(r"\w+", block["content"].lower()))
            case "thinking":
                measured.text["signature"] += len(block["signature"])
            case "text":
                measured.text[kind] += len(block["text"])


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory: pytest.TempPathFactory) -> HistoryFigures:
    root = tmp_path_factory.mktemp("multilingual")
    write_history(root, sessions=300, seed=4, is_multilingual=True)
    return count_history(root)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measurements:
    root = tmp_path_factory.mktemp("bulk")
    write_history(root, sessions=400, seed=12)
    return measure(root)


@pytest.mark.soak
def test_files_have_the_sizes_of_real_ones(measured: Measurements) -> None:
    assert is_near(quantile(measured.file_sizes, 0.1), 1291, tolerance=0.5)
    assert is_near(quantile(measured.file_sizes, 0.5), 106_323)
    assert is_near(quantile(measured.file_sizes, 0.9), 1_178_704)
    assert is_near(quantile(measured.file_sizes, 0.99), 3_487_078, tolerance=0.6)


@pytest.mark.soak
def test_files_have_as_many_records_as_real_ones(measured: Measurements) -> None:
    assert quantile(measured.counts, 0.1) == 1
    assert is_near(quantile(measured.counts, 0.5), 34)
    assert is_near(quantile(measured.counts, 0.9), 317)
    assert is_near(quantile(measured.counts, 0.99), 977, tolerance=0.5)


@pytest.mark.soak
def test_records_have_the_sizes_of_real_ones(measured: Measurements) -> None:
    expected = {0.1: 507, 0.5: 997, 0.9: 6552, 0.99: 41_267, 0.999: 216_454}
    assert all(is_near(quantile(measured.records, share), value) for share, value in expected.items())


@pytest.mark.soak
def test_tool_results_have_the_sizes_of_real_ones(measured: Measurements) -> None:
    expected = {0.1: 44, 0.5: 396, 0.9: 4618, 0.99: 26_100, 0.999: 55_893}
    assert all(is_near(quantile(measured.results, share), value) for share, value in expected.items())
    assert max(measured.results) <= 102_524


@pytest.mark.soak
def test_record_types_and_fields_have_the_byte_shares_of_real_ones(measured: Measurements) -> None:
    total = sum(measured.file_sizes)
    assert is_near(measured.by_type["user"] / total, 0.75, tolerance=0.1)
    assert is_near(measured.by_type["assistant"] / total, 0.225, tolerance=0.15)
    assert is_near(measured.by_field["toolUseResult"] / total, 0.46, tolerance=0.15)
    assert is_near(measured.by_field["message"] / total, 0.45, tolerance=0.15)
    assert is_near(measured.text["user tool_result"] / total, 0.156)
    assert is_near(measured.text["assistant tool_use"] / total, 0.07)
    assert is_near(measured.text["assistant text"] / total, 0.016)
    assert is_near(measured.text["user text"] / total, 0.026, tolerance=0.5)
    assert is_near(measured.text["signature"] / total, 0.019)


@pytest.mark.soak
def test_blocks_have_the_frequencies_of_real_ones(measured: Measurements) -> None:
    total = sum(measured.blocks.values())
    expected = {
        "assistant tool_use": 29.6,
        "user tool_result": 29.5,
        "assistant text": 17.8,
        "user text": 5.7,
    }
    assert all(
        is_near(measured.blocks[kind] / total, count / 87.2, tolerance=0.2)
        for kind, count in expected.items()
    )
    assert measured.blocks["user image"] > 0


@pytest.mark.soak
def test_tools_are_called_as_often_as_in_real_ones(measured: Measurements) -> None:
    total = sum(measured.tools.values())
    expected = {"Bash": 0.29, "Read": 0.19, "Edit": 0.16, "TodoWrite": 0.12, "Write": 0.06, "Grep": 0.05}
    assert all(
        is_near(measured.tools[name] / total, share, tolerance=0.15) for name, share in expected.items()
    )


@pytest.mark.soak
def test_files_are_as_irregular_as_real_ones(measured: Measurements) -> None:
    files = len(measured.file_sizes)
    assert is_near(measured.without_message / files, 1 / 8, tolerance=0.4)
    assert is_near(measured.two_ids / files, 1 / 7, tolerance=0.4)
    assert is_near(measured.orphans / files, 1 / 30, tolerance=0.8)
    assert is_near(measured.compactions / files, 257 / 2900, tolerance=0.6)


@pytest.mark.soak
def test_files_compress_as_well_as_real_ones(measured: Measurements) -> None:
    assert 0.14 <= measured.compressed / sum(measured.file_sizes) <= 0.18


@pytest.mark.soak
def test_calls_are_repeated_and_words_vary_as_in_real_ones(measured: Measurements) -> None:
    assert is_near(len(measured.inputs) / measured.inputs.total(), 0.93, tolerance=0.1)
    # English histories have 9,500, histories in several languages twice as many.
    assert 9500 <= len(measured.words) <= 20_000


@pytest.mark.soak
def test_identifiers_and_copies_are_as_frequent_as_in_real_ones(multilingual: HistoryFigures) -> None:
    assert is_near(multilingual.per_mb(multilingual.words), 34_700, tolerance=0.15)
    assert is_near(multilingual.per_mb(multilingual.compound_identifiers), 2970, tolerance=0.15)
    assert is_near(multilingual.copies / multilingual.sessions, 0.1, tolerance=0.6)


@pytest.mark.soak
def test_a_multilingual_history_has_the_characters_of_a_real_one(multilingual: HistoryFigures) -> None:
    total = multilingual.non_ascii.total()
    assert is_near(multilingual.per_mb(total), 3870)
    assert is_near(multilingual.non_ascii["arrows"] / total, 0.54)
    assert is_near(multilingual.non_ascii["box drawing"] / total, 0.18)
    others = ("CJK", "accented Latin", "Cyrillic", "kana")
    assert is_near(sum(multilingual.non_ascii[name] for name in others) / total, 0.243, tolerance=0.5)
    assert is_near(multilingual.longest_text, 2_113_000, tolerance=0.05)


def test_text_is_cut_between_characters_and_escapes() -> None:
    assert cut_escaped("açaí".encode(), 2) == b"a"
    assert cut_escaped(rb"one\ntwo", 4) == b"one"
    assert cut_escaped(rb"one\u001btwo", 7) == b"one"
    assert cut_escaped(b"one", 9) == b"one"


def test_the_content_of_a_read_file_is_in_both_results(tmp_path: Path) -> None:
    write_history(tmp_path, sessions=20, seed=4, bytes_target=2_000_000)
    records = [
        json.loads(line) for path in session_files(tmp_path) for line in path.read_bytes().splitlines()
    ]
    files = [record for record in records if "file" in record.get("toolUseResult", ())]
    for record in (record for record in files if record["toolUseResult"]["type"] == "text"):
        numbered = record["message"]["content"][0]["content"].split("\n")
        plain = record["toolUseResult"]["file"]["content"].split("\n")
        assert [line.partition("→")[2] for line in numbered[: len(plain) - 1]] == plain[:-1]
    assert files


def test_a_history_has_the_given_size_and_returns_its_totals(tmp_path: Path) -> None:
    written = write_history(tmp_path, sessions=20, seed=2, bytes_target=6_000_000)
    files = list(tmp_path.rglob("*.jsonl"))
    assert is_near(written.size, 6_000_000, tolerance=0.1)
    assert written.size == sum(path.stat().st_size for path in files)
    assert written.files == len(files)
    assert written.records == sum(path.read_bytes().count(b"\n") for path in files)


def test_one_session_can_have_any_size(tmp_path: Path) -> None:
    written = write_history(tmp_path, sessions=1, bytes_target=3_000_000)
    assert len(written.sessions) == 1
    assert is_near(next(session_files(tmp_path)).stat().st_size, 3_000_000, tolerance=0.2)


def test_every_session_contains_its_ticket(tmp_path: Path) -> None:
    written = write_history(tmp_path, sessions=60, seed=1, bytes_target=3_000_000)
    for path in (path for path in session_files(tmp_path) if path.stem in written.sessions):
        assert b'"ticket-' in path.read_bytes()


def test_the_same_seed_gives_the_same_history(tmp_path: Path) -> None:
    def file_contents(folder: str, seed: int) -> dict[str, bytes]:
        root = tmp_path / folder
        write_history(root, sessions=12, seed=seed, bytes_target=800_000)
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.jsonl")}

    assert file_contents("one", 1) == file_contents("two", 1) != file_contents("three", 2)


@pytest.mark.soak
def test_subagents_are_written_in_every_layout(tmp_path: Path) -> None:
    write_history(tmp_path, sessions=60, seed=3, bytes_target=25_000_000)
    inline = sum(b'"isSidechain":true' in path.read_bytes() for path in session_files(tmp_path))
    assert inline
    assert list(tmp_path.glob("projects/*/agent-*.jsonl"))
    assert list(tmp_path.glob("projects/*/*/subagents/agent-*.jsonl"))
