"""Locations of Cursor's history."""

import os
from pathlib import Path

import pytest

from backscroll.config import Machine
from backscroll.sources.cursor import Cursor, locations
from backscroll.testing import cursor
from tests.sources.cursor.reading import read_sessions


@pytest.mark.parametrize(
    ("system", "environ", "folder"),
    [
        ("linux", {}, ".config/Cursor"),
        ("linux", {"XDG_CONFIG_HOME": "~/elsewhere"}, "elsewhere/Cursor"),
        ("darwin", {}, "Library/Application Support/Cursor"),
        ("win32", {}, "AppData/Roaming/Cursor"),
    ],
)
def test_roots_depend_on_the_system(
    tmp_path: Path, system: str, environ: dict[str, str], folder: str
) -> None:
    roots = Cursor().roots(Machine(tmp_path, environ, system))
    assert roots[0] == tmp_path / folder
    assert roots[1] == tmp_path / f"{folder} Nightly"


def test_roots_on_wsl_include_those_of_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows_root = tmp_path / "Users/dev/AppData/Roaming/Cursor"
    windows_root.mkdir(parents=True)
    monkeypatch.setattr(locations, "_WINDOWS_HOMES", tmp_path / "Users")
    assert windows_root in Cursor().roots(Machine(tmp_path))
    assert windows_root not in Cursor().roots(Machine(tmp_path, {}, "darwin"))


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_out_of_the_root_is_not_followed(tmp_path: Path) -> None:
    elsewhere = cursor.Home(tmp_path / "Elsewhere", generation=1)
    elsewhere.composer([cursor.user("not ours")], workspace=cursor.SHOP, is_in_workspace=True)
    elsewhere.write()
    home = cursor.Home(tmp_path / "Cursor", generation=1)
    composer = home.composer([cursor.user("ours")], workspace=cursor.DOCS, is_in_workspace=True)
    home.write()
    link = home.root / "User/workspaceStorage" / cursor.SHOP.id
    link.symlink_to(elsewhere.workspace_database(cursor.SHOP).parent)
    assert read_sessions(home.root).keys() == {composer.id}
