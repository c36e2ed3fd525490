"""Optional dependencies that are not installed."""

import json
import os
import sys
from pathlib import Path

import pytest

from backscroll.cli import install_command as module
from backscroll.cli.install_command import install_command
from tests.cli.run_command import backscroll


class Distribution:
    """Metadata of an installed package: the folder or URL it was installed from."""

    def __init__(self, origin: object) -> None:
        self._origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return json.dumps(self._origin) if self._origin is not None else None


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment with an interpreter and pip, which is on the PATH."""
    folder = tmp_path / "env" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "pip"):
        (folder / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(module, "distribution", lambda _: Distribution(None))
    return tmp_path / "env"


@pytest.mark.usefixtures("environment")
def test_pip_of_the_same_environment_is_named() -> None:
    assert install_command("tui") == "pip install 'backscroll[tui]'"


def test_another_pip_on_the_path_is_not_used(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    assert install_command("mcp") == f"{environment}/bin/python -m pip install 'backscroll[mcp]'"


def test_uv_is_used_in_an_environment_without_pip(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (environment / "bin" / "pip").rename(environment / "bin" / "uv")
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    python = environment / "bin" / "python"
    assert install_command("mcp") == f"uv pip install --python {python} 'backscroll[mcp]'"


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("pipx_metadata.json", "pipx install --force 'backscroll[all]'"),
        ("uv-receipt.toml", "uv tool install --force 'backscroll[all]'"),
    ],
)
def test_a_program_in_an_environment_of_its_own_is_installed_again(
    environment: Path, file: str, command: str
) -> None:
    (environment / file).touch()
    assert install_command("tui") == command


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        ({"url": "file:///home/zoe/my%20code", "dir_info": {}}, "'/home/zoe/my code[tui]'"),
        (
            {"url": "file:///home/zoe/code", "dir_info": {"editable": True}},
            "--editable '/home/zoe/code[tui]'",
        ),
        ({"url": "file:///home/zoe/backscroll.whl", "archive_info": {}}, "'backscroll[tui]'"),
    ],
)
def test_a_checkout_is_installed_from_its_folder(
    monkeypatch: pytest.MonkeyPatch, origin: object, requirement: str
) -> None:
    monkeypatch.setattr(module, "distribution", lambda _: Distribution(origin))
    assert install_command("tui") == f"pip install {requirement}"


@pytest.mark.parametrize(
    ("missing", "arguments", "part"),
    [
        ("click", ("list",), "The command line"),
        ("textual", ("tui",), "The terminal UI"),
        ("mcp", ("mcp",), "The MCP server"),
    ],
)
def test_a_missing_extra_exits_with_one_and_says_how_to_install_it(
    tmp_path: Path, missing: str, arguments: tuple[str, ...], part: str
) -> None:
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError(name={missing!r})\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    result = backscroll("--home", tmp_path / "home", *arguments, PYTHONPATH=path)
    assert (result.code, result.out) == (1, "")
    first, command = result.err.splitlines()
    assert first == f"{part} is not installed. To install it, run:"
    assert "install" in command and command.endswith("]'")


def test_the_server_is_added_without_a_question(tmp_path: Path) -> None:
    result = backscroll("mcp", "install", "cursor", "-y", HOME=str(tmp_path))
    assert result.code == 0, result.err
    assert "backscroll" in json.loads((tmp_path / ".cursor" / "mcp.json").read_text())["mcpServers"]
    assert backscroll("mcp", "uninstall", "cursor", "-y", HOME=str(tmp_path)).code == 0
