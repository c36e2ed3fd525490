"""Every example of the formats' descriptions, and what it is read as.

``pytest tests/test_golden.py --update-golden`` writes the expected files anew; the diff is to be reviewed.
"""

import os
from pathlib import Path

import msgspec
import pytest

from backscroll import sources
from backscroll.sources.protocols import close
from backscroll.testing import from_description
from tests.normal import normal
from tests.oracle.fold import fold

GOLDEN = Path(__file__).parent / "golden"
TRANSCRIPT = Path("projects", "-home-zoe-ferry", "5e551011-0000-4000-8000-0000000000aa.jsonl")
WRITTEN_AT = 1_790_000_000
NATIVE = sorted(
    [path for path in GOLDEN.glob("*/*.jsonl") if path.parent.name == "claude-code"]
    + list(GOLDEN.glob("*/*.native.json"))
)


def build(native: Path, root: Path) -> None:
    """Put an example where the tool would have put it."""
    if native.suffix == ".jsonl":
        path = root / TRANSCRIPT
        path.parent.mkdir(parents=True)
        path.write_bytes(native.read_bytes())
        os.utime(path, (WRITTEN_AT, WRITTEN_AT))
    else:
        from_description.build_file(native, root)


@pytest.mark.parametrize("native", NATIVE, ids=lambda path: f"{path.parent.name}/{path.name.split('.')[0]}")
def test_an_example_reads_as_expected(native: Path, tmp_path: Path, update_golden: bool) -> None:
    build(native, tmp_path)
    source = sources.named(native.parent.name)
    found = {}
    for unit in source.units(tmp_path):
        name = f"{Path(unit.path).relative_to(tmp_path)} {unit.key}".strip()
        found[name] = normal(fold(source.read(unit)), tmp_path)
    close(source)
    expected = native.with_name(f"{native.name.split('.')[0]}.json")
    text = msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"
    if update_golden:
        expected.write_bytes(text)
    assert msgspec.json.decode(expected.read_bytes()) == found


def test_every_example_has_its_golden_file() -> None:
    natives = {(path.parent.name, path.name.split(".")[0]) for path in NATIVE}
    expected = {
        (path.parent.name, path.stem)
        for path in GOLDEN.glob("*/*.json")
        if path.parent.name in sources.names() and not path.name.endswith(".native.json")
    }
    assert natives == expected
