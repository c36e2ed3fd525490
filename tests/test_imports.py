"""Starting up is cheap: nothing is loaded before it is needed."""

import subprocess
import sys

import pytest

HEAVY = {"click", "rich", "platformdirs", "sqlite3", "asyncio", "email", "http", "urllib.request", "msgspec"}


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not HEAVY & (modules_after("import backscroll") - modules_after(""))


@pytest.mark.parametrize("source", ["claude_code"])
def test_a_source_of_files_does_not_load_the_database(source: str) -> None:
    assert "sqlite3" not in modules_after(f"import backscroll.sources.{source}")


def test_the_version_is_told_without_loading_the_command_line() -> None:
    code = "import sys; sys.argv = ['backscroll', '--version']; from backscroll.cli import main; main()"
    assert not HEAVY & (modules_after(code) - modules_after(""))


def test_asking_for_help_loads_no_source() -> None:
    code = (
        "import sys; sys.argv = ['backscroll', '--help']; from backscroll.cli import main\n"
        "try: main()\nexcept SystemExit: pass"
    )
    assert not {name for name in modules_after(code) if name.startswith("backscroll.sources")}
