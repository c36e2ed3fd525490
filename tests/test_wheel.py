"""A wheel of the checkout, installed into a clean environment without a network."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.wheelhouse import REPOSITORY, build_wheel, write_wheelhouse

REQUIREMENT = "backscroll[cli]"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheelhouse(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and those of all packages that the command needs."""
    folder = tmp_path_factory.mktemp("wheelhouse")
    write_wheelhouse(folder, wheel, REQUIREMENT)
    return folder


def run(*command: str | Path, **environ: str) -> str:
    """Run a command without the checkout on the path of Python, and return its output."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "UV_"))
    }
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, env=clean | environ, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def check_command(command: Path, folder: Path) -> None:
    """Check that an installed command works, with all files that belong to the package."""
    assert run(command, "--version").startswith("backscroll ")
    run(command, "demo", folder / "demo")
    home = {"HOME": str(folder / "demo"), "BACKSCROLL_HOME": str(folder / "archive")}
    assert "A page about the year" in run(command, "list", **home)
    assert "clocks go back" in run(command, "search", "remind me clocks", **home)
    assert run(command, "recall", "why are departures late", **home)
    assert "$" in run(command, "stats", **home)
    assert "<!doctype html>" in run(command, "export", "1", "--format", "html", **home)


def test_the_wheel_contains_every_file_of_the_package(wheel: Path) -> None:
    source = REPOSITORY / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "backscroll").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files <= set(ZipFile(wheel).namelist())


@pytest.mark.soak
def test_pip_installs_the_wheel_and_its_command_works(wheelhouse: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "env")
    bin_ = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin")
    run(
        bin_ / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--find-links",
        wheelhouse,
        REQUIREMENT,
    )
    check_command(bin_ / "backscroll", tmp_path)
    script = "from backscroll import History; print(History.source_names()[0])"
    assert run(bin_ / "python", "-c", script) == "claude-code\n"


def test_uv_installs_the_wheel_and_its_command_works(wheelhouse: Path, tmp_path: Path) -> None:
    folders = {
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "UV_CACHE_DIR": str(tmp_path / "cache"),
    }
    options = ("--offline", "--no-index", "--find-links", wheelhouse, "--python", sys.executable)
    run(tool("uv"), "tool", "install", *options, REQUIREMENT, **folders)
    check_command(tmp_path / "bin" / "backscroll", tmp_path)
    assert "uv tool install" in missing_extra(tmp_path / "tools" / "backscroll")


def test_pipx_installs_the_wheel_and_its_command_works(wheelhouse: Path, tmp_path: Path) -> None:
    folders = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    options = f"--no-index --find-links {wheelhouse}"
    run(tool("pipx"), "install", "--python", sys.executable, f"--pip-args={options}", REQUIREMENT, **folders)
    check_command(tmp_path / "bin" / "backscroll", tmp_path)
    assert "pipx install" in missing_extra(tmp_path / "pipx" / "venvs" / "backscroll")


def missing_extra(environment: Path) -> str:
    """Return the command that installs an extra into an environment."""
    script = "from backscroll.cli.install_command import install_command; print(install_command('tui'))"
    return run(environment / ("Scripts" if os.name == "nt" else "bin") / "python", "-c", script)
