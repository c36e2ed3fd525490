"""Twice as many lines take about twice as long, whatever their shape."""

from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from backscroll.model import Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code.blocks import encode

Lines = Callable[[int], Iterator[dict[str, Any]]]


def _line(type_: str, id_: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {"type": type_, "uuid": id_, "parentUuid": parent, "sessionId": "s", "version": "2.1.50", **fields}


def _talk(type_: str, id_: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    message = {"role": type_, "id": f"m-{id_}", "content": content}
    return _line(type_, id_, parent, message=message, **fields)


def _call(id_: str, name: str, put: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": id_, "name": name, "input": put}]


def comb(count: int) -> Iterator[dict[str, Any]]:
    """A chain of lines that nobody said, with a leaf at every link."""
    yield _talk("user", "r", None, "go")
    above = "r"
    for number in range(count):
        yield _line("progress", f"p{number}", above, data={})
        yield _line("attachment", f"q{number}", f"p{number}", attachment={"type": "date"})
        above = f"p{number}"


def abandoned_comb(count: int) -> Iterator[dict[str, Any]]:
    """The same, below a branch that was left."""
    yield _talk("user", "top", None, "start")
    for line in comb(count):
        yield {**line, "parentUuid": line["parentUuid"] or "top"}
    yield _talk("user", "other", "top", "instead")


def removals(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"type": "queue-operation", "operation": "enqueue", "content": f"words {number}"}
        yield {"type": "queue-operation", "operation": "remove"}


def bare_tools(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"type": "tool_use", "id": f"t{number}", "name": "x", "input": {}}
        yield {"type": "tool_result", "name": "y", "output": "z"}


def inlined_agents(count: int) -> Iterator[dict[str, Any]]:
    """Agents that were given other words than their calls say."""
    for number in range(count):
        at = f"2026-01-01T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z"
        yield _talk(
            "assistant",
            f"c{number}",
            None,
            _call(f"t{number}", "Task", {"prompt": f"p{number}"}),
            timestamp=at,
        )
        yield _talk("user", f"s{number}", None, f"q{number}", isSidechain=True, timestamp=at)


def orphan_answers(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield _talk(
            "user", f"r{number}", None, [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "x"}]
        )


def commands_below_one_caveat(count: int) -> Iterator[dict[str, Any]]:
    yield _talk("user", "c", None, "<local-command-caveat>x</local-command-caveat>", isMeta=True)
    for number in range(count):
        yield _talk("user", f"b{number}", "c", f"<bash-input>ls {number}</bash-input>")


def outputs_on_one_line(count: int) -> Iterator[dict[str, Any]]:
    yield _talk("user", "u", None, "<bash-stdout>a</bash-stdout>" * count)


def backwards(count: int) -> Iterator[dict[str, Any]]:
    """Every line stands before its parent."""
    for number in range(count, 0, -1):
        yield _talk("user", f"u{number}", f"u{number - 1}", "x")


def seconds(path: Path, lines: Iterator[dict[str, Any]]) -> float:
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
        (abandoned_comb, 10_000),
        (removals, 4000),
        (bare_tools, 4000),
        (inlined_agents, 4000),
        (orphan_answers, 4000),
        (commands_below_one_caveat, 8000),
        (outputs_on_one_line, 16_000),
        (backwards, 8000),
    ],
)
def test_reading_takes_no_longer_than_in_proportion(lines: Lines, count: int, tmp_path: Path) -> None:
    path = tmp_path / "5e551011-0000-4000-8000-0000000000aa.jsonl"
    little, much = seconds(path, lines(count // 2)), seconds(path, lines(count * 2))
    assert much < max(9 * little, 0.2)  # four times as much; in proportion to its square it would be sixteen
    assert much < 3
