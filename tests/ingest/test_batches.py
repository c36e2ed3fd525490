"""Distribution of units to parallel readers."""

from backscroll.ingest.parallel import batches
from backscroll.model import Unit

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


def test_batches_get_smaller_towards_the_end() -> None:
    sizes = [batch.size for batch in batches(_units(*[_MB] * 500))]
    assert sizes[0] == 24 * _MB
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-2] == 4 * _MB


def test_the_largest_units_are_read_first() -> None:
    found = batches(_units(*[_MB] * 50, 300 * _MB, *[_MB] * 50, 200 * _MB))
    assert [batch.size for batch in found[:2]] == [300 * _MB, 200 * _MB]


def test_a_batch_contains_units_of_one_source() -> None:
    units = _units(*[_MB] * 60)
    mixed = [*units[:30], *(unit._replace(source="t") for unit in units[30:])]
    found = [{unit.source for unit in batch.units} for batch in batches(mixed)]
    assert len(found) > 1
    assert all(len(sources) == 1 for sources in found)
