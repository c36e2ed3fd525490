"""Default location of the archive."""

import os
import sys
from pathlib import Path

import platformdirs
import pytest

from backscroll.config import Machine, archive_home
from tests.test_imports import modules_after


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"XDG_DATA_HOME": "/srv/data"},
        {"XDG_DATA_HOME": ""},
        {"XDG_DATA_HOME": "data"},
        {"HOME": "/home/zoe/"},
        {"HOME": "/home/zoë b"},
        {"ANDROID_ROOT": "/system", "ANDROID_DATA": "/data", "SHELL": "/bin/sh"},
    ],
    ids=str,
)
def test_the_archive_is_in_the_data_folder_of_the_system(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    found = archive_home(None, Machine(Path.home()))
    assert found == platformdirs.user_data_path("backscroll", appauthor=False)


def test_an_option_overrides_a_variable_and_a_variable_overrides_the_default(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"BACKSCROLL_HOME": "~/archive"})
    assert archive_home(tmp_path / "flag", machine) == tmp_path / "flag"
    assert archive_home(None, machine) == tmp_path / "archive"


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="other systems load platformdirs")
def test_the_default_location_is_found_without_loading_platformdirs(tmp_path: Path) -> None:
    code = (
        "import os; os.environ.pop('XDG_DATA_HOME', None); os.environ.pop('BACKSCROLL_HOME', None)\n"
        f"os.environ['HOME'] = {os.fspath(tmp_path)!r}\n"
        "from backscroll.config import archive_home, this_machine; archive_home(None, this_machine())"
    )
    assert "platformdirs" not in modules_after(code)
