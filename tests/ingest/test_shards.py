"""How units are shared out among the processes that read them."""

from backscroll.ingest.parallel import batches
from backscroll.model import Unit

_MB = 1024 * 1024


def _units(*sizes: int) -> list[Unit]:
    return [
        Unit(root="r", path=f"{number}.jsonl", key="", kind="session", size=size, fingerprint="", source="s")
        for number, size in enumerate(sizes)
    ]


def test_little_is_not_shared_out() -> None:
    assert batches(_units(*[_MB] * 20)) == []


def test_every_unit_is_in_one_batch() -> None:
    units = _units(*[3 * _MB] * 100)
    found = [unit for batch in batches(units) for unit in batch.units]
    assert sorted(unit.path for unit in found) == sorted(unit.path for unit in units)


def test_batches_get_smaller_towards_the_end() -> None:
    sizes = [batch.size for batch in batches(_units(*[_MB] * 500))]
    assert sizes[0] == 24 * _MB
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-2] == 4 * _MB


def test_what_takes_longest_is_begun_first() -> None:
    found = batches(_units(*[_MB] * 50, 300 * _MB, *[_MB] * 50, 200 * _MB))
    assert [batch.size for batch in found[:2]] == [300 * _MB, 200 * _MB]


def test_units_of_several_sources_are_not_read_together() -> None:
    units = _units(*[_MB] * 60)
    mixed = [*units[:30], *(unit._replace(source="t") for unit in units[30:])]
    found = [{unit.source for unit in batch.units} for batch in batches(mixed)]
    assert len(found) > 1
    assert all(len(sources) == 1 for sources in found)
