"""The command that installs an optional dependency, for the way this program was installed.

Does not import click, which may be what is missing.
"""

import json
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

_PACKAGE = "backscroll"
# Files in the environment of a tool that installs each program into an environment of its own.
_PIPX_FILE, _UV_FILE = "pipx_metadata.json", "uv-receipt.toml"


def missing_extra_message(part: str, extra: str) -> str:
    """Return a message about a part of the program whose optional dependencies are missing."""
    return f"{part} is not installed. To install it, run:\n  {install_command(extra)}"


def install_command(extra: str) -> str:
    """Return the shell command that installs an extra into the environment of this program."""
    prefix = Path(sys.prefix)
    # pipx and uv replace the environment, so extras that it already has must be named again.
    if (prefix / _PIPX_FILE).is_file():
        return f"pipx install --force {_requirement('all')}"
    if (prefix / _UV_FILE).is_file():
        return f"uv tool install --force {_requirement('all')}"
    return f"{_pip_install()} {_requirement(extra)}"


def _pip_install() -> str:
    """Return how to run pip for this interpreter: by name if the shell finds the right one."""
    on_path = shutil.which("pip")
    if on_path is not None and Path(on_path).parent == Path(sys.executable).parent:
        return "pip install"
    interpreter = shlex.quote(sys.executable)
    if find_spec("pip") is None and shutil.which("uv") is not None:
        return f"uv pip install --python {interpreter}"
    return f"{interpreter} -m pip install"


def _requirement(extra: str) -> str:
    """Return the package with an extra: by name, or by folder if it was installed from one."""
    folder, is_editable = _installed_from()
    name = shlex.quote(f"{folder or _PACKAGE}[{extra}]")
    return f"--editable {name}" if is_editable else name


def _installed_from() -> tuple[str | None, bool]:
    """Return the folder that the package was installed from, if any, and whether it is editable."""
    try:
        text = distribution(_PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return None, False
    origin = json.loads(text) if text else {}
    url = urlsplit(origin.get("url", ""))
    if url.scheme != "file" or "dir_info" not in origin:
        return None, False
    return unquote(url.path), bool(origin["dir_info"].get("editable"))
