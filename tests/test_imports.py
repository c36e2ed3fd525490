"""Fast start: modules are loaded only when they are needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_settings

HEAVY = {"click", "rich", "platformdirs", "sqlite3", "asyncio", "email", "http", "urllib.request", "msgspec"}


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_no_heavy_module() -> None:
    assert not HEAVY & (modules_after("import backscroll") - modules_after(""))


def test_history_is_imported_from_the_package_on_first_use() -> None:
    assert "backscroll.history" not in modules_after("import backscroll")
    assert "backscroll.history.history" in modules_after("from backscroll import History")


@pytest.mark.parametrize("source", ["claude_code"])
def test_a_source_that_reads_files_does_not_load_sqlite(source: str) -> None:
    assert "sqlite3" not in modules_after(f"import backscroll.sources.{source}")


def test_the_version_option_loads_no_heavy_module() -> None:
    code = "import sys; sys.argv = ['backscroll', '--version']; from backscroll.cli import main; main()"
    assert not HEAVY & (modules_after(code) - modules_after(""))


def test_the_help_option_loads_no_source() -> None:
    code = (
        "import sys; sys.argv = ['backscroll', '--help']; from backscroll.cli import main\n"
        "try: main()\nexcept SystemExit: pass"
    )
    assert not {name for name in modules_after(code) if name.startswith("backscroll.sources")}


def test_a_sync_without_changes_loads_no_heavy_module(tmp_path: Path) -> None:
    Transcript(seed=1).user("a").assistant("b").write(tmp_path / "claude-code")
    write_settings(tmp_path / "claude-code", cleanup_days=99)
    ide = cursor.Home(tmp_path / "cursor")
    ide.composer([cursor.user("c"), cursor.assistant("d")], workspace=cursor.SHOP, name="one")
    ide.write()
    cursor_cli.Home(tmp_path / "cursor-cli").chat([cursor.user("e"), cursor.assistant("f")], cwd="/home/dev")
    roots = [f"--root={name}={tmp_path / name}" for name in ("claude-code", "cursor", "cursor-cli")]
    arguments = ["backscroll", "--home", str(tmp_path / "home"), *roots, "sync"]
    code = (
        f"import sys; sys.argv = {arguments!r}; from backscroll.cli import main\n"
        "try: main()\nexcept SystemExit: pass"
    )
    for _ in range(2):
        modules_after(code)
    loaded = modules_after(code)
    heavy = {"click", "rich", "tantivy", "watchfiles", "multiprocessing", "threading", "hashlib", "inspect"}
    assert not (heavy | {"msgspec"}) & loaded
    assert not {name for name in loaded if "zstd" in name}
    assert not {"message", "stream"} & {name.removeprefix("backscroll.model.") for name in loaded}
    unneeded = {"schema", "write.units", "query.messages"}
    assert not unneeded & {name.removeprefix("backscroll.archive.") for name in loaded}
