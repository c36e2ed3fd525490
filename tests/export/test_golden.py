"""Golden files of every export format, for a plain session and a hostile one.

``pytest tests/export/test_golden.py --update-golden`` rewrites the expected files. Review the diff.
"""

import re
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.export import FORMATS, Format
from tests.export.sample_sessions import write_hostile, write_plain

GOLDEN = Path(__file__).parent / "golden"
STYLE_AND_SCRIPT = re.compile(
    r"(?<=<style>).*?(?=</style>)|(?<=^<script>).*?(?=</script>$)|(?<='sha256-)[^']+", re.DOTALL | re.M
)


@pytest.fixture
def history(tmp_path: Path) -> History:
    root = tmp_path / "claude"
    write_plain(root)
    write_hostile(root)
    history = History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "home")
    history.sync()
    return history


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("name", ["plain", "hostile"])
def test_a_session_is_exported_as_expected(
    history: History, tmp_path: Path, name: str, format_: Format, update_golden: bool
) -> None:
    id_ = f"5e551011-0000-4000-8000-0000000000{'aa' if name == 'plain' else 'bb'}"
    with history:
        exported = "".join(history.export_session(id_, format_)).replace(str(tmp_path), "~")
    if format_ == "html":
        exported = STYLE_AND_SCRIPT.sub("*", exported)
    expected = GOLDEN / f"{name}.{format_}"
    if update_golden:
        expected.write_text(exported, encoding="utf-8", newline="\n")
    assert exported == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("format_", FORMATS)
def test_no_format_contains_control_or_invisible_characters(history: History, format_: Format) -> None:
    with history:
        exported = "".join(history.export_session("5e551011-0000-4000-8000-0000000000bb", format_))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", exported)
    assert "alert(1)" in exported
