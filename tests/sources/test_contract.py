"""Tests that every source passes."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from backscroll.config import Machine
from backscroll.model.message import Message
from backscroll.model.store import Unit, single_session_kinds
from backscroll.sources import named, names
from backscroll.sources.protocols import ChangeMarkers, PathLookup, RawRecords, Watchable, close, raw_rows
from backscroll.testing import cursor
from tests.histories import HISTORIES, History
from tests.oracle.fold import ParsedSession, UnitContent, fold

every_history = pytest.mark.parametrize("history", HISTORIES, ids=repr)
every_source = pytest.mark.parametrize("name", names())


def histories_with(capability: type) -> pytest.MarkDecorator:
    """Parametrize a test with the histories of all sources that have a capability."""
    found = [history for history in HISTORIES if isinstance(history.source(), capability)]
    return pytest.mark.parametrize("history", found, ids=repr)


def read_all(history: History, root: Path) -> list[tuple[Unit, UnitContent]]:
    source = history.source()
    units = [(unit, fold(source.read(unit))) for unit in source.units(root)]
    close(source)
    return units


def sessions(units: list[tuple[Unit, UnitContent]]) -> list[ParsedSession]:
    return [session for _, content in units for session in content.sessions]


def messages(units: list[tuple[Unit, UnitContent]]) -> list[Message]:
    return [message for session in sessions(units) for message in session.messages]


def snapshot(root: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return the bytes, modification time and mode of each file and folder below a folder."""
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
def test_every_kind_of_store_and_unit_is_declared(history: History, tmp_path: Path) -> None:
    units, source = read_all(history, history.write(tmp_path / "root")), history.source()
    assert {unit.kind for unit, _ in units} <= {kind.name for kind in source.unit_kinds}
    assert {one.opening.store for one in sessions(units)} <= {store.name for store in source.stores}
    for unit, content in units:
        if unit.kind in single_session_kinds():
            assert len({one.opening.parent_id or one.opening.id for one in content.sessions}) <= 1


@every_history
def test_reading_changes_nothing(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    before = snapshot(root)
    read_all(history, root)
    assert snapshot(root) == before


@every_history
def test_reading_twice_gives_equal_results(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    assert read_all(history, root) == read_all(history, root)


@every_history
def test_reading_rows_is_repeatable_omits_secrets_and_changes_nothing(
    history: History, tmp_path: Path
) -> None:
    root = history.write(tmp_path / "root")
    before = snapshot(root)
    found = []
    for _ in range(2):
        source = history.source()
        found.append(
            [(unit.path, unit.key, row) for unit in source.units(root) for row in raw_rows(source, unit)]
        )
        close(source)
    assert found[0] == found[1]
    assert snapshot(root) == before
    keys = [(path, key, row.path, row.table, row.key, row.part) for path, key, row in found[0]]
    assert len(set(keys)) == len(keys)
    assert not [row.key for _, _, row in found[0] if cursor.SECRET.encode() in (row.value or b"")]


@every_history
def test_every_record_is_counted_once(history: History, tmp_path: Path) -> None:
    for unit, content in read_all(history, history.write(tmp_path / "root")):
        counts = content.counts
        assert counts.records == counts.parsed + counts.ignored + counts.problems, unit
        assert counts.records == sum(counts.kinds.values()), unit


@every_history
def test_every_message_has_the_path_and_place_of_its_origin(history: History, tmp_path: Path) -> None:
    for message in messages(read_all(history, history.write(tmp_path / "root"))):
        assert Path(message.origin.path).exists()
        assert message.origin.place


@every_history
def test_timestamps_are_in_utc_and_have_a_source(history: History, tmp_path: Path) -> None:
    for message in messages(read_all(history, history.write(tmp_path / "root"))):
        assert (message.timestamp is None) == (message.timestamp_source is None)
        if message.timestamp is not None:
            assert message.timestamp.utcoffset() == timedelta(0)


@every_history
def test_ids_are_unique_within_a_session(history: History, tmp_path: Path) -> None:
    for session in sessions(read_all(history, history.write(tmp_path / "root"))):
        ids = [message.id for message in session.messages]
        assert len(ids) == len(set(ids))


@every_history
def test_a_tool_message_has_a_tool_and_no_other_has(history: History, tmp_path: Path) -> None:
    for message in messages(read_all(history, history.write(tmp_path / "root"))):
        assert (message.role == "tool") == (message.tool is not None)
        if message.tool is not None:
            assert isinstance(message.tool.params, dict)
            assert message.tool.result is None or isinstance(message.tool.result, str)


@every_history
def test_listing_is_repeatable_and_lists_every_unit_once(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    units = list(history.source().units(root))
    assert units == list(history.source().units(root))
    assert len({(unit.path, unit.key) for unit in units}) == len(units)
    assert all(unit.fingerprint and unit.source == history.source_name for unit in units)


@histories_with(PathLookup)
def test_a_change_of_a_file_affects_its_units_and_no_others(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    source = history.source()
    assert isinstance(source, PathLookup)
    units = list(source.units(root))
    for path in {unit.path for unit in units}:
        found = source.units_at(root, [path])
        if found is not None:
            affected = list(found)
            assert [unit for unit in affected if unit.path == path] == [
                unit for unit in units if unit.path == path
            ]
            assert all(unit in units for unit in affected)
    all_found = source.units_at(root, [unit.path for unit in units])
    assert all_found is None or sorted(all_found, key=repr) == sorted(units, key=repr)
    close(source)


@histories_with(PathLookup)
def test_a_change_of_a_folder_affects_all_units_in_it(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    source = history.source()
    assert isinstance(source, PathLookup)
    units = list(source.units(root))
    for folder in {str(Path(unit.path).parent) for unit in units} - {str(root)}:
        found = source.units_at(root, [folder])
        assert found is None or {unit for unit in units if Path(unit.path).is_relative_to(folder)} <= set(
            found
        )
    close(source)


@every_history
def test_all_units_are_in_watched_paths(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    source = history.source()
    assert isinstance(source, Watchable)
    watched = source.watched_paths(root)
    for unit in source.units(root):
        assert any(Path(unit.path).is_relative_to(path) for path in watched), unit.path
    close(source)


@histories_with(ChangeMarkers)
def test_change_markers_are_the_last_units_and_stable(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    source = history.source()
    assert isinstance(source, ChangeMarkers)
    markers = source.change_markers(root)
    units = list(source.units(root))
    assert units[len(units) - len(markers) :] == markers
    assert source.change_markers(root) == markers
    close(source)


@every_history
def test_every_raw_record_has_a_type(history: History, tmp_path: Path) -> None:
    source = history.source()
    assert isinstance(source, RawRecords)
    for unit in source.units(history.write(tmp_path / "root")):
        for kind, _ in source.raw_records(unit):
            assert kind
    close(source)


@every_source
def test_a_missing_root_has_no_units(name: str, tmp_path: Path) -> None:
    assert list(named(name).units(tmp_path / "missing")) == []


@every_source
def test_an_empty_root_has_no_units(name: str, tmp_path: Path) -> None:
    assert list(named(name).units(tmp_path)) == []


@every_source
def test_a_tool_that_is_not_installed_has_roots(name: str, tmp_path: Path) -> None:
    assert named(name).roots(Machine(tmp_path))


@every_history
def test_a_truncated_file_keeps_its_earlier_messages(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    for unit, whole in read_all(history, root):
        if not unit.path.endswith(".jsonl") or unit.kind == "prompts":
            continue
        path = Path(unit.path)
        data = path.read_bytes()
        for cut in range(0, len(data), max(1, len(data) // 7)):
            path.write_bytes(data[:cut])
            content = fold(history.source().read(unit))
            lines = data[:cut].count(b"\n")
            assert content.counts.records >= lines if lines <= whole.counts.records else True
            assert content.counts.problems <= whole.counts.problems + 1
        path.write_bytes(data)
