"""An archive of the demo, and an MCP client of a server for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll.history.history import History
from tests.demo_archive import DemoArchive
from tests.mcp_server.server_client import McpClient, environment, start_stdio_server


@pytest.fixture(scope="session")
def environ(demo_archive: DemoArchive, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Copy the archive of the demo. Return the environment of a server."""
    home = tmp_path_factory.mktemp("mcp") / "home"
    demo_archive.copy(home).close()
    return environment(home, demo_archive.written.roots)


@pytest.fixture(scope="session")
def mcp_client(environ: dict[str, str]) -> Iterator[McpClient]:
    with start_stdio_server(environ) as mcp_client:
        yield mcp_client


@pytest.fixture(scope="session")
def structured_client(environ: dict[str, str]) -> Iterator[McpClient]:
    """A client of a server whose results have documents."""
    with start_stdio_server(environ, "--structured") as mcp_client:
        yield mcp_client


@pytest.fixture
def history(environ: dict[str, str]) -> Iterator[History]:
    with History(home=Path(environ["BACKSCROLL_HOME"])) as history:
        yield history
