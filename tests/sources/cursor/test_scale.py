"""Large histories: bounded memory and time."""

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
from tests.builders.cursor import damage as cursor_damage
from tests.oracle.fold import fold
from tests.sources.cursor.reading import contents, read_session, read_sessions


def test_large_values_reduce_the_batch_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_rows, "MAX_FETCH_BYTES", 100_000)
    fetched: list[int] = []
    fetch = session_rows.RowLoader.fetch

    def watched_fetch(
        self: session_rows.RowLoader, rowids: list[int]
    ) -> dict[int, session_rows.Value] | None:
        found = fetch(self, rowids)
        fetched.append(sum(len(value) for value in (found or {}).values() if isinstance(value, bytes)))
        return found

    monkeypatch.setattr(session_rows.RowLoader, "fetch", watched_fetch)
    home = cursor.Home(tmp_path / "Cursor")
    messages = [cursor.user(f"{index} " + "x" * 60_000) for index in range(40)]
    composer = home.composer(messages, has_graph=False)
    found = contents(read_session(home.write(), composer.id))
    assert [text.split()[0] for _, text in found] == [str(index) for index in range(40)]
    assert max(fetched) < 300_000


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measured with /proc")
def test_memory_stays_bounded_with_large_messages(tmp_path: Path) -> None:
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
    assert peak < 250_000  # kB, for 400 MB of messages


def test_400_sessions_are_listed_and_read_within_three_seconds(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    for index in range(400):
        place = home.add_workspace(cursor.local_folder(f"/home/dev/p{index % 40}", inode=index % 40))
        home.put_item("aiService.prompts", "[]", workspace=place)
        home.composer([], workspace=place, id=f"draft-{index}", has_graph=False)
    home.write()
    source = Cursor()
    started_at = time.process_time()
    units = list(source.units(home.root))
    for unit in units:
        fold(source.read(unit))
    source.close()
    assert len([unit for unit in units if unit.kind == "session"]) == 400
    assert time.process_time() - started_at < 3


def test_thousands_of_messages_are_read_in_order(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    composer = home.composer([cursor.user(str(index)) for index in range(3000)], has_graph=False)
    started_at = time.process_time()
    session = read_sessions(home.write())[composer.id]
    assert [message.content for message in session.messages] == [str(index) for index in range(3000)]
    assert time.process_time() - started_at < 5


def test_a_large_record_is_read_fast_and_not_copied_to_the_metadata(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    composer = home.composer([cursor.user("before"), cursor.assistant("after")])
    home.write()
    cursor_damage.embed_large_file(home.database, composer.id, megabytes=50)
    started_at = time.process_time()
    session = read_session(home.root, composer.id)
    assert contents(session) == [("user", "before"), ("assistant", "after")]
    assert len(json.dumps(session.closing.metadata)) < 10_000
    assert time.process_time() - started_at < 5
