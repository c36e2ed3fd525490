"""Large histories: memory that does not grow with them, and no work that grows with their square."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backscroll.sources.cursor import Cursor
from backscroll.sources.cursor.database import session_rows
from backscroll.testing import cursor
from tests.oracle.fold import fold
from tests.sources.cursor.reading import read, read_one, said


def test_values_larger_than_expected_are_fetched_fewer_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_rows, "MAX_FETCH_BYTES", 100_000)
    fetched: list[int] = []
    fetch = session_rows.RowLoader.fetch

    def watched(self: session_rows.RowLoader, rowids: list[int]) -> dict[int, session_rows.Value] | None:
        found = fetch(self, rowids)
        fetched.append(sum(len(value) for value in (found or {}).values() if isinstance(value, bytes)))
        return found

    monkeypatch.setattr(session_rows.RowLoader, "fetch", watched)
    home = cursor.Home(tmp_path / "Cursor")
    messages = [cursor.user(f"{number} " + "x" * 60_000) for number in range(40)]
    made = home.composer(messages, has_graph=False)
    found = said(read_one(home.write(), made.id))
    assert [text.split()[0] for _, text in found] == [str(number) for number in range(40)]
    assert max(fetched) < 300_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measured with /proc")
def test_memory_stays_bounded_where_every_message_is_large(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    home.composer([cursor.assistant("x" * 4_000_000) for _ in range(100)], has_graph=False)
    home.write()
    code = (
        "import sys; from pathlib import Path; from backscroll.sources.cursor import Cursor\n"
        "source = Cursor()\n"
        "for unit in source.units(Path(sys.argv[1])):\n"
        "    for item in source.read(unit): pass\n"
        "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])\n"
    )
    command = [sys.executable, "-c", code, str(home.root)]
    peak = int(subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout)
    assert peak < 250_000  # of 400 MB


def test_the_time_to_list_grows_with_the_sessions_and_no_faster(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    for number in range(400):
        place = home.workspace(cursor.local(f"/home/dev/p{number % 40}", inode=number % 40))
        home.put_item("aiService.prompts", "[]", place=place)
        home.composer([], workspace=place, id=f"draft-{number}", has_graph=False)
    home.write()
    source = Cursor()
    began = time.process_time()
    units = list(source.units(home.root))
    for unit in units:
        fold(source.read(unit))
    source.close()
    assert len([unit for unit in units if unit.kind == "session"]) == 400
    assert time.process_time() - began < 3


def test_thousands_of_messages_in_one_session_arrive_in_their_order(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    made = home.composer([cursor.user(str(number)) for number in range(3000)], has_graph=False)
    began = time.process_time()
    reading = read(home.write())[made.id]
    assert [message.content for message in reading.messages] == [str(number) for number in range(3000)]
    assert time.process_time() - began < 5


def test_a_record_of_many_megabytes_costs_nothing_but_its_reading(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    made = home.composer([cursor.user("before"), cursor.assistant("after")])
    home.write()
    cursor.damage.swell(home.database, made.id, megabytes=50)
    began = time.process_time()
    reading = read_one(home.root, made.id)
    assert said(reading) == [("user", "before"), ("assistant", "after")]
    assert len(json.dumps(reading.closing.metadata)) < 10_000
    assert time.process_time() - began < 5
