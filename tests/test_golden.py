"""Golden files: the parsed content of every example in the format descriptions.

``pytest tests/test_golden.py --update-golden`` rewrites the expected files. Review the diff.
"""

import os
from pathlib import Path

import msgspec
import pytest

from backscroll import sources
from backscroll.sources.protocols import close
from tests.builders import from_description
from tests.oracle.fold import fold
from tests.unit_document import unit_document

GOLDEN = Path(__file__).parent / "golden"
TRANSCRIPT = Path("projects", "-home-zoe-ferry", "5e551011-0000-4000-8000-0000000000aa.jsonl")
WRITTEN_AT = 1_790_000_000
NATIVE = sorted(
    [path for path in GOLDEN.glob("*/*.jsonl") if path.parent.name == "claude-code"]
    + list(GOLDEN.glob("*/*.native.json"))
)


def build(native: Path, root: Path) -> None:
    """Write an example to the path that the tool uses."""
    if native.suffix == ".jsonl":
        path = root / TRANSCRIPT
        path.parent.mkdir(parents=True)
        path.write_bytes(native.read_bytes())
        os.utime(path, (WRITTEN_AT, WRITTEN_AT))
    else:
        from_description.build_file(native, root)


@pytest.mark.parametrize("native", NATIVE, ids=lambda path: f"{path.parent.name}/{path.name.split('.')[0]}")
def test_an_example_is_parsed_as_expected(native: Path, tmp_path: Path, update_golden: bool) -> None:
    build(native, tmp_path)
    source = sources.named(native.parent.name)
    documents = {}
    for unit in source.units(tmp_path):
        name = f"{Path(unit.path).relative_to(tmp_path)} {unit.key}".strip()
        documents[name] = unit_document(fold(source.read(unit)), tmp_path)
    close(source)
    expected = native.with_name(f"{native.name.split('.')[0]}.json")
    text = msgspec.json.format(msgspec.json.encode(documents), indent=1) + b"\n"
    if update_golden:
        expected.write_bytes(text)
    assert msgspec.json.decode(expected.read_bytes()) == documents


def test_every_example_has_a_golden_file() -> None:
    natives = {(path.parent.name, path.name.split(".")[0]) for path in NATIVE}
    expected = {
        (path.parent.name, path.stem)
        for path in GOLDEN.glob("*/*.json")
        if path.parent.name in sources.names() and not path.name.endswith(".native.json")
    }
    assert natives == expected
