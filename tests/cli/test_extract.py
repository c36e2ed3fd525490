"""``archive extract`` of sessions from databases."""

import json
from pathlib import Path

from backscroll.testing import cursor
from tests.cli.run_command import backscroll

ONE = "10000000-0000-4000-8000-000000000000"


def test_extracted_rows_can_be_read_as_a_root(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    home.composer([cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")], id=ONE)
    home.write()
    options = ["--home", str(tmp_path / "home"), "--root", f"cursor={tmp_path / 'root'}"]
    assert backscroll(*options, "sync").code == 0
    result = backscroll(*options, "archive", "extract", "10000000", "-o", str(tmp_path / "out"))
    assert result.code == 0
    assert str(tmp_path / "out/User/globalStorage/state.vscdb") in result.out.splitlines()
    assert "keys are never archived: blobEncryptionKey" in result.err
    again = ["--home", str(tmp_path / "again"), "--root", f"cursor={tmp_path / 'out'}"]
    messages = json.loads(backscroll(*again, "show", "10000000", "--json").out)["messages"]
    assert [message["content"] for message in messages] == ["Totals are off", "Rounding now happens once."]


def test_json_has_files_rows_and_blanked_fields(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    home.composer([cursor.user("Totals are off")], id=ONE, has_graph=False)
    home.write()
    options = ["--home", str(tmp_path / "home"), "--root", f"cursor={tmp_path / 'root'}"]
    assert backscroll(*options, "sync").code == 0
    result = backscroll(*options, "archive", "extract", ONE, "-o", str(tmp_path / "out"), "--json")
    document = json.loads(result.out)
    assert all(Path(file).is_file() for file in document["files"])
    assert document["rows"] >= 3
    assert document["blanked"] == ["blobEncryptionKey", "speculativeSummarizationEncryptionKey"]
    refused = backscroll(*options, "archive", "extract", ONE, "-o", str(tmp_path / "out"))
    assert (refused.code, refused.out) == (1, "")
    assert "exists; name another folder" in refused.err
