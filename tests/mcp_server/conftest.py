"""An archive of the demo, and an MCP client of a server for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.testing import demo
from tests.mcp_server.server_client import McpClient, environment, start_stdio_server


@pytest.fixture(scope="package")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Sync the demo into an archive. Return the environment of a server."""
    folder: Path = tmp_path_factory.mktemp("mcp")
    written = demo.write(folder / "robin")
    roots = [NamedRoot(source, Path(path)) for source, path in written.roots.items()]
    with History(roots=roots, home=folder / "home") as history:
        history.sync()
    return environment(folder / "home", written.roots)


@pytest.fixture(scope="package")
def mcp_client(environ: dict[str, str]) -> Iterator[McpClient]:
    with start_stdio_server(environ) as mcp_client:
        yield mcp_client


@pytest.fixture(scope="package")
def structured_client(environ: dict[str, str]) -> Iterator[McpClient]:
    """A client of a server whose results have documents."""
    with start_stdio_server(environ, "--structured") as mcp_client:
        yield mcp_client


@pytest.fixture
def history(environ: dict[str, str]) -> Iterator[History]:
    with History(home=Path(environ["BACKSCROLL_HOME"])) as history:
        yield history
