"""A history in bulk resembles the published ones, of which these figures were taken."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing.claude_code import history

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


@dataclass
class Measured:
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
    packed: int = 0
    two_ids: int = 0
    without_message: int = 0
    orphans: int = 0
    compactions: int = 0


def near(value: float, wanted: float, *, by: float = 0.3) -> bool:
    return wanted * (1 - by) <= value <= wanted * (1 + by)


def quantile(values: list[int], share: float) -> int:
    return sorted(values)[int(len(values) * share)]


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def mains(root: Path) -> Iterator[Path]:
    return (path for path in root.glob("projects/*/*.jsonl") if not path.stem.startswith("agent-"))


def blocks(message: dict[str, Any]) -> Iterable[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def measure(root: Path) -> Measured:
    seen = Measured()
    for path in mains(root):
        lines = path.read_bytes().splitlines()
        seen.file_sizes.append(path.stat().st_size)
        seen.packed += len(zstd.compress(path.read_bytes(), 3))
        seen.counts.append(len(lines))
        records = [json.loads(line) for line in lines]
        uuids = {record.get("uuid") for record in records}
        seen.two_ids += len({record.get("sessionId") for record in records} - {None}) > 1
        seen.without_message += not any("message" in record for record in records)
        seen.orphans += any(record.get("parentUuid") not in uuids | {None} for record in records)
        for line, record in zip(lines, records, strict=True):
            seen.records.append(len(line))
            seen.by_type[record["type"]] += len(line)
            seen.compactions += record.get("subtype") == "compact_boundary"
            count_record(seen, record)
    return seen


def count_record(seen: Measured, record: dict[str, Any]) -> None:
    for name in ("message", "toolUseResult"):
        if name in record:
            seen.by_field[name] += size(record[name])
    for block in blocks(record["message"]) if "message" in record else ():
        kind = f"{record['type']} {block['type']}"
        seen.blocks[kind] += 1
        match block["type"]:
            case "tool_use":
                seen.tools[block["name"]] += 1
                seen.text[kind] += size(block["input"])
                seen.inputs[f"{record['sessionId']} {block['input']}"] += 1
            case "tool_result" if isinstance(block["content"], str):
                seen.results.append(len(block["content"]))
                seen.text[kind] += len(block["content"])
                if seen.text[kind] < 2_000_000:
                    seen.words.update(re.findall(r"\w+", block["content"].lower()))
            case "thinking":
                seen.text["signature"] += len(block["signature"])
            case "text":
                seen.text[kind] += len(block["text"])


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    root = tmp_path_factory.mktemp("bulk")
    history(root, sessions=400, seed=5)
    return measure(root)


def test_files_have_the_sizes_of_real_ones(seen: Measured) -> None:
    assert near(quantile(seen.file_sizes, 0.1), 1291, by=0.5)
    assert near(quantile(seen.file_sizes, 0.5), 106_323)
    assert near(quantile(seen.file_sizes, 0.9), 1_178_704)
    assert near(quantile(seen.file_sizes, 0.99), 3_487_078, by=0.6)


def test_files_have_as_many_records_as_real_ones(seen: Measured) -> None:
    assert quantile(seen.counts, 0.1) == 1
    assert near(quantile(seen.counts, 0.5), 34)
    assert near(quantile(seen.counts, 0.9), 317)
    assert near(quantile(seen.counts, 0.99), 977, by=0.5)


def test_records_have_the_sizes_of_real_ones(seen: Measured) -> None:
    wanted = {0.1: 507, 0.5: 997, 0.9: 6552, 0.99: 41_267, 0.999: 216_454}
    assert all(near(quantile(seen.records, share), value) for share, value in wanted.items())


def test_tool_results_have_the_sizes_of_real_ones(seen: Measured) -> None:
    wanted = {0.1: 44, 0.5: 396, 0.9: 4618, 0.99: 26_100, 0.999: 55_893}
    assert all(near(quantile(seen.results, share), value) for share, value in wanted.items())
    assert max(seen.results) <= 102_524


def test_bytes_lie_where_they_lie_in_real_ones(seen: Measured) -> None:
    whole = sum(seen.file_sizes)
    assert near(seen.by_type["user"] / whole, 0.75, by=0.1)
    assert near(seen.by_type["assistant"] / whole, 0.225, by=0.15)
    assert near(seen.by_field["toolUseResult"] / whole, 0.46, by=0.15)
    assert near(seen.by_field["message"] / whole, 0.45, by=0.15)
    assert near(seen.text["user tool_result"] / whole, 0.156)
    assert near(seen.text["assistant tool_use"] / whole, 0.07)
    assert near(seen.text["assistant text"] / whole, 0.016)
    assert near(seen.text["user text"] / whole, 0.026, by=0.5)
    assert near(seen.text["signature"] / whole, 0.019)


def test_blocks_come_in_the_proportions_of_real_ones(seen: Measured) -> None:
    whole = sum(seen.blocks.values())
    wanted = {"assistant tool_use": 29.6, "user tool_result": 29.5, "assistant text": 17.8, "user text": 5.7}
    assert all(near(seen.blocks[kind] / whole, count / 87.2, by=0.2) for kind, count in wanted.items())
    assert seen.blocks["user image"] > 0


def test_tools_are_called_as_often_as_in_real_ones(seen: Measured) -> None:
    whole = sum(seen.tools.values())
    wanted = {"Bash": 0.29, "Read": 0.19, "Edit": 0.16, "TodoWrite": 0.12, "Write": 0.06, "Grep": 0.05}
    assert all(near(seen.tools[name] / whole, share, by=0.15) for name, share in wanted.items())


def test_files_are_as_irregular_as_real_ones(seen: Measured) -> None:
    files = len(seen.file_sizes)
    assert near(seen.without_message / files, 1 / 8, by=0.4)
    assert near(seen.two_ids / files, 1 / 7, by=0.4)
    assert near(seen.orphans / files, 1 / 30, by=0.8)
    assert near(seen.compactions / files, 257 / 2900, by=0.6)


def test_files_can_be_packed_as_small_as_real_ones(seen: Measured) -> None:
    assert 0.14 <= seen.packed / sum(seen.file_sizes) <= 0.18


def test_calls_are_repeated_and_words_vary_as_in_real_ones(seen: Measured) -> None:
    assert near(len(seen.inputs) / seen.inputs.total(), 0.93, by=0.1)
    assert near(len(seen.words), 9500, by=0.5)


def test_what_is_read_stands_in_both_copies(tmp_path: Path) -> None:
    history(tmp_path, sessions=20, seed=4, bytes_target=2_000_000)
    records = [json.loads(line) for path in mains(tmp_path) for line in path.read_bytes().splitlines()]
    files = [record for record in records if "file" in record.get("toolUseResult", ())]
    for record in (record for record in files if record["toolUseResult"]["type"] == "text"):
        numbered = record["message"]["content"][0]["content"].split("\n")
        plain = record["toolUseResult"]["file"]["content"].split("\n")
        assert [line.partition("→")[2] for line in numbered[: len(plain) - 1]] == plain[:-1]
    assert files


def test_a_history_is_as_large_as_asked_for_and_counts_what_it_wrote(tmp_path: Path) -> None:
    written = history(tmp_path, sessions=20, seed=2, bytes_target=6_000_000)
    files = list(tmp_path.rglob("*.jsonl"))
    assert near(written.size, 6_000_000, by=0.1)
    assert written.size == sum(path.stat().st_size for path in files)
    assert written.files == len(files)
    assert written.records == sum(path.read_bytes().count(b"\n") for path in files)


def test_one_session_can_be_as_large_as_one_likes(tmp_path: Path) -> None:
    written = history(tmp_path, sessions=1, bytes_target=3_000_000)
    assert len(written.sessions) == 1
    assert near(next(mains(tmp_path)).stat().st_size, 3_000_000, by=0.2)


def test_every_session_names_its_ticket(tmp_path: Path) -> None:
    written = history(tmp_path, sessions=60, seed=1, bytes_target=3_000_000)
    for path in (path for path in mains(tmp_path) if path.stem in written.sessions):
        assert b'"ticket-' in path.read_bytes()


def test_the_same_seed_gives_the_same_history(tmp_path: Path) -> None:
    def bytes_of(place: str, seed: int) -> dict[str, bytes]:
        root = tmp_path / place
        history(root, sessions=12, seed=seed, bytes_target=800_000)
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.jsonl")}

    assert bytes_of("one", 1) == bytes_of("two", 1) != bytes_of("three", 2)


def test_subagents_are_written_in_every_layout(tmp_path: Path) -> None:
    history(tmp_path, sessions=60, seed=3, bytes_target=25_000_000)
    inline = sum(b'"isSidechain":true' in path.read_bytes() for path in mains(tmp_path))
    assert inline
    assert list(tmp_path.glob("projects/*/agent-*.jsonl"))
    assert list(tmp_path.glob("projects/*/*/subagents/agent-*.jsonl"))
