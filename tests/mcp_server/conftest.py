"""The demo with a server over it, for all tests that only ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.testing import demo
from tests.mcp_server.serving import Asking, environment, over_stdio


@pytest.fixture(scope="package")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The demo, read into an archive."""
    folder: Path = tmp_path_factory.mktemp("mcp")
    written = demo.write(folder / "robin")
    roots = [NamedRoot(source, Path(path)) for source, path in written.roots.items()]
    with History(roots=roots, home=folder / "home") as history:
        history.sync()
    return environment(folder / "home", written.roots)


@pytest.fixture(scope="package")
def asking(environ: dict[str, str]) -> Iterator[Asking]:
    with over_stdio(environ) as asking:
        yield asking


@pytest.fixture
def history(environ: dict[str, str]) -> Iterator[History]:
    with History(home=Path(environ["BACKSCROLL_HOME"])) as history:
        yield history
