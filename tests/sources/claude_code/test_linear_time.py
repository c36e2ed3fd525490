"""The time to read a transcript is proportional to its number of lines, for trees of any shape."""

from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from backscroll.model.store import Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code.blocks import encode

Lines = Callable[[int], Iterator[dict[str, Any]]]


def _line(type_: str, id_: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {"type": type_, "uuid": id_, "parentUuid": parent, "sessionId": "s", "version": "2.1.50", **fields}


def _dialog_line(type_: str, id_: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    message = {"role": type_, "id": f"m-{id_}", "content": content}
    return _line(type_, id_, parent, message=message, **fields)


def _call(id_: str, name: str, input_: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": id_, "name": name, "input": input_}]


def comb(count: int) -> Iterator[dict[str, Any]]:
    """Yield a chain of lines without messages, each with a leaf."""
    yield _dialog_line("user", "r", None, "go")
    parent_id = "r"
    for number in range(count):
        yield _line("progress", f"p{number}", parent_id, data={})
        yield _line("attachment", f"q{number}", f"p{number}", attachment={"type": "date"})
        parent_id = f"p{number}"


def abandoned_comb(count: int) -> Iterator[dict[str, Any]]:
    """Yield the same chain on an abandoned branch."""
    yield _dialog_line("user", "top", None, "start")
    for line in comb(count):
        yield {**line, "parentUuid": line["parentUuid"] or "top"}
    yield _dialog_line("user", "other", "top", "instead")


def queue_removals(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"type": "queue-operation", "operation": "enqueue", "content": f"words {number}"}
        yield {"type": "queue-operation", "operation": "remove"}


def bare_tools(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"type": "tool_use", "id": f"t{number}", "name": "x", "input": {}}
        yield {"type": "tool_result", "name": "y", "output": "z"}


def inlined_agents(count: int) -> Iterator[dict[str, Any]]:
    """Yield inlined subagents with other prompts than their calls."""
    for number in range(count):
        at = f"2026-01-01T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z"
        yield _dialog_line(
            "assistant",
            f"c{number}",
            None,
            _call(f"t{number}", "Task", {"prompt": f"p{number}"}),
            timestamp=at,
        )
        yield _dialog_line("user", f"s{number}", None, f"q{number}", isSidechain=True, timestamp=at)


def orphan_results(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield _dialog_line(
            "user", f"r{number}", None, [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "x"}]
        )


def commands_below_one_caveat(count: int) -> Iterator[dict[str, Any]]:
    yield _dialog_line("user", "c", None, "<local-command-caveat>x</local-command-caveat>", isMeta=True)
    for number in range(count):
        yield _dialog_line("user", f"b{number}", "c", f"<bash-input>ls {number}</bash-input>")


def outputs_on_one_line(count: int) -> Iterator[dict[str, Any]]:
    yield _dialog_line("user", "u", None, "<bash-stdout>a</bash-stdout>" * count)


def reversed_lines(count: int) -> Iterator[dict[str, Any]]:
    """Yield lines before their parents."""
    for number in range(count, 0, -1):
        yield _dialog_line("user", f"u{number}", f"u{number - 1}", "x")


def measure_seconds(path: Path, lines: Iterator[dict[str, Any]]) -> float:
    path.write_bytes(b"".join(encode(line) + b"\n" for line in lines))
    unit = Unit("claude-code", "", str(path))
    taken = []
    for _ in range(3):
        before = process_time()
        for _item in ClaudeCode().read(unit):
            pass
        taken.append(process_time() - before)
    return min(taken)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (comb, 10_000),
        pytest.param(abandoned_comb, 10_000, marks=pytest.mark.soak),
        pytest.param(queue_removals, 4000, marks=pytest.mark.soak),
        pytest.param(bare_tools, 4000, marks=pytest.mark.soak),
        (inlined_agents, 4000),
        pytest.param(orphan_results, 4000, marks=pytest.mark.soak),
        pytest.param(commands_below_one_caveat, 8000, marks=pytest.mark.soak),
        pytest.param(outputs_on_one_line, 16_000, marks=pytest.mark.soak),
        pytest.param(reversed_lines, 8000, marks=pytest.mark.soak),
    ],
)
def test_reading_time_is_proportional_to_the_number_of_lines(
    lines: Lines, count: int, tmp_path: Path
) -> None:
    path = tmp_path / "5e551011-0000-4000-8000-0000000000aa.jsonl"
    short_time, long_time = measure_seconds(path, lines(count // 2)), measure_seconds(path, lines(count * 2))
    # Four times as many lines: quadratic time would be a factor of sixteen.
    assert long_time < max(9 * short_time, 0.2)
    assert long_time < 3
