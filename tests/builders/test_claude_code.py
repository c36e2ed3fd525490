"""The Claude Code builders write the format of each version."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing.claude_code import (
    Call,
    Release,
    Transcript,
    append_foreign_lines,
    continue_in_new_file,
    fork,
    project_key,
    repeat_lines,
    resume,
    tool_calls,
)
from backscroll.testing.claude_code.side_files import (
    write_empty_stub,
    write_running_process,
    write_session_index,
    write_settings,
)
from tests.builders.claude_code.generations import GENERATIONS

Record = dict[str, Any]
LINKED_TYPES = {"user", "assistant", "system", "attachment", "progress"}


def read_records(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def written_records(session: Transcript) -> list[Record]:
    return [json.loads(line) for line in session.lines().splitlines()]


def responses(session: Transcript) -> list[Record]:
    return [record for record in written_records(session) if record["type"] == "assistant"]


def file_contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }


def all_keys(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                yield name
                yield from all_keys(inner)
        case list():
            for inner in value:
                yield from all_keys(inner)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/home/zoe/my_app.v2", "-home-zoe-my-app-v2"),
        ("C:\\Users\\Zoe\\dev", "C--Users-Zoe-dev"),
        ("/srv/日本/x", "-srv----x"),
        ("/srv/🚀/x", "-srv----x"),
        ("/srv/cafe\u0301", "-srv-cafe-"),
    ],
)
def test_a_project_key_contains_only_letters_digits_and_dashes(path: str, key: str) -> None:
    assert project_key(path) == key


def test_a_long_project_key_ends_in_a_hash_of_the_path() -> None:
    path = "/srv/" + "/".join(f"segment{n:02d}" for n in range(25))
    assert len(path) == 254
    assert len(project_key(path)) == 207
    assert project_key(path).endswith("-segment18-segme-kme5to")


@pytest.mark.parametrize("name", GENERATIONS)
def test_the_same_seed_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        GENERATIONS[name](tmp_path / folder, 3)
    GENERATIONS[name](tmp_path / "other", 4)
    assert file_contents(tmp_path / "one") == file_contents(tmp_path / "two")
    assert file_contents(tmp_path / "one").keys() != file_contents(tmp_path / "other").keys()


@pytest.mark.parametrize("name", GENERATIONS)
def test_every_line_of_a_generation_is_a_record(name: str, tmp_path: Path) -> None:
    sessions = GENERATIONS[name](tmp_path, 0)
    files = list(tmp_path.rglob("*.jsonl"))
    assert {session.path(tmp_path) for session in sessions} <= set(files)
    for record in (record for file in files for record in read_records(file)):
        assert isinstance(record, dict)
        if record.get("type") in LINKED_TYPES:
            assert {"uuid", "parentUuid", "timestamp", "sessionId", "cwd", "version"} <= record.keys()


@pytest.mark.parametrize("name", GENERATIONS)
def test_prompts_replies_and_tool_ids_are_in_the_file(name: str, tmp_path: Path) -> None:
    for session in GENERATIONS[name](tmp_path, 0):
        text = session.path(tmp_path).read_text()
        typed = [prompt for prompt in session.prompts if not prompt.startswith("/")]  # commands have tags
        for expected in (*typed, *session.replies, *session.tool_ids):
            assert json.dumps(expected, ensure_ascii=False)[1:-1] in text


@pytest.mark.parametrize(
    ("name", "present", "absent"),
    [
        ("0.2", {"costUSD", "durationMs"}, {"service_tier", "slug", "leafUuid", "snapshot"}),
        ("1.0", {"leafUuid", "originalFileContents", "newTodos"}, {"costUSD", "agentId", "thinkingMetadata"}),
        (
            "2.0.0",
            {"trackedFileBackups", "thinkingMetadata", "compactMetadata", "retryInMs"},
            {"slug", "operation"},
        ),
        ("2.0.28-2.0.6x", {"slug", "operation", "customTitle", "agentId"}, {"hookInfos", "entrypoint"}),
        (
            "2.0.76-2.1.x",
            {"hookInfos", "parentToolUseID", "sourceToolAssistantUUID"},
            {"origin", "attachment"},
        ),
        (
            "2.1.8x-2.1.9x",
            {"origin", "entrypoint", "promptId", "attachment"}
            | {"aiTitle", "prUrl", "lastPrompt", "forkedFrom"},
            {"promptSource", "effort"},
        ),
        (
            "2.1.118-2.1.16x",
            {"promptSource", "bridgeSessionId", "parentLastUuid", "mode"},
            {"effort", "totalCostUSD"},
        ),
        (
            "2.1.172-2.1.239",
            {"effort", "worktreeSession", "relocatedCwd"}
            | {"retractedMessageUuids", "trackingPath", "frameUrl"},
            {"totalCostUSD", "wireToolInputs"},
        ),
        (
            "2.1.25x-2.1.29x",
            {"totalCostUSD", "wireToolInputs", "apiBlockIndex", "continuedInSessionId"},
            {"originalFileContents", "parentToolUseID"},
        ),
    ],
)
def test_a_generation_has_the_fields_of_its_versions(
    name: str, present: set[str], absent: set[str], tmp_path: Path
) -> None:
    GENERATIONS[name](tmp_path, 0)
    found = {
        key for file in tmp_path.rglob("*.jsonl") for record in read_records(file) for key in all_keys(record)
    }
    assert present <= found
    assert not absent & found


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("2.0.28-2.0.6x", "projects/*/agent-*.jsonl"),
        ("2.0.76-2.1.x", "projects/*/*/subagents/agent-*.jsonl"),
        ("2.0.76-2.1.x", "projects/*/*/tool-results/*.txt"),
        ("2.0.76-2.1.x", "projects/*/sessions-index.json"),
        ("2.0.76-2.1.x", "tasks/*/1.json"),
        ("1.0", "todos/*.json"),
        ("0.2", "settings.json"),
        ("2.1.118-2.1.16x", "projects/*/*/subagents/workflows/*/agent-*.meta.json"),
        ("2.1.118-2.1.16x", "projects/*/*/subagents/workflows/*/journal.jsonl"),
        ("2.1.118-2.1.16x", "projects/*/*/workflows/wf_*.json"),
        ("2.1.118-2.1.16x", "sessions/4242.json"),
        ("2.1.172-2.1.239", "file-history/*/*@v2"),
        ("2.1.25x-2.1.29x", "history.jsonl"),
    ],
)
def test_a_generation_has_the_files_of_its_versions(name: str, pattern: str, tmp_path: Path) -> None:
    GENERATIONS[name](tmp_path, 0)
    assert list(tmp_path.glob(pattern))


@pytest.mark.parametrize(
    ("version", "blocks", "reasons"),
    [
        ("0.2.122", [3], ["tool_use"]),
        ("2.1.38", [1, 1, 1], [None, None, None]),
        ("2.1.80", [1, 1, 1], [None, None, "tool_use"]),
        ("2.1.97", [1, 1, 1], ["tool_use", "tool_use", "tool_use"]),
    ],
)
def test_a_response_has_the_lines_and_stop_reasons_of_its_version(
    version: str, blocks: list[int], reasons: list[str | None]
) -> None:
    session = Transcript("s", version=version).assistant("text", thinking="hm", tools=[tool_calls.bash("ls")])
    lines = responses(session)
    assert [len(line["message"]["content"]) for line in lines] == blocks
    assert [line["message"]["stop_reason"] for line in lines] == reasons
    assert len({line["message"]["id"] for line in lines}) == 1


@pytest.mark.parametrize(
    ("version", "outputs"),
    [("2.1.97", [700, 700]), ("2.1.80", [None, 700]), ("2.1.38", [None, None]), ("2.0.5", [None, 700])],
)
def test_lines_without_final_output_tokens_have_a_placeholder(
    version: str, outputs: list[int | None]
) -> None:
    usage = {
        "input_tokens": 1,
        "cache_creation_input_tokens": 2,
        "cache_read_input_tokens": 3,
        "output_tokens": 700,
    }
    session = Transcript("s", version=version).assistant("text", thinking="hm", usage=usage)
    counts = [line["message"]["usage"]["output_tokens"] for line in responses(session)]
    assert [count if count == 700 else None for count in counts] == outputs


def test_the_parent_of_each_parallel_result_is_its_call() -> None:
    session = Transcript("s", version="2.1.38").user("go").run(tool_calls.bash("a"), tool_calls.bash("b"))
    _, first, second, one, two = written_records(session)
    assert second["parentUuid"] == first["uuid"]
    assert (one["parentUuid"], two["parentUuid"]) == (first["uuid"], second["uuid"])
    assert two["message"]["content"][0]["tool_use_id"] == session.tool_ids[1]


def test_a_branch_continues_from_an_earlier_line() -> None:
    session = Transcript("s").user("one")
    asked = session.last_uuid
    session.assistant("first try").branch_from(asked).assistant("second try")
    assert [record["parentUuid"] for record in written_records(session)] == [None, asked, asked]


def test_an_inline_subagent_has_its_own_root_and_the_session_continues_from_the_call() -> None:
    session = (
        Transcript("s", version="1.0.98").user("go").delegate("look", "found", calls=[tool_calls.bash("ls")])
    )
    lines = written_records(session)
    side = [line for line in lines if line["isSidechain"]]
    assert [line["parentUuid"] is None for line in side] == [True, False, False, False]
    assert lines[-1]["parentUuid"] == lines[1]["uuid"]
    assert "agentId" not in lines[-1]["toolUseResult"]
    assert session.replies == []


def test_a_subagent_and_its_session_refer_to_each_other(tmp_path: Path) -> None:
    session = Transcript("s", version="2.1.224").user("go").delegate("look", "found")
    session.write(tmp_path)
    (path,) = tmp_path.glob("projects/*/s/subagents/agent-*.jsonl")
    meta = json.loads(path.with_suffix(".meta.json").read_text())
    agent = read_records(path)
    assert meta["toolUseId"] == session.tool_ids[0]
    assert {line["sessionId"] for line in agent} == {"s"}
    assert f"agent-{written_records(session)[-1]['toolUseResult']['agentId']}" == path.stem
    assert agent[0]["message"]["content"] == "look"


def test_a_forked_agent_begins_with_a_reference_and_repeats_one_response() -> None:
    session = Transcript("s", version="2.1.154").user("go").assistant("starting")
    reference, repeated, prompt, _ = written_records(session.fork_agent("audit", "sound"))
    assert reference["parentLastUuid"] == session.last_uuid
    assert repeated["message"]["id"] == responses(session)[0]["message"]["id"]
    assert prompt["message"]["content"].startswith("<fork-boilerplate>")


def test_a_spilled_result_is_in_the_named_side_file(tmp_path: Path) -> None:
    session = Transcript("s", version="2.1.9").user("go").spill(tool_calls.bash("cat"), "x" * 40_000)
    path = session.write(tmp_path)
    content = read_records(path)[-1]["message"]["content"][0]["content"]
    name = content.partition("tool-results/")[2].partition("\n")[0]
    assert (path.with_suffix("") / "tool-results" / name).read_text() == "x" * 40_000
    assert len(content) < 3000


def test_a_compaction_without_a_boundary_is_only_a_new_root() -> None:
    old = written_records(Transcript("s", version="0.2.122").user("a").compact())
    new = written_records(Transcript("s", version="2.1.38").user("a").compact())
    assert (old[1]["type"], old[1]["parentUuid"], "isCompactSummary" in old[1]) == ("user", None, False)
    assert (new[1]["subtype"], new[1]["logicalParentUuid"]) == ("compact_boundary", new[0]["uuid"])
    assert new[2]["isCompactSummary"]


@pytest.mark.parametrize(
    ("version", "last_type"), [("2.0.64", "user"), ("2.1.38", "queue-operation"), ("2.1.97", "attachment")]
)
def test_a_queued_prompt_has_the_form_of_its_version(version: str, last_type: str) -> None:
    session = Transcript("s", version=version).user("go").queued("one more thing")
    assert written_records(session)[-1]["type"] == last_type
    assert session.prompts == ["go", "one more thing"]


def test_every_state_type_is_written_and_a_flush_repeats_the_latest() -> None:
    session = Transcript("s").user("go").every_state()
    before = {record["type"] for record in written_records(session)}
    assert len(before) > 30
    count = len(session.records)
    session.flush()
    assert 10 < len(session.records) - count < count


def test_a_resumed_session_keeps_uuids_and_has_later_times() -> None:
    first = Transcript("s", version="1.0.98").user("one").assistant("two")
    second = resume(first).user("three")
    old, new = written_records(first), written_records(second)
    assert [record["uuid"] for record in new[:2]] == [record["uuid"] for record in old]
    assert all(late["timestamp"] > early["timestamp"] for early, late in zip(old, new[:2], strict=True))
    assert {record["sessionId"] for record in new} == {second.session_id} != {"s"}
    assert new[2]["parentUuid"] == old[1]["uuid"]


def test_a_continued_session_has_its_parent_in_another_file() -> None:
    first = Transcript("s", version="1.0.117").user("one")
    assert written_records(continue_in_new_file(first).user("two"))[0]["parentUuid"] == first.last_uuid


def test_every_line_of_a_fork_records_its_origin() -> None:
    first = Transcript("s", version="2.1.38").user("one").progress().assistant("two")
    second = written_records(fork(first, title="One"))
    assert [record.get("forkedFrom", {}).get("messageUuid") for record in second[:2]] == [
        written_records(first)[0]["uuid"],
        written_records(first)[2]["uuid"],
    ]
    assert second[1]["parentUuid"] == second[0]["uuid"] != written_records(first)[0]["uuid"]
    assert second[-1]["customTitle"] == "One (fork)"


def test_foreign_lines_can_be_appended_and_lines_repeated() -> None:
    session = Transcript("s", version="2.0.31").user("home").run(tool_calls.bash("ls", "a"))
    repeat_lines(session, 2)
    append_foreign_lines(session, "other", lambda file: file.user("astray"))
    lines = written_records(session)
    assert lines[3]["message"] == lines[1]["message"]
    assert lines[3]["uuid"] != lines[1]["uuid"]
    assert [line["sessionId"] for line in lines[-2:]] == ["s", "other"]


def test_the_tool_use_result_of_a_failed_call_is_a_string() -> None:
    session = Transcript("s").run(tool_calls.read("a.py", "").failed("no such file"))
    result = written_records(session)[-1]
    assert result["message"]["content"][0]["is_error"]
    assert result["toolUseResult"] == "Error: no such file"


def test_an_edit_contains_removed_and_added_lines() -> None:
    call = tool_calls.edit("a.py", "b", "x\ny", original="a\nb\nc")
    assert call.tool_use_result["structuredPatch"] == [
        {"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 4, "lines": [" a", "-b", "+x", "+y", " c"]}
    ]


def test_arbitrary_fields_lines_and_bytes_can_be_written(tmp_path: Path) -> None:
    session = Transcript("s").user("go", teamName="crew").raw(b"not json").line({"type": "new"})
    lines = session.write(tmp_path).read_bytes().splitlines()
    assert json.loads(lines[0])["teamName"] == "crew"
    assert lines[1:] == [b"not json", b'{"type":"new"}']


def test_the_modification_time_is_the_time_of_the_last_line(tmp_path: Path) -> None:
    session = Transcript("s").user("go")
    assert session.write(tmp_path).stat().st_mtime == pytest.approx(session.now.timestamp(), abs=0.01)


def test_side_files_can_be_written(tmp_path: Path) -> None:
    session = Transcript("s").user("go").assistant("gone")
    session.write(tmp_path)
    assert (
        json.loads(write_session_index(tmp_path, [session]).read_text())["entries"][0]["firstPrompt"] == "go"
    )
    assert json.loads(write_running_process(tmp_path, session, 7).read_text())["pid"] == 7
    assert json.loads(write_settings(tmp_path, cleanup_days=90).read_text()) == {"cleanupPeriodDays": 90}
    assert write_empty_stub(tmp_path, session, cwd="/elsewhere").stat().st_size == 0


@pytest.mark.parametrize("name", ["model", "stop_reason_lines", "subagent_layout", "agent_tool"])
def test_a_property_never_returns_to_an_earlier_value(name: str) -> None:
    old = ("1.0.0", "1.0.117", "2.0.5", "2.0.31", "2.0.76")
    versions = (*old, "2.1.9", "2.1.60", "2.1.97", "2.1.212", "2.1.288")
    values = [getattr(Release(version), name) for version in versions]
    assert 1 < len(set(values)) == 1 + sum(one != other for one, other in pairwise(values))


def test_a_call_keeps_a_given_id() -> None:
    session = Transcript("s").run(Call("Bash", {"command": "ls"}, id="toolu_mine"))
    assert session.tool_ids == ["toolu_mine"]
    assert written_records(session)[-1]["message"]["content"][0]["tool_use_id"] == "toolu_mine"


def test_the_golden_lines_are_records() -> None:
    folder = Path(__file__).parent.parent / "golden" / "claude-code"
    names = {path.stem for path in folder.glob("*.jsonl")}
    kinds = "user wrappers assistant system attachment progress state conversation"
    assert names >= set(kinds.split())
    for path in folder.glob("*.jsonl"):
        assert all("type" in record for record in read_records(path))
