"""The hook program appends small records to the spool, whatever it is given and whatever happens."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.hooks import event_recorder
from backscroll.hooks.event_recorder import MAX_RECORD_BYTES, append, make_record
from backscroll.hooks.shell_command import hook_command, program

BODY = "def secret():\n    return 1\n" * 2000


def records(spool: Path) -> list[dict[str, Any]]:
    """Return the records in all files of a spool; a line that is not JSON fails."""
    lines = [line for file in sorted(spool.iterdir()) for line in file.read_bytes().splitlines()]
    return [json.loads(line) for line in lines if line]


def record_of(payload: object) -> dict[str, Any]:
    return make_record(json.dumps(payload).encode())


def run_hook(spool: Path, data: bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", hook_command(spool)], input=data, capture_output=True, check=False, **options
    )


def test_the_program_records_an_event_and_prints_nothing(tmp_path: Path) -> None:
    event = {
        "session_id": "s1",
        "hook_event_name": "Stop",
        "stop_hook_active": False,
        "new_field": {"a": [1]},
    }
    before = time.time() * 1000
    done = run_hook(tmp_path / "spool", json.dumps(event).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (record,) = records(tmp_path / "spool")
    assert record["payload"] == event
    assert before - 1 <= record["at"] <= time.time() * 1000
    assert (tmp_path / "spool").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "spool" / "events.jsonl").stat().st_mode & 0o777 == 0o600


def test_the_program_imports_nothing_slow(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['x', sys.argv[1]];"
        f"exec(open({program()[-1]!r}).read(), {{'__name__': '__main__', '__file__': {program()[-1]!r}}});"
    )
    slow = ("json", "typing", "pathlib", "msgspec", "site", "subprocess", "sqlite3", "dataclasses")
    own = ["backscroll", "backscroll.hooks", "backscroll.hooks.event_recorder"]
    code += f"found = [name for name in sys.modules if name in {slow!r} or name.startswith('backscroll')];"
    code += f"sys.exit('' if sorted(found) == {own!r} else str(found))"
    python = [sys.executable, "-I", "-S", "-c", code, str(tmp_path / "spool")]
    done = subprocess.run(python, input=b"{}", capture_output=True, text=False, check=False)
    assert done.stderr.strip() == b""


def test_bodies_of_files_outputs_environment_and_addresses_are_not_recorded() -> None:
    record = record_of(
        {
            "hook_event_name": "PostToolUse",
            "user_email": "zoe@example.org",
            "account": "zoe@example.org",
            "env": {"API_KEY": "sk-123"},
            "tool_input": {"file_path": "/a.py", "content": BODY, "old_string": "x", "edits": [{"a": "b"}]},
            "tool_response": {
                "filePath": "/a.py",
                "originalFile": BODY,
                "stdout": "hello",
                "structuredPatch": [{"lines": [" one", "-two", "+three", "+four"]}],
                "userModified": True,
            },
            "output": "hello",
            "unknown": BODY,
        }
    )
    text = json.dumps(record)
    for private in ("secret", "zoe@", "sk-123", "hello", "three"):
        assert private not in text
    assert record["payload"]["tool_response"] == {"filePath": "/a.py", "userModified": True}
    assert record["edits"] == [{"path": "/a.py", "kind": "update", "added": 2, "removed": 1}]
    assert record["omitted"]["tool_input.content"] == len(BODY)


_TEXT = st.text('ab\\\n\r"né\x00😀', max_size=30)
_VALUES = st.recursive(
    st.none() | st.integers() | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=9), inner, max_size=4),
)


@given(value=_VALUES, is_ascii=st.booleans())
def test_long_strings_have_the_same_text_and_number_of_lines(value: object, is_ascii: bool) -> None:
    data = json.dumps(value, ensure_ascii=is_ascii).encode()
    with patch.object(event_recorder, "LONG_BYTES", 5), patch.object(event_recorder, "_MAX_QUOTES", 40):
        assert _same(event_recorder.decode(data), value)


def _same(decoded: Any, value: Any) -> bool:
    if isinstance(decoded, event_recorder.LongText):
        lines = value.count("\n") + (not value.endswith("\n"))
        return (decoded.text(), decoded.count_lines()) == (value, lines) and len(decoded) > 5
    if isinstance(value, list):
        return len(decoded) == len(value) and all(map(_same, decoded, value))
    if isinstance(value, dict):
        return decoded.keys() == value.keys() and all(_same(decoded[name], value[name]) for name in value)
    return bool(decoded == value)


@given(
    event=st.fixed_dictionaries(
        {},
        optional={
            "prompt": _TEXT,
            "text": _TEXT,
            "unknown": _VALUES,
            "file_path": st.just("/a"),
            "edits": st.lists(st.fixed_dictionaries({"old_string": _TEXT, "new_string": _TEXT}), max_size=2),
            "tool_response": st.fixed_dictionaries(
                {"filePath": st.just("/b"), "content": _TEXT, "type": st.sampled_from(["create", "update"])},
                optional={"structuredPatch": st.just([{"lines": ["+a longer line", "-b longer line"]}])},
            ),
        },
    )
)
def test_long_strings_do_not_change_what_is_recorded(event: dict[str, Any]) -> None:
    data = json.dumps(event, ensure_ascii=False).encode()
    with patch.object(event_recorder, "LONG_BYTES", 30), patch.object(event_recorder, "MAX_STRING_CHARS", 4):
        found = make_record(data)
    with patch.object(event_recorder, "MAX_STRING_CHARS", 4):
        expected = make_record(data)
    assert found["payload"] == expected["payload"]
    assert found.get("edits") == expected.get("edits")
    assert found.get("omitted", {}).keys() == expected.get("omitted", {}).keys()


@pytest.mark.parametrize("quote_count", [3, 30_000])
def test_a_large_event_is_recorded_without_its_bodies(quote_count: int) -> None:
    body = "value = 1  # a line\n" * 30_000 + '"\\n' * quote_count
    response = {"type": "create", "filePath": "/a", "content": body}
    record = record_of({"session_id": "s", "tool_input": {"content": body}, "tool_response": response})
    assert record["payload"] == {
        "session_id": "s",
        "tool_input": {},
        "tool_response": {"type": "create", "filePath": "/a"},
    }
    assert record["edits"] == [{"path": "/a", "kind": "create", "added": 30_001, "removed": 0}]
    assert min(record["omitted"].values()) >= len(body)


def test_a_large_event_that_is_cut_off_is_unreadable() -> None:
    data = json.dumps({"session_id": "s", "content": "line\n" * 100_000}).encode()[:-2]
    assert make_record(data)["unreadable"] == len(data)


def test_the_lines_of_a_cursor_edit_are_counted() -> None:
    edits = [{"old_string": "a\nb\nc", "new_string": "a\nB\nB2\nc"}, {"old_string": "", "new_string": "x\ny"}]
    record = record_of({"file_path": "/a.py", "edits": edits, "hook_event_name": "afterFileEdit"})
    assert record["edits"] == [{"path": "/a.py", "added": 4, "removed": 1}]


def test_the_lines_of_a_created_file_are_counted() -> None:
    response = {"type": "create", "filePath": "/a", "content": "1\n2\n3", "structuredPatch": []}
    record = record_of({"tool_response": response})
    assert record["edits"] == [{"path": "/a", "kind": "create", "added": 3, "removed": 0}]


def test_an_answer_is_recorded_only_if_there_is_no_transcript(tmp_path: Path) -> None:
    transcript = tmp_path / "transcript.jsonl"
    event = {"transcript_path": str(transcript), "last_assistant_message": "Done."}
    assert record_of(event)["payload"]["last_assistant_message"] == "Done."
    transcript.write_text("{}")
    record = record_of(event)
    assert "last_assistant_message" not in record["payload"]
    assert record["omitted"] == {"last_assistant_message": 5}


def test_a_long_prompt_is_cut_off() -> None:
    record = record_of({"prompt": "x" * 20_000})
    assert len(record["payload"]["prompt"]) + record["omitted"]["prompt"] == 20_000


def test_a_record_with_many_small_fields_is_reduced_to_the_essential_ones(tmp_path: Path) -> None:
    event = {"session_id": "s", **{f"field{number}": "x" * 900 for number in range(200)}}
    assert append(str(tmp_path), record_of(event))
    (record,) = records(tmp_path)
    assert record["payload"] == {"session_id": "s"}
    assert record["omitted"][""] > MAX_RECORD_BYTES


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"null", b"{} x", b"[" * 100_000, b'{"a": nope}'])
def test_data_that_is_no_object_is_recorded_by_its_size(data: bytes) -> None:
    assert make_record(data)["unreadable"] == len(data)


def test_a_byte_order_mark_and_invalid_utf8_are_accepted() -> None:
    assert make_record(b'\xef\xbb\xbf{"a": "x\xff"}\r\n')["payload"] == {"a": "x\ufffd"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(payload=st.dictionaries(st.text(), json_values, max_size=5))
def test_every_payload_makes_one_line_of_json(payload: dict[str, object]) -> None:
    record = record_of(payload)
    lines = event_recorder._encode_line(record).decode().split("\n")
    assert lines[0] == lines[2] == ""
    decoded = json.loads(lines[1])
    assert decoded["id"] == record["id"]
    assert set(decoded["payload"]) <= set(payload)


@given(data=st.binary(max_size=300))
def test_any_bytes_make_a_record(data: bytes) -> None:
    record = make_record(data)
    assert ("payload" in record) != ("unreadable" in record)


# --- the spool ------------------------------------------------------------------------------------


def test_a_large_file_is_renamed_and_a_new_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_recorder, "MAX_FILE_BYTES", 2000)
    for number in range(100):
        assert append(str(tmp_path), record_of({"number": number}))
    assert len(list(tmp_path.iterdir())) > 3
    assert all(file.stat().st_size < 2300 for file in tmp_path.iterdir())
    assert sorted(record["payload"]["number"] for record in records(tmp_path)) == list(range(100))


def test_a_record_is_repeated_if_the_file_was_renamed_while_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    renames = [tmp_path / "sealed-1.jsonl", tmp_path / "sealed-2.jsonl"]

    def write_and_rename(file: int, data: bytes) -> int:
        if renames:
            (tmp_path / "events.jsonl").rename(renames.pop())
        return write(file, data)

    monkeypatch.setattr(os, "write", write_and_rename)
    assert append(str(tmp_path), record_of({"a": 1}))
    found = records(tmp_path)
    assert len(found) == 3
    assert len({record["id"] for record in found}) == 1


def test_a_record_is_kept_if_another_process_renames_the_full_file_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_recorder, "MAX_FILE_BYTES", 1)
    assert append(str(tmp_path), record_of({"number": 1}))
    rename = os.rename

    def rename_after_another_process(path: str, target: str) -> None:
        rename(path, f"{path}.other.jsonl")
        rename(path, target)

    monkeypatch.setattr(os, "rename", rename_after_another_process)
    assert append(str(tmp_path), record_of({"number": 2}))
    assert sorted(record["payload"]["number"] for record in records(tmp_path)) == [1, 2]


def test_a_record_that_a_full_disk_cut_off_does_not_damage_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    sizes = [20, 3]
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[: sizes.pop()] if sizes else data))
    assert append(str(tmp_path), record_of({"a": 1}))
    lines = [line for line in (tmp_path / "events.jsonl").read_bytes().splitlines() if line]
    assert json.loads(lines[-1])["payload"] == {"a": 1}


def test_a_full_disk_fails_silently(tmp_path: Path) -> None:
    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    spool = tmp_path / "spool"
    for number in range(20):
        done = run_hook(spool, json.dumps({"number": number}).encode(), preexec_fn=limit_files)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert run_hook(spool, b'{"number": 20}').returncode == 0
    lines = [line for line in (spool / "events.jsonl").read_bytes().splitlines() if line]
    assert json.loads(lines[0])["payload"] == {"number": 0}
    assert json.loads(lines[-1])["payload"] == {"number": 20}


def test_nothing_is_created_without_the_folder_of_the_archive(tmp_path: Path) -> None:
    assert run_hook(tmp_path / "gone" / "spool", b"{}").returncode == 0
    assert not (tmp_path / "gone").exists()


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    events = [json.dumps({"number": number, "prompt": "x" * 15_000}).encode() for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda event: run_hook(spool, event), events))
    assert sorted(record["payload"]["number"] for record in records(spool)) == list(range(40))


def test_killed_processes_leave_a_readable_spool(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    for delay in range(8):
        process = subprocess.Popen([*program(), str(spool)], stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(b'{"prompt": "%b"}' % (b"x" * 15_000))
        process.stdin.close()
        time.sleep(delay * 0.005)
        process.kill()
        process.wait()
    assert append(str(spool), record_of({"last": True}))
    assert records(spool)[-1]["payload"] == {"last": True}
