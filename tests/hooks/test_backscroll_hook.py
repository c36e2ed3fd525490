"""The hook program appends events to the spool, whatever it is given and whatever happens."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.hooks import event_recorder
from backscroll.hooks.event_recorder import MAX_FILE_BYTES, MAX_SPOOL_BYTES, append, commit_line, event_line
from backscroll.hooks.shell_command import hook_command, program
from backscroll.ingest.hooks import parse_event


def records(spool: Path) -> list[dict[str, Any]]:
    """Return the records in all files of a spool; a line that is not JSON fails."""
    lines = [line for file in sorted(spool.iterdir()) for line in file.read_bytes().splitlines()]
    return [json.loads(line) for line in lines if line]


def add(spool: Path, payload: object) -> bool:
    return append(str(spool), event_line(json.dumps(payload).encode()))


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


@given(data=st.binary(max_size=300) | st.text('\r\n{}",').map(str.encode))
def test_any_bytes_make_one_line(data: bytes) -> None:
    line = b"".join(event_line(data))
    assert len(line.splitlines()) == 2
    assert line.startswith(b'\n{"id":"')
    assert line.endswith(b"}\n")


def test_the_payload_is_recorded_as_it_was_received() -> None:
    data = b'\xef\xbb\xbf{"a":\r\n  "x\xff\\n",\n "content": [1.50, 1e3]}\r\n'
    expected = b'"payload":{"a":    "x\xff\\n",  "content": [1.50, 1e3]}  }\n'
    assert b"".join(event_line(data)).partition(b'"payload"')[2] == expected.partition(b'"payload"')[2]


# --- the spool ------------------------------------------------------------------------------------


def test_a_large_file_is_renamed_and_a_new_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_recorder, "MAX_FILE_BYTES", 2000)
    for number in range(100):
        assert add(tmp_path, {"number": number})
    assert len(list(tmp_path.iterdir())) > 3
    assert all(file.stat().st_size < 2300 for file in tmp_path.iterdir())
    assert sorted(record["payload"]["number"] for record in records(tmp_path)) == list(range(100))


def test_a_full_spool_takes_commits_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_recorder, "MAX_FILE_BYTES", 500)
    results = [append(str(tmp_path), event_line(b'{"a": 1}'), 2000) for _ in range(100)]
    assert results == sorted(results, reverse=True)
    assert 2500 < sum(file.stat().st_size for file in tmp_path.iterdir()) < 3500
    assert len(records(tmp_path)) == sum(results)
    assert append(str(tmp_path), commit_line("post-commit", str(tmp_path), "0" * 40 + "\n.git"))
    assert "commit" in records(tmp_path)[0]  # of the new file
    for file in tmp_path.glob("sealed-*"):
        file.unlink()
    assert append(str(tmp_path), event_line(b'{"a": 2}'), 2000)


def test_the_program_records_no_event_in_a_full_spool(tmp_path: Path) -> None:
    for name, size in (("sealed-1.jsonl", MAX_SPOOL_BYTES), ("events.jsonl", MAX_FILE_BYTES)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)  # a hole: it needs no disk space
    done = run_hook(tmp_path, b'{"a": 1}')
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "events.jsonl").stat().st_size == MAX_FILE_BYTES
    (tmp_path / "sealed-1.jsonl").unlink()
    run_hook(tmp_path, b'{"a": 1}')
    assert b'"payload":{"a": 1}' in (tmp_path / "events.jsonl").read_bytes()


def test_a_record_is_repeated_if_the_file_was_renamed_while_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.writev
    renames = [tmp_path / "sealed-1.jsonl", tmp_path / "sealed-2.jsonl"]

    def write_and_rename(file: int, data: Sequence[bytes]) -> int:
        if renames:
            (tmp_path / "events.jsonl").rename(renames.pop())
        return write(file, data)

    monkeypatch.setattr(os, "writev", write_and_rename)
    assert add(tmp_path, {"a": 1})
    found = records(tmp_path)
    assert len(found) == 3
    assert len({record["id"] for record in found}) == 1


def test_a_record_is_kept_if_another_process_renames_the_full_file_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_recorder, "MAX_FILE_BYTES", 1)
    assert add(tmp_path, {"number": 1})
    rename = os.rename

    def rename_after_another_process(path: str, target: str) -> None:
        rename(path, f"{path}.other.jsonl")
        rename(path, target)

    monkeypatch.setattr(os, "rename", rename_after_another_process)
    assert add(tmp_path, {"number": 2})
    assert sorted(record["payload"]["number"] for record in records(tmp_path)) == [1, 2]


def test_a_record_that_a_full_disk_cut_off_does_not_damage_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.writev
    sizes = [20, 3]

    def write_partly(file: int, data: Sequence[bytes]) -> int:
        return write(file, [b"".join(data)[: sizes.pop() if sizes else None]])

    monkeypatch.setattr(os, "writev", write_partly)
    assert add(tmp_path, {"a": 1})
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


@pytest.mark.parametrize(("size", "count"), [(15_000, 40), (2_000_000, 12)])
def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path, size: int, count: int) -> None:
    spool = tmp_path / "spool"
    events = [json.dumps({"number": number, "prompt": "x" * size}).encode() for number in range(count)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda event: run_hook(spool, event), events))
    # A record is repeated under the same id if its file was full and renamed while it was written.
    numbers = {record["id"]: record["payload"]["number"] for record in records(spool)}
    assert sorted(numbers.values()) == list(range(count))


@pytest.mark.parametrize("size", [15_000, 6_000_000])
def test_killed_processes_leave_a_readable_spool(tmp_path: Path, size: int) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    for delay in range(8):
        process = subprocess.Popen([*program(), str(spool)], stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(b'{"prompt": "%b"}' % (b"x" * size))
        process.stdin.close()
        time.sleep(delay * 0.005)
        process.kill()
        process.wait()
    assert add(spool, {"last": True})
    lines = [line for file in spool.iterdir() for line in file.read_bytes().splitlines() if line]
    events = [parse_event(line) for line in lines]
    assert {"last": True} in [payload for _, payload in events]
    # The kernel may cut off a large write when the process is killed.
    assert size > 15_000 or "unreadable" not in [record.name for record, _ in events]
