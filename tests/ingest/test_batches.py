"""Distribution of units to parallel readers."""

from backscroll.ingest.parallel import batches
from backscroll.model.store import Unit

_MB = 1024 * 1024


def _units(*sizes: int) -> list[Unit]:
    return [
        Unit(root="r", path=f"{index}.jsonl", key="", kind="session", size=size, fingerprint="", source="s")
        for index, size in enumerate(sizes)
    ]


def test_few_bytes_are_not_read_in_parallel() -> None:
    assert batches(_units(*[_MB] * 20)) == []


def test_every_unit_is_in_exactly_one_batch() -> None:
    units = _units(*[3 * _MB] * 100)
    found = [unit for batch in batches(units) for unit in batch.units]
    assert sorted(unit.path for unit in found) == sorted(unit.path for unit in units)


def test_batches_are_small_at_the_start_and_at_the_end() -> None:
    sizes = [batch.estimated_bytes for batch in batches(_units(*[_MB] * 500))]
    peak = sizes.index(max(sizes))
    assert sizes[0] == 2 * _MB
    assert sizes[peak] == 24 * _MB
    assert sizes[:peak] == sorted(sizes[:peak])
    assert sizes[peak:] == sorted(sizes[peak:], reverse=True)
    assert sizes[-2] == 4 * _MB


def test_the_newest_units_are_read_first() -> None:
    units = [unit._replace(modified_at=index) for index, unit in enumerate(_units(*[_MB] * 60))]
    found = [unit.modified_at for batch in batches(units) for unit in batch.units]
    assert found == list(range(59, -1, -1))


def test_very_large_units_are_read_after_the_newest_and_before_the_others() -> None:
    found = batches(_units(*[_MB] * 150, 300 * _MB, *[_MB] * 150, 200 * _MB))
    sizes = [batch.estimated_bytes for batch in found]
    first = sizes.index(300 * _MB)
    assert sizes[first + 1] == 200 * _MB
    assert 128 * _MB <= sum(sizes[:first]) <= 160 * _MB
    assert sum(sizes[first + 2 :]) >= 140 * _MB


def test_a_batch_contains_units_of_one_source() -> None:
    units = _units(*[_MB] * 60)
    mixed = [*units[:30], *(unit._replace(source="t") for unit in units[30:])]
    found = [{unit.source for unit in batch.units} for batch in batches(mixed)]
    assert len(found) > 1
    assert all(len(sources) == 1 for sources in found)
