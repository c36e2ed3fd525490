"""Where Cursor is looked for."""

import os
from pathlib import Path

import pytest

from backscroll.config import Machine
from backscroll.sources.cursor import Cursor, locations
from backscroll.testing import cursor
from tests.sources.cursor.reading import read


@pytest.mark.parametrize(
    ("system", "environ", "folder"),
    [
        ("linux", {}, ".config/Cursor"),
        ("linux", {"XDG_CONFIG_HOME": "~/elsewhere"}, "elsewhere/Cursor"),
        ("darwin", {}, "Library/Application Support/Cursor"),
        ("win32", {}, "AppData/Roaming/Cursor"),
    ],
)
def test_every_system_has_its_place(
    tmp_path: Path, system: str, environ: dict[str, str], folder: str
) -> None:
    roots = Cursor().roots(Machine(tmp_path, environ, system))
    assert roots[0] == tmp_path / folder
    assert roots[1] == tmp_path / f"{folder} Nightly"


def test_wsl_sees_the_windows_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / "Users/dev/AppData/Roaming/Cursor"
    theirs.mkdir(parents=True)
    monkeypatch.setattr(locations, "_WINDOWS_HOMES", tmp_path / "Users")
    assert theirs in Cursor().roots(Machine(tmp_path))
    assert theirs not in Cursor().roots(Machine(tmp_path, {}, "darwin"))


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_that_leads_out_of_the_root_is_not_followed(tmp_path: Path) -> None:
    elsewhere = cursor.Home(tmp_path / "Elsewhere", generation=1)
    elsewhere.composer([cursor.user("not ours")], workspace=cursor.SHOP, is_in_workspace=True)
    elsewhere.write()
    home = cursor.Home(tmp_path / "Cursor", generation=1)
    made = home.composer([cursor.user("ours")], workspace=cursor.DOCS, is_in_workspace=True)
    home.write()
    link = home.root / "User/workspaceStorage" / cursor.SHOP.id
    link.symlink_to(elsewhere.workspace_database(cursor.SHOP).parent)
    assert read(home.root).keys() == {made.id}
