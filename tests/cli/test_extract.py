"""``archive extract`` of a session that lies in databases, as people and programs see it."""

import json
from pathlib import Path

from backscroll.testing import cursor
from tests.cli.running import backscroll

ONE = "10000000-0000-4000-8000-000000000000"


def test_rows_are_written_back_as_a_folder_that_can_be_read_again(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    home.composer([cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")], id=ONE)
    home.write()
    options = ["--home", str(tmp_path / "home"), "--root", f"cursor={tmp_path / 'root'}"]
    assert backscroll(*options, "sync").code == 0
    ran = backscroll(*options, "archive", "extract", "10000000", "-o", str(tmp_path / "out"))
    assert ran.code == 0
    assert str(tmp_path / "out/User/globalStorage/state.vscdb") in ran.out.splitlines()
    assert "keys are never kept: blobEncryptionKey" in ran.err
    again = ["--home", str(tmp_path / "again"), "--root", f"cursor={tmp_path / 'out'}"]
    messages = json.loads(backscroll(*again, "show", "10000000", "--json").out)["messages"]
    assert [one["content"] for one in messages] == ["Totals are off", "Rounding now happens once."]


def test_programs_are_told_files_rows_and_blanks(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    home.composer([cursor.user("Totals are off")], id=ONE, has_graph=False)
    home.write()
    options = ["--home", str(tmp_path / "home"), "--root", f"cursor={tmp_path / 'root'}"]
    assert backscroll(*options, "sync").code == 0
    ran = backscroll(*options, "archive", "extract", ONE, "-o", str(tmp_path / "out"), "--json")
    told = json.loads(ran.out)
    assert all(Path(file).is_file() for file in told["files"])
    assert told["rows"] >= 3
    assert told["blanked"] == ["blobEncryptionKey", "speculativeSummarizationEncryptionKey"]
    refused = backscroll(*options, "archive", "extract", ONE, "-o", str(tmp_path / "out"))
    assert (refused.code, refused.out) == (1, "")
    assert "exists; name another folder" in refused.err
