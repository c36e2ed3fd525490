"""What every source promises, whatever tool it reads."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from backscroll.config import Machine
from backscroll.model import Message, Reading, Told, Unit, fold
from backscroll.sources import NAMES, named
from backscroll.testing import cursor
from tests.histories import HISTORIES, History

every_history = pytest.mark.parametrize("history", HISTORIES, ids=repr)
every_source = pytest.mark.parametrize("name", NAMES)


def tell(history: History, root: Path) -> list[tuple[Unit, Told]]:
    source = history.source()
    told = [(unit, fold(source.read(unit))) for unit in source.units(root)]
    source.close()
    return told


def readings(told: list[tuple[Unit, Told]]) -> list[Reading]:
    return [reading for _, one in told for reading in one.readings]


def messages(told: list[tuple[Unit, Told]]) -> list[Message]:
    return [message for reading in readings(told) for message in reading.messages]


def contents(root: Path) -> dict[str, tuple[bytes, int, int]]:
    """Names, bytes, modes and times of everything below a folder."""
    found = {}
    for folder, _, files in os.walk(root):
        status = Path(folder).stat()
        found[folder] = (b"", status.st_mtime_ns, status.st_mode)
        for name in files:
            path = Path(folder) / name
            status = path.stat()
            found[str(path)] = (path.read_bytes(), status.st_mtime_ns, status.st_mode)
    return found


@every_history
def test_reading_changes_nothing(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    before = contents(root)
    tell(history, root)
    assert contents(root) == before


@every_history
def test_two_readings_are_equal(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    assert tell(history, root) == tell(history, root)


@every_history
def test_rows_are_told_the_same_twice_without_secrets_and_change_nothing(
    history: History, tmp_path: Path
) -> None:
    root = history.write(tmp_path / "root")
    before = contents(root)
    told = []
    for _ in range(2):
        source = history.source()
        told.append([(unit.path, unit.key, row) for unit in source.units(root) for row in source.rows(unit)])
        source.close()
    assert told[0] == told[1]
    assert contents(root) == before
    places = [(path, key, row.path, row.table, row.key, row.part) for path, key, row in told[0]]
    assert len(set(places)) == len(places)
    assert not [row.key for _, _, row in told[0] if cursor.SECRET.encode() in (row.value or b"")]


@every_history
def test_every_record_is_accounted_for(history: History, tmp_path: Path) -> None:
    for unit, told in tell(history, history.write(tmp_path / "root")):
        tally = told.tally
        assert tally.records == tally.parsed + tally.ignored + tally.problems, unit
        assert tally.records == sum(tally.kinds.values()), unit


@every_history
def test_every_message_says_where_it_was_read(history: History, tmp_path: Path) -> None:
    for message in messages(tell(history, history.write(tmp_path / "root"))):
        assert Path(message.origin.path).exists()
        assert message.origin.place


@every_history
def test_times_know_their_zone_and_say_where_they_are_from(history: History, tmp_path: Path) -> None:
    for message in messages(tell(history, history.write(tmp_path / "root"))):
        assert (message.timestamp is None) == (message.timestamp_source is None)
        if message.timestamp is not None:
            assert message.timestamp.utcoffset() == timedelta(0)


@every_history
def test_ids_are_unique_within_a_session(history: History, tmp_path: Path) -> None:
    for reading in readings(tell(history, history.write(tmp_path / "root"))):
        ids = [message.id for message in reading.messages]
        assert len(ids) == len(set(ids))


@every_history
def test_a_tool_message_has_a_tool_and_no_other_has(history: History, tmp_path: Path) -> None:
    for message in messages(tell(history, history.write(tmp_path / "root"))):
        assert (message.role == "tool") == (message.tool is not None)
        if message.tool is not None:
            assert isinstance(message.tool.params, dict)
            assert message.tool.result is None or isinstance(message.tool.result, str)


@every_history
def test_listing_needs_no_parsing_and_names_every_unit_once(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    units = list(history.source().units(root))
    assert units == list(history.source().units(root))
    assert len({(unit.path, unit.key) for unit in units}) == len(units)
    assert all(unit.fingerprint and unit.source == history.source_name for unit in units)


@every_history
def test_a_change_at_a_path_leads_to_its_units_and_no_others(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    source = history.source()
    units = list(source.units(root))
    for path in {unit.path for unit in units}:
        found = source.units_at(root, [path])
        if found is not None:
            there = list(found)
            assert [unit for unit in there if unit.path == path] == [
                unit for unit in units if unit.path == path
            ]
            assert all(unit in units for unit in there)
    everything = source.units_at(root, [unit.path for unit in units])
    assert everything is None or sorted(everything, key=repr) == sorted(units, key=repr)
    source.close()


@every_history
def test_a_change_at_a_folder_leads_to_all_that_is_in_it(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    source = history.source()
    units = list(source.units(root))
    for folder in {str(Path(unit.path).parent) for unit in units} - {str(root)}:
        found = source.units_at(root, [folder])
        assert found is None or {unit for unit in units if Path(unit.path).is_relative_to(folder)} <= set(
            found
        )
    source.close()


@every_history
def test_all_units_are_in_places_that_are_watched(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    source = history.source()
    watched = source.watched(root)
    for unit in source.units(root):
        assert any(Path(unit.path).is_relative_to(place) for place in watched), unit.path
    source.close()


@every_history
def test_signs_are_among_the_units_and_stay_while_nothing_changes(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    source = history.source()
    signs = source.signs(root)
    units = list(source.units(root))
    assert signs is None or units[len(units) - len(signs) :] == signs
    assert source.signs(root) == signs
    source.close()


@every_history
def test_outlines_hold_no_values(history: History, tmp_path: Path) -> None:
    source = history.source()
    for unit in source.units(history.write(tmp_path / "root")):
        for kind, _ in source.documents(unit):
            assert kind
    source.close()


@every_source
def test_a_missing_root_is_silence(name: str, tmp_path: Path) -> None:
    assert list(named(name).units(tmp_path / "nowhere")) == []


@every_source
def test_an_empty_root_is_silence(name: str, tmp_path: Path) -> None:
    assert list(named(name).units(tmp_path)) == []


@every_source
def test_a_tool_that_is_not_installed_still_has_a_place_to_look_at(name: str, tmp_path: Path) -> None:
    assert named(name).roots(Machine(tmp_path))


@every_history
def test_a_file_cut_short_keeps_its_earlier_messages(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    for unit, whole in tell(history, root):
        if not unit.path.endswith(".jsonl") or unit.kind == "prompts":
            continue
        path = Path(unit.path)
        data = path.read_bytes()
        for cut in range(0, len(data), max(1, len(data) // 7)):
            path.write_bytes(data[:cut])
            told = fold(history.source().read(unit))
            lines = data[:cut].count(b"\n")
            assert told.tally.records >= lines if lines <= whole.tally.records else True
            assert told.tally.problems <= whole.tally.problems + 1
        path.write_bytes(data)
